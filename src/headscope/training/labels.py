"""Labels, looked at before they are trusted."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from headscope.core.errors import InputError
from headscope.core.example import Example


def check_labels(examples: Sequence[Example], where: str, kind: type) -> None:
    """Refuse examples without a label, or with one of another kind (`int` or `float`, which takes both)."""
    bare = [each for each in examples if each.label is None]
    if len(bare) == len(examples):
        raise InputError(
            f"None of the {len(examples):,} examples of {where} has a label. Name the column that holds it: "
            "hs.read(…, label=…), in the shell --label."
        )
    if bare:
        raise InputError(
            f"{len(bare):,} of the {len(examples):,} examples of {where} have no label, such as '{bare[0].id}'. Leave "
            "them out, or label them."
        )
    known = (int, float) if kind is float else (int,)
    wrong = [each for each in examples if not isinstance(each.label, known) or isinstance(each.label, bool)]
    if wrong:
        expected = "a number" if kind is float else "a whole number that counts the classes"
        raise InputError(
            f"The label of example '{wrong[0].id}' of {where} is {wrong[0].label!r}, where {expected} is expected. "
            "Number the classes, or choose another task: task='regression' learns any number."
        )


def named(examples: Iterable[Example], where: str) -> dict[int, str]:
    """The names of labels, where the examples have them (column label_name)."""
    found: dict[int, str] = {}
    for each in examples:
        name = each.columns.get("label_name")
        if name is not None and each.label is not None:
            known = found.setdefault(int(each.label), str(name))
            if known != str(name):
                raise InputError(
                    f"The label {each.label} has two names in {where}: '{known}' and '{name}'. Give each class one."
                )
    return found


def majority(labels: Iterable[Any]) -> tuple[int, float]:
    """The most common label, and its share of all.

    >>> majority([0, 1, 1, 1])
    (1, 0.75)
    """
    counts = Counter(int(each) for each in labels)
    label, many = max(counts.items(), key=lambda pair: (pair[1], -pair[0]))
    return label, many / counts.total()
