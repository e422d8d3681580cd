"""Passages: consecutive sentences of a document as one example, so that mentions can refer to earlier sentences."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from types import MappingProxyType
from typing import Any

from headscope.core.example import Example
from headscope.data.coreference.mentions import list_mentions

PER_WORD = ("tags", "relations", "lemmas", "features", "speakers")


def join_sentences(examples: Sequence[Example], words: int) -> list[Example]:
    """Return passages of consecutive sentences of one document, each of at most `words` words.

    A sentence that is longer is a passage alone; examples without the column `document`, or with a text and no words,
    stay as they are. The numbers of words in `mentions`, `mention_heads` and `heads` are those of the passage.

    >>> mention = {"mentions": ((0, 0, "7", "person"),), "document": "d"}
    >>> sentences = [Example(name, "He won", words=("He", "won"), columns=mention) for name in ("1", "2", "3")]
    >>> [(passage.id, passage.text, passage.columns["mentions"][-1]) for passage in join_sentences(sentences, 4)]
    [('1', 'He won He won', (2, 2, '7', 'person')), ('3', 'He won', (0, 0, '7', 'person'))]
    """
    passages: list[Example] = []
    for document, sentences in groupby(examples, key=_document):
        if document is None:
            passages += sentences
        else:
            passages += [_join(run) for run in _split(sentences, words)]
    return passages


def drop_singletons(examples: Sequence[Example]) -> list[Example]:
    """Return the examples without mentions of entities that their document mentions once.

    Examples that say which mentions are asked, in the column `anaphors`, keep all candidates.

    >>> mentions = ((0, 0, "7", ""), (1, 1, "8", ""), (2, 2, "7", ""))
    >>> example = Example("0", "", words=("Ann", "Eve", "she"), columns={"mentions": mentions})
    >>> drop_singletons([example])[0].columns["mentions"]
    ((0, 0, '7', ''), (2, 2, '7', ''))
    """
    counts = Counter((_document_or_id(example), str(entity)) for example in examples for entity in _entities(example))
    return [_select(example, counts) for example in examples]


def _select(example: Example, counts: Counter[tuple[str, str]]) -> Example:
    if "anaphors" in example.columns:
        return example
    document = _document_or_id(example)
    repeated_mentions = [
        number for number, entity in enumerate(_entities(example)) if counts[document, str(entity)] > 1
    ]
    mentions = list_mentions(example)
    heads = tuple(mentions[number].head for number in repeated_mentions)
    repeated = tuple(example.columns["mentions"][number] for number in repeated_mentions)
    columns = {**example.columns, "mentions": repeated, "mention_heads": heads}
    return replace(example, columns=MappingProxyType(columns))


def _entities(example: Example) -> list[Any]:
    return [mention[2] for mention in example.columns.get("mentions", ())]


def _document(example: Example) -> str | None:
    return example.columns.get("document") if example.words is not None and "anaphors" not in example.columns else None


def _document_or_id(example: Example) -> str:
    return str(example.columns.get("document", example.id))


def _split(sentences: Iterable[Example], words: int) -> Iterator[list[Example]]:
    """Yield runs of consecutive sentences with at most this number of words together."""
    run: list[Example] = []
    for sentence in sentences:
        if run and sum(len(member.words or ()) for member in [*run, sentence]) > words:
            yield run
            run = []
        run.append(sentence)
    if run:
        yield run


def _join(sentences: Sequence[Example]) -> Example:
    """Return the sentences as one example; what only some of them have is left out."""
    columns: dict[str, Any] = {"document": sentences[0].columns["document"], "sentences": len(sentences)}
    starts = [sum(len(sentence.words or ()) for sentence in sentences[:number]) for number in range(len(sentences))]
    common = set.intersection(*(set(sentence.columns) for sentence in sentences))
    for name in common & set(PER_WORD):
        columns[name] = tuple(value for sentence in sentences for value in sentence.columns[name])
    shifted = list(zip(sentences, starts, strict=True))
    if "heads" in common:
        columns["heads"] = tuple(
            head if head < 0 else head + start for sentence, start in shifted for head in sentence.columns["heads"]
        )
    if any("mentions" in sentence.columns for sentence in sentences):  # some formats leave out an empty column
        columns["mentions"] = tuple(
            (first + start, last + start, *rest)
            for sentence, start in shifted
            for first, last, *rest in sentence.columns.get("mentions", ())
        )
    if "mention_heads" in common:
        columns["mention_heads"] = tuple(
            head + start for sentence, start in shifted for head in sentence.columns["mention_heads"]
        )
    words = tuple(word for sentence in sentences for word in sentence.words or ())
    text = " ".join(sentence.text for sentence in sentences)
    return Example(sentences[0].id, text, words=words, columns=MappingProxyType(columns))
