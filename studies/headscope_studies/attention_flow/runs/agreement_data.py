"""Make the sentences that agreement_models.py learns from and is tested on.

    python runs/agreement_data.py --treebank en_ewt-train.conllu --text WIKITEXT --test AGREEMENT --out data

`data/test.jsonl` has 2,000 sentences of AGREEMENT (a folder for the reader `agreement`), as many as in the paper.
`data/train.jsonl` has, each up to its verb and in lower case:

- *treebank*: every finite verb in the present tense, and was and were, with a noun or a name as its subject before it.
  Number and subject come from the annotation; attractors are nouns of the other number between subject and verb.
- *text*: every is, are, was, were, has and have in the articles of WIKITEXT (the .txt files of a folder), unless the
  word before it is one of `BLOCKED`, such as a pronoun, a modal or "to", or "if" or "wish" occurs before it in its
  sentence. Number comes from the form of the verb; the subject is not known.
- *templates*: the sentences of `agreement_templates:train`.
- *more*, only with --more: the same rule for the texts and pairs of any source that hs.read reads, such as
  glue:qnli:dev@GLUE; a model with a new vocabulary needs all the sentences that there are.
- *rest*, only with --rest: the sentences of AGREEMENT that are not tested. The paper trained on sentences of that kind.

No training sentence has the same first eight words before its verb as a sentence of AGREEMENT that is tested.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import headscope as hs
from headscope.core.example import sample_examples
from headscope.core.progress import print_status
from headscope.experiments.runs import make_parser

NUMBERS = ("singular", "plural")
FORMS = {"is": 0, "was": 0, "has": 0, "are": 1, "were": 1, "have": 1}
BLOCKED = """
    i you he she it we they there here this that these those which who what where how when and or but to not n't will
    would can could may might must should shall do does did as than if also both all some many
""".split()  # noqa: SIM905  (a list would take 45 lines)
NOMINAL = ("NOUN", "PROPN")
OPENING = 8  # words that a training and a test sentence must not share
Row = dict[str, Any]


def make_row(source: str, words: Iterable[str], number: int, verb: str, **known: object) -> Row:
    """Return one sentence; a fact that is not known is None."""
    columns = {"attractors": None, "subject_position": None, "attractor_positions": None} | known
    words = [word.lower() if word != "[UNK]" else word for word in words]
    return {"words": words, "label": number, "label_name": NUMBERS[number], "verb": verb, "source": source, **columns}


def read_treebank(path: Path) -> Iterator[Row]:
    """Yield a row for each finite verb with a nominal subject before it."""
    for sentence in hs.read(str(path)):
        columns, words = sentence.columns, sentence.words or ()
        if "heads" not in columns:
            continue
        features = [dict(part.split("=") for part in text.split("|") if part) for text in columns["features"]]
        numbers = [feature.get("Number") for feature in features]
        for subject, (head, relation) in enumerate(zip(columns["heads"], columns["relations"], strict=True)):
            if relation not in ("nsubj", "nsubj:pass") or columns["tags"][subject] not in NOMINAL:
                continue
            verb = _find_finite(head, columns, features)
            if verb is None or not subject < verb or numbers[verb] not in ("Sing", "Plur"):
                continue
            if features[verb].get("Tense") != "Pres" and words[verb].lower() not in ("was", "were"):
                continue
            other = "Plur" if numbers[verb] == "Sing" else "Sing"
            between = range(subject + 1, verb)
            attractors = [w for w in between if columns["tags"][w] == "NOUN" and numbers[w] == other]
            known = {"attractors": len(attractors), "subject_position": subject, "attractor_positions": attractors}
            yield make_row("treebank", words[:verb], int(other == "Sing"), words[verb].lower(), **known)


def _find_finite(head: int, columns: dict, features: list[dict[str, str]]) -> int | None:
    """Return the finite word of a clause: its predicate, or its first auxiliary or copula."""
    children = [word for word, parent in enumerate(columns["heads"]) if parent == head]
    helpers = [word for word in children if columns["relations"][word].split(":")[0] in ("aux", "cop")]
    word = min([head, *helpers])
    return word if features[word].get("VerbForm") == "Fin" else None


def find_verbs(source: str, sentences: Iterable[list[str]]) -> Iterator[Row]:
    """Yield a row for each verb that shows its number, and does not follow a blocked word."""
    for words in sentences:
        for place, word in enumerate(words):
            before = [part.lower() for part in words[:place]]
            if word in FORMS and place > 1 and before[-1] not in BLOCKED and not {"if", "wish"} & set(before):
                yield make_row(source, words[:place], FORMS[word], word)


def read_articles(folder: Path) -> Iterator[list[str]]:
    """Yield the words of every sentence; headings are left out, and <unk> is the unknown token of tokenizers."""
    for path in sorted(folder.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            text = re.sub(r" @([-,.])@ ", r"\1", line).replace("<unk>", "[UNK]")
            if not line.strip().startswith("="):
                yield from (sentence.split() for sentence in re.split(r" [.?!;:] ", text))


def read_sentences(source: str) -> Iterator[list[str]]:
    """Yield the words of every sentence of the texts and pairs that hs.read reads, with punctuation as words."""
    for example in hs.read(source, malformed="skip"):
        for text in (example.text, example.pair or ""):
            for sentence in re.split(r"(?<=[.?!;:])\s+", text):
                yield re.findall(r"\w+(?:[-'’]\w+)*|[^\w\s]", sentence)


def make_templates(count: int) -> Iterator[Row]:
    """Yield the bundled sentences, whose positions are known."""
    for example in hs.read(f"agreement_templates:train:{count}"):
        yield copy_row("templates", example)


def copy_row(source: str, example: hs.Example) -> Row:
    """Return an example of one of the readers for this task as a row."""
    names = ("attractors", "subject_position", "attractor_positions")
    known = {name: example.columns[name] for name in names}
    assert isinstance(example.label, int)
    return make_row(source, example.words or (), example.label, example.columns["verb"], **known)


def drop_shared(rows: Iterable[Row], test: list[Row]) -> Iterator[Row]:
    """Yield each different sentence once, without those that begin as a test sentence does."""
    seen = {opening(row) for row in test}
    kept: set[tuple[str, ...]] = set()
    for row in rows:
        words = tuple(row["words"])
        if opening(row) not in seen and words not in kept:
            kept.add(words)
            yield row


def opening(row: Row) -> tuple[str, ...]:
    """Return the first words of a sentence, without punctuation."""
    return tuple(word for word in row["words"] if re.search(r"\w", word))[:OPENING]


def write_rows(path: Path, rows: list[Row]) -> None:
    """Write one JSON object per line, and print how many of each kind there are."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for (source, name), count in sorted(Counter((row["source"], row["label_name"]) for row in rows).items()):
        print_status(f"{path.name}: {count:6,} {name} from {source}")


