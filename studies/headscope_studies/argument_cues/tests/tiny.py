"""A run on a tiny model that takes seconds, for the laws of studies."""

from tests.models import text
from tests.study_data import WIDTH


def options(folder):
    """The parameters; `folder` has labelled pairs, and gets what else is needed."""
    for name, many in (("choices_train", 24), ("choices_dev", 40)):
        rows = ["id\treason\tclaim\tfirst\tsecond\tright", *(_choice(name, at) for at in range(many))]
        (folder / f"{name}.tsv").write_text("\n".join(rows), encoding="utf-8")
    return {
        "data": str(folder / "choices_train.tsv"),
        "dev": str(folder / "choices_dev.tsv"),
        "text": ("reason", "claim"),
        "choice": ("first", "second"),
        "label": "right",
        "cue": "dog",
        "epochs": 1,
        "baseline_epochs": 2,
        "max_length": WIDTH,
    }


def _choice(name: str, at: int) -> str:
    """A row with two choices; `dog` is in one of them, most often in the right one."""
    right = at % 2 if at % 5 else 1 - at % 2
    choices = [text(2 + at % 3, seed=at + 7), f"{text(1 + at % 2, seed=at)} dog"]
    ordered = choices if at % 2 else choices[::-1]
    return "\t".join([f"{name}-{at}", text(3, seed=at), text(2, seed=at + 9), *ordered, str(right)])
