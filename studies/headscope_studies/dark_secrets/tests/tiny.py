"""A run on a tiny model that takes seconds, for the laws of studies."""

from tests.models import text
from tests.study_data import WIDTH


def options(folder):
    """The parameters; `folder` has labelled pairs, and gets what else is needed."""
    pairs = [f"{text(6 + at % 3, seed=at)}\t{at % 5}\t5\t{('subject', 'object')[at % 2]}" for at in range(24)]
    (folder / "pairs.tsv").write_text("\n".join(["text\tword_i\tword_j\trelation", *pairs]), encoding="utf-8")
    return {
        "dev": str(folder / "dev.jsonl"),
        "train": str(folder / "train.jsonl"),
        "epochs": 1,
        "max_length": WIDTH,
        "relations": str(folder / "pairs.tsv"),
        "classifier": "rules",
    }
