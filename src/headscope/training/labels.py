"""Check labels, and read their names and frequencies."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from headscope.core.errors import InputError
from headscope.core.example import Example


def check_labels(examples: Sequence[Example], where: str, label_type: type) -> None:
    """Raise InputError for examples without a label, or with one that is no `int`, or for `float` no number."""
    unlabeled = [example for example in examples if example.label is None]
    if len(unlabeled) == len(examples):
        raise InputError(
            f"None of the {len(examples):,} examples of {where} has a label. Name the column that holds it: "
            "hs.read(…, label=…), in the shell --label."
        )
    if unlabeled:
        raise InputError(
            f"{len(unlabeled):,} of the {len(examples):,} examples of {where} have no label, such as "
            f"'{unlabeled[0].id}'. Leave them out, or label them."
        )
    accepted = (int, float) if label_type is float else (int,)
    for example in examples:
        if not isinstance(example.label, accepted) or isinstance(example.label, bool):
            expected = "a number" if label_type is float else "a whole number that counts the classes"
            raise InputError(
                f"The label of example '{example.id}' of {where} is {example.label!r}, where {expected} is expected. "
                "Number the classes, or choose another task: task='regression' learns any number."
            )


def check_several_labels(train: Sequence[Example]) -> None:
    """Raise InputError if all training examples have the same label."""
    if len({example.label for example in train}) == 1:
        raise InputError(
            f"All {len(train):,} training examples have the label {train[0].label}, so there is nothing to learn. Give "
            "examples with other labels."
        )


def read_class_names(examples: Iterable[Example], where: str) -> dict[int, str]:
    """Return the names of labels, where the examples have them (column label_name)."""
    names: dict[int, str] = {}
    for example in examples:
        name = example.columns.get("label_name")
        if name is not None and example.label is not None:
            first = names.setdefault(int(example.label), str(name))
            if first != str(name):
                raise InputError(
                    f"The label {example.label} has two names in {where}: '{first}' and '{name}'. Give each class one."
                )
    return names


def find_majority(labels: Iterable[Any]) -> tuple[int, float]:
    """Return the most common label, and its share.

    >>> find_majority([0, 1, 1, 1])
    (1, 0.75)
    """
    counts = Counter(int(label) for label in labels)
    label, count = max(counts.items(), key=lambda item: (item[1], -item[0]))
    return label, count / counts.total()
