"""The mentions of an example: their words, their head words and their kinds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.tokenizing.words import Span, split_words

KINDS = ("pronoun", "proper", "nominal")

_SPELLED = """
i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
we us our ours ourselves they them their theirs themselves themself
this that these those who whom whose which what one one's oneself
"""
PRONOUNS = frozenset(_SPELLED.split())
"""English words that are pronouns where the data have no tags."""

GAP_COLUMNS = ("Pronoun", "A", "B")


@dataclass(frozen=True)
class Mention:
    """A mention of an entity: the numbers of its first, last and head word, and its kind, one of KINDS."""

    first: int
    last: int
    head: int
    entity: str
    kind: str


def list_mentions(example: Example) -> list[Mention]:
    """Return the mentions of the column `mentions`, in the order of the data.

    The head word comes from the column `mention_heads`, or from the tree: the first word whose head is outside of the
    mention. The kind is that of the head word: a pronoun, a proper noun or anything else, by its tag where there are
    tags, otherwise by its spelling.

    >>> words, tree = ("The", "dog", "lost", "its", "bone"), (1, 2, -1, 4, 2)
    >>> columns = {"heads": tree, "mentions": ((0, 1, "1", "animal"), (3, 3, "1", "animal"), (3, 4, "2", "object"))}
    >>> [(mention.head, mention.kind) for mention in list_mentions(Example("0", "", words=words, columns=columns))]
    [(1, 'nominal'), (3, 'pronoun'), (4, 'nominal')]
    """
    if "mentions" not in example.columns:
        raise InputError(
            f"Example '{example.id}' does not say which words refer to what: it has no column 'mentions'. Read a "
            "treebank with Entity= (GUM), conll2012@PATH, gap:validation or winogender, or give (first word, last "
            "word, entity, type) for each mention."
        )
    words = read_words(example)
    spans = [(int(first), int(last), str(entity)) for first, last, entity, *_ in example.columns["mentions"]]
    for first, last, entity in spans:
        if not 0 <= first <= last < len(words):
            raise InputError(
                f"Example '{example.id}': a mention of '{entity}' has the words {first} to {last}, but the words are 0 "
                f"to {len(words) - 1}."
            )
    heads = _find_heads(example, spans)
    tags = example.columns.get("tags")
    kinds = [_find_kind(words, head, tags) for head in heads]
    return [Mention(*span[:2], head, span[2], kind) for span, head, kind in zip(spans, heads, kinds, strict=True)]


def read_words(example: Example) -> tuple[str, ...]:
    """Return the words of an example, which are its own or those of the column `spans`."""
    if example.words is not None:
        return tuple(example.words)
    if "spans" in example.columns:
        return tuple(example.text[start:end] for start, end in example.columns["spans"])
    raise InputError(
        f"Example '{example.id}' has mentions but no words to count them by. Give it 'words', or the column 'spans'."
    )


def add_gap_mentions(example: Example) -> Example:
    """Return an example of GAP with the columns `spans`, `mentions` and `mention_heads`; any other as it is.

    The pronoun is the only anaphor, and both names are its candidates, also behind it (column `anaphors`). The head
    word of a name is its first word, as in a treebank of Universal Dependencies.

    >>> text = "Ann met Eve Lee. She won."
    >>> columns = {"Pronoun": "She", "Pronoun-offset": 17, "A": "Ann", "A-offset": 0, "A-coref": False, "B": "Eve Lee"}
    >>> example = Example("0", text, columns={**columns, "B-offset": 8, "B-coref": True, "URL": "x"})
    >>> add_gap_mentions(example).columns["mentions"]
    ((5, 5, 'B', 'person'), (0, 0, 'A', 'person'), (2, 3, 'B', 'person'))
    """
    columns = example.columns
    if "mentions" in columns or not all(f"{name}-offset" in columns for name in GAP_COLUMNS):
        return example
    if "A-coref" not in columns or "B-coref" not in columns:
        raise InputError(
            f"Example '{example.id}' of GAP does not say to whom its pronoun refers: it has no A-coref and B-coref."
        )
    referent = next((name for name in ("A", "B") if columns[f"{name}-coref"]), "neither")
    starts = [int(columns[f"{name}-offset"]) for name in GAP_COLUMNS]
    ends = [start + len(columns[name]) for name, start in zip(GAP_COLUMNS, starts, strict=True)]
    spans = _cut_words(split_words(example.text), [*starts, *ends])
    mentions = []
    for start, end, entity in zip(starts, ends, (referent, "A", "B"), strict=True):
        inside = [word for word, span in enumerate(spans) if span[1] > start and span[0] < end]
        mentions.append((inside[0], inside[-1], entity, "person"))
    added: dict[str, Any] = {"spans": tuple(spans), "mentions": tuple(mentions), "anaphors": (0,)}
    added |= {"mention_heads": tuple(mention[0] for mention in mentions), "document": columns.get("URL", example.id)}
    return replace(example, columns=MappingProxyType({**columns, **added}))


def _cut_words(spans: Sequence[Span], boundaries: Sequence[int]) -> list[Span]:
    """Return words that end where a mention does: in "home.He left" there is no space before the pronoun."""
    cuts = sorted({*boundaries, *(start for start, _ in spans), *(end for _, end in spans)})
    return [piece for piece in pairwise(cuts) if any(start <= piece[0] and piece[1] <= end for start, end in spans)]


def _find_heads(example: Example, spans: Sequence[tuple[int, int, str]]) -> list[int]:
    if "mention_heads" in example.columns:
        heads = [int(head) for head in example.columns["mention_heads"]]
        if len(heads) != len(spans):
            raise InputError(f"Example '{example.id}' has {len(spans)} mentions, but {len(heads)} mention_heads.")
        return heads
    tree = example.columns.get("heads")
    if tree is None and any(first < last for first, last, _ in spans):
        raise InputError(
            f"Example '{example.id}' has mentions of several words, but does not say which is the head word: it has "
            "neither the column 'heads' nor 'mention_heads'."
        )
    return [first if tree is None else _find_root(tree, first, last) for first, last, _ in spans]


def _find_root(tree: Sequence[int], first: int, last: int) -> int:
    """Return the first word of a span whose head is outside; a tree has one, if it has no cycle."""
    return next((word for word in range(first, last + 1) if not first <= int(tree[word]) <= last), last)


def _find_kind(words: Sequence[str], head: int, tags: Sequence[str] | None) -> str:
    if tags is not None:
        return {"PRON": "pronoun", "PROPN": "proper"}.get(tags[head], "nominal")
    if words[head].lower() in PRONOUNS:
        return "pronoun"
    return "proper" if words[head][:1].isupper() and head > 0 else "nominal"
