"""A run on a tiny model that takes seconds, for the laws of studies."""

from tests.study_data import WIDTH


def options(folder):
    """The parameters; `folder` has labelled pairs, and gets what else is needed."""
    return {
        "dev": str(folder / "dev.jsonl"),
        "train": str(folder / "train.jsonl"),
        "epochs": 1,
        "max_length": WIDTH,
        "rows": 1,
        "keys": 4,
    }
