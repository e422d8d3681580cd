"""The labels of a batch, as a prediction or its loss needs them."""

from collections.abc import Sequence
from typing import Any

from headscope.core.errors import InputError
from headscope.data.labels import check_not_alphabetical, match_labels
from headscope.engine.batch import Inputs


def find_labels(inputs: Inputs, names: Sequence[str]) -> list[int]:
    """Return the label of each example, from the examples or from a tokenised batch."""
    label_tensor = inputs.tensors.get("labels")
    if label_tensor is None:
        labels: list[Any] = [example.label for example in match_labels(inputs.examples, names, "the data")]
    else:
        labels = label_tensor.tolist()
    for example, label in zip(inputs.examples, labels, strict=True):
        if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < len(names):
            raise InputError(
                f"target='label' needs the label of each example as a number from 0 to {len(names) - 1}, but that of "
                f"example '{example.id}' is {label!r}. Give labels, or target='predicted'."
            )
    return list(labels)


def find_numbers(inputs: Inputs) -> list[float]:
    """Return the number that is right for each example."""
    check_not_alphabetical(inputs.examples, "the data", "a number")
    for example in inputs.examples:
        if not isinstance(example.label, int | float):
            raise InputError(
                f"target='loss' needs the number that is right for each example, but the label of example "
                f"'{example.id}' is {example.label!r}. Give labels, or target='predicted'."
            )
    return [float(example.label or 0) for example in inputs.examples]
