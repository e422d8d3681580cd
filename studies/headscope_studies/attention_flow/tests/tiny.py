"""A run on a tiny model that takes seconds, for the laws of studies."""

import json

from tests.models import WORDS
from tests.study_data import WIDTH


def options(folder):
    """The parameters; `folder` has labelled pairs, and gets what else is needed."""
    for name, many, seed in (("agreement_train", 24, 0), ("agreement_dev", 14, 7)):
        rows = [_sentence(name, at, seed) for at in range(many)]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return {
        "dev": str(folder / "agreement_dev.jsonl"),
        "train": str(folder / "agreement_train.jsonl"),
        "epochs": 1,
        "max_length": WIDTH,
    }


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
