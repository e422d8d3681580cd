"""Find attention that is NaN, and say where: which layer, head and example."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import DataWarning
from headscope.core.prose import count_noun, join_words
from headscope.core.trace import Trace

MAX_NAMED = 4
"""How many places, and how many examples at each, a warning names."""


@dataclass(frozen=True)
class HeadLabels:
    """The labels of a table `batch layer head`."""

    ids: Sequence[str]
    layers: Sequence[int]
    heads: Sequence[int]
    pruned: frozenset[tuple[int, int]] = frozenset()  # layer and head of heads that are NaN because they were pruned

    @classmethod
    def of(cls, trace: Trace) -> "HeadLabels":
        """Return the labels of a trace."""
        return cls([example.id for example in trace.examples], trace.layers, trace.heads, trace.pruned)

    @classmethod
    def join(cls, parts: Sequence["HeadLabels"]) -> "HeadLabels":
        """Return the labels of the tables of single layers, concatenated."""
        layers, pruned = (
            [layer for part in parts for layer in part.layers],
            frozenset().union(*(p.pruned for p in parts)),
        )
        return cls(parts[0].ids, layers, parts[0].heads, pruned)

    def find_unexpected(self, nan: Bool[Tensor, "batch layer head"]) -> Bool[Tensor, "batch layer head"]:
        """Return where attention is NaN for another reason than that the head was pruned."""
        if not self.pruned:
            return nan
        pruned = [[(layer, head) in self.pruned for head in self.heads] for layer in self.layers]
        return nan & ~torch.tensor(pruned, device=nan.device)


def largest_values(*traces: Trace) -> Float[Tensor, "batch layer head"]:
    """Return one number for each head, which is not finite if its attention, or its values where held, are not.

    NaN in one of several traces is NaN in the result. A softmax with NaN in it is NaN everywhere, so that one column
    of A is enough. On a GPU this launches two kernels for each trace.
    """
    tables = [_largest_values(trace) for trace in traces]
    return reduce(torch.maximum, (table for table in tables if table.shape == tables[0].shape))


def _largest_values(trace: Trace) -> Float[Tensor, "batch layer head"]:
    parts = trace.context or [layer[..., :1] for layer in trace.attention]
    alike = len({part.shape for part in parts}) == 1  # one stacked tensor: a launch costs more than a copy
    stacks = [torch.stack(list(parts), dim=1)] if alike else [part[:, None] for part in parts]
    return torch.cat([torch.linalg.vector_norm(stack, torch.inf, (-1, -2)) for stack in stacks], dim=1)


def fill_nan(trace: Trace) -> Trace:
    """Return a trace with zeros in place of NaN and infinite numbers, for lenses that refuse these."""

    def clean(layers: Sequence[Tensor] | None) -> list[Tensor] | None:
        return (
            None if layers is None else [torch.nan_to_num(layer, nan=0.0, posinf=0.0, neginf=0.0) for layer in layers]
        )

    attention = clean(trace.attention) or []
    rest: dict[str, Any] = {name: clean(getattr(trace, name)) for name in ("values", "context", "gradient")}
    return replace(trace, attention=attention, **rest)


def drop_nan(values: Float[Tensor, "batch layer *axes"], nan: Bool[Tensor, "batch layer head"]) -> Tensor:
    """Return a statistic's values with NaN where attention is NaN: some would be numbers that mean nothing.

    A value that is not of one head is NaN if one of its heads is.

    >>> drop_nan(torch.ones(1, 2, 2), torch.tensor([[[False, False], [False, True]]])).tolist()
    [[[1.0, 1.0], [1.0, nan]]]
    """
    if values.shape[1:3] != nan.shape[1:3]:
        nan = nan.any(-1, keepdim=True) if values.shape[1] == nan.shape[1] else nan.flatten(1).any(-1)[:, None, None]
    return values.double().masked_fill(nan.reshape(*nan.shape, *[1] * (values.ndim - 3)), torch.nan)


def describe_nan(nan: Bool[Tensor, "batch layer head"], labels: HeadLabels) -> str:
    """Return a sentence that names the first layer with NaN in each example: those after it follow from it."""
    places: dict[str, list[str]] = {}
    for row in nan.flatten(1).any(-1).nonzero()[:, 0].tolist():
        layer = int(nan[row].any(-1).nonzero()[0])
        heads = [labels.heads[index] for index in nan[row, layer].nonzero()[:, 0].tolist()]
        named = "all heads" if len(heads) == len(labels.heads) > 1 else f"{_plural('head', heads)} {join_words(heads)}"
        places.setdefault(f"layer {labels.layers[layer]}, {named}", []).append(f"'{labels.ids[row]}'")
    texts = [
        f"{named_heads} of {_plural('example', ids)} {join_words(ids, limit=MAX_NAMED)}"
        for named_heads, ids in places.items()
    ]
    count = sum(map(len, places.values()))
    return (
        f"Attention or its values are NaN in {count} of {count_noun(len(nan), 'example')}: "
        f"{join_words(texts, limit=MAX_NAMED)}. Look for NaN or infinite weights in "
        "the model, or load it with another dtype."
    )


def _plural(noun: str, items: Sequence[object]) -> str:
    return noun if len(items) == 1 else f"{noun}s"


def warn_about_nan(trace: Trace, *, stacklevel: int = 3) -> bool:
    """Warn if attention is NaN, and return whether it is.

    On a GPU nothing is checked, because the host would wait: `warn_about_weights` does when maps are fetched.
    """
    if trace.attention[0].is_cuda:
        return False
    labels = HeadLabels.of(trace)
    nan = labels.find_unexpected(~largest_values(trace).isfinite())
    if not bool(nan.any()):
        return False
    warnings.warn(describe_nan(nan, labels), DataWarning, stacklevel=stacklevel)
    return True


def warn_about_weights(weights: Float[Tensor, "layer head query key"], labels: HeadLabels) -> None:
    """Warn if the weights of an example, fetched from a GPU, are NaN."""
    nan = labels.find_unexpected(weights.isnan().flatten(2).any(-1)[None])
    if bool(nan.any()):
        warnings.warn(describe_nan(nan, labels), DataWarning, stacklevel=4)