def main() -> None:
    """Write train.jsonl and test.jsonl."""
    parser = make_parser(__doc__)
    parser.add_argument("--treebank", type=Path, required=True, help="a CoNLL-U file")
    parser.add_argument("--text", type=Path, required=True, help="a folder with .txt files of WikiText")
    parser.add_argument("--test", required=True, help="a folder for the reader `agreement`")
    parser.add_argument("--out", type=Path, required=True, help="output folder")
    parser.add_argument("--count", type=int, default=2000, help="number of test sentences")
    parser.add_argument("--templates", type=int, default=5000, help="number of sentences from templates")
    parser.add_argument("--more", nargs="*", default=[], help="sources for hs.read with more sentences to learn from")
    parser.add_argument("--rest", action="store_true", help="learn from the sentences of --test that are not tested")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of test sentences")
    options = parser.parse_args()
    write_data(options)


def write_data(options: argparse.Namespace) -> None:
    """Read all sources, drop what train and test share, and write both files."""
    examples = hs.read(f"agreement@{options.test}", malformed="skip")
    tested = sample_examples(examples, options.count, options.seed)
    names = {example.id for example in tested}
    test = [copy_row("agreement", example) for example in tested]
    rows = [*read_treebank(options.treebank), *find_verbs("text", read_articles(options.text))]
    rows += [row for source in options.more for row in find_verbs("more", read_sentences(source))]
    rows += make_templates(options.templates)
    if options.rest:
        rows += [copy_row("rest", example) for example in examples if example.id not in names]
    train = list(drop_shared(rows, test))
    assert not {opening(row) for row in train} & {opening(row) for row in test}
    print_status(f"dropped {len(rows) - len(train):,} sentences that are repeated or begin as a test sentence does")
    options.out.mkdir(parents=True, exist_ok=True)
    write_rows(options.out / "train.jsonl", train)
    write_rows(options.out / "test.jsonl", test)


if __name__ == "__main__":
    main()
