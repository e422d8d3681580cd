"""Small studies of a tiny model, run once and shared by many tests."""

import json
import tempfile
from functools import cache
from pathlib import Path

from headscope.core.catalog import studies
from tests.measuring.data import saved_model
from tests.models import WORDS, text

WIDTH = 40


@cache
def place() -> Path:
    """A folder with a tiny model and labelled pairs; some are shorter than a head's value dimensions."""
    folder = Path(tempfile.mkdtemp(prefix="headscope-study-"))
    saved_model(folder / "base")
    for name, many, seed in (("train", 16, 0), ("dev", 12, 100)):
        rows = [
            {
                "id": f"{name}-{at}",
                "text": f"{('dog', 'cat')[at % 2]} {text(1 + 2 * at % 20, seed=at + seed)}",
                "pair": f"{text(1 + at % 9, seed=at + seed + 50)}{' .' if at % 3 else ''}",
                "label": at % 2,
            }
            for at in range(many)
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    pairs = [f"{text(6 + at % 3, seed=at)}\t{at % 5}\t5\t{('subject', 'object')[at % 2]}" for at in range(24)]
    (folder / "pairs.tsv").write_text("\n".join(["text\tword_i\tword_j\trelation", *pairs]), encoding="utf-8")
    trees = [_tree(at) for at in range(70)]
    (folder / "trees.conllu").write_text("\n".join(trees), encoding="utf-8")
    for name, many, seed in (("agreement_train", 24, 0), ("agreement_dev", 14, 7)):
        rows = [_sentence(name, at, seed) for at in range(many)]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for name, many in (("choices_train", 24), ("choices_dev", 40)):
        rows = ["id\treason\tclaim\tfirst\tsecond\tright", *(_choice(name, at) for at in range(many))]
        (folder / f"{name}.tsv").write_text("\n".join(rows), encoding="utf-8")
    return folder


def _tree(at: int) -> str:
    """A sentence of five words in CoNLL-U: the cat sat on it."""
    nouns, verbs = ("cat", "dog", "man"), ("sat", "ran", "slept", "sang")
    words = [("the", 2, "det"), (nouns[at % 3], 3, "nsubj"), (verbs[at % 4], 0, "root"), ("the", 5, "det"),
             (nouns[at % 2], 3, "obj")]  # fmt: skip
    lines = [f"{number}\t{word}\t{word}\tX\t_\t_\t{head}\t{relation}\t_\t_"
             for number, (word, head, relation) in enumerate(words, 1)]  # fmt: skip
    return "\n".join([f"# sent_id = tree-{at}", *lines, ""])


def _choice(name: str, at: int) -> str:
    """A row with two choices; `dog` is in one of them, most often in the right one."""
    right = at % 2 if at % 5 else 1 - at % 2
    choices = [text(2 + at % 3, seed=at + 7), f"{text(1 + at % 2, seed=at)} dog"]
    ordered = choices if at % 2 else choices[::-1]
    return "\t".join([f"{name}-{at}", text(3, seed=at), text(2, seed=at + 9), *ordered, str(right)])


def _sentence(name: str, at: int, seed: int) -> dict[str, object]:
    """A labelled prefix with up to two attractors, whose subject is the second word."""
    label, attractors = at % 2, (at // 2) % 3
    subjects, others = ("dog", "cat"), ("man", "hill")
    words = ["the", subjects[label], *(WORDS[(at + seed + step) % len(WORDS)] for step in range(1 + at % 4))]
    positions = []
    for _ in range(attractors):
        words += ["with", others[1 - label]]
        positions.append(len(words) - 1)
    return {
        "id": f"{name}-{at}",
        "text": " ".join(words),
        "words": words,
        "label": ("singular", "plural")[label],
        "attractors": attractors,
        "subject_position": 1,
        "attractor_positions": positions,
        "swapped_subject": subjects[1 - label],
    }


def tiny(name: str, **changes):
    """A study of a tiny model that takes seconds."""
    given = {
        "effective_attention": {
            "dev": str(place() / "dev.jsonl"),
            "train": str(place() / "train.jsonl"),
            "epochs": 1,
            "max_length": WIDTH,
        },
        "dark_secrets": {
            "dev": str(place() / "dev.jsonl"),
            "train": str(place() / "train.jsonl"),
            "relations": str(place() / "pairs.tsv"),
            "classifier": "rules",
            "epochs": 1,
            "max_length": WIDTH,
        },
        "attention_flow": {
            "dev": str(place() / "agreement_dev.jsonl"),
            "train": str(place() / "agreement_train.jsonl"),
            "epochs": 1,
            "max_length": WIDTH,
        },
        "what_heads_look_at": {
            "text": str(place() / "dev.jsonl"),
            "mlm_text": str(place() / "train.jsonl"),
            "dev": str(place() / "dev.jsonl"),
            "train": str(place() / "train.jsonl"),
            "treebank": str(place() / "trees.conllu"),
            "coreference": "winogender",
            "probe_limit": 24,
            "max_length": WIDTH,
        },
        "argument_cues": {
            "data": str(place() / "choices_train.tsv"),
            "dev": str(place() / "choices_dev.tsv"),
            "text": ("reason", "claim"),
            "choice": ("first", "second"),
            "label": "right",
            "cue": "dog",
            "epochs": 1,
            "baseline_epochs": 2,
            "max_length": WIDTH,
        },
        "sixteen_heads": {
            "dev": str(place() / "dev.jsonl"),
            "train": str(place() / "train.jsonl"),
            "epochs": 1,
            "max_length": WIDTH,
            "checkpoints": 2,
            "random_orders": 2,
        },
    }
    return studies.make(name, **{**given[name], **changes})


@cache
def found(name: str, again: int = 0):
    """The results of a tiny study; with another number it is run anew."""
    return tiny(name).run(place() / "base", place() / f"{name}-{again}", device="cpu")
