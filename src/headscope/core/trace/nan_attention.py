"""Find attention, values and maps that are NaN or infinite, and say where: which layer, head and example."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import DataWarning
from headscope.core.prose import count_noun, join_words
from headscope.core.trace import Trace

HeadMask = Bool[Tensor, "batch layer _"]  # _ is head, or 1 for maps that merge heads
MAX_NAMED = 4
"""How many places, and how many examples at each, a warning names."""

REMEDY = "Look for NaN or infinite weights in the model, or load it with another dtype."


@dataclass(frozen=True)
class HeadLabels:
    """The labels of a table `batch layer head`."""

    ids: Sequence[str]
    layers: Sequence[int]
    heads: Sequence[int]
    pruned: frozenset[tuple[int, int]] = frozenset()  # layer and head of heads that are NaN because they were pruned

    @classmethod
    def from_trace(cls, trace: Trace) -> "HeadLabels":
        """Return the labels of a trace."""
        return cls([example.id for example in trace.examples], trace.layers, trace.heads, trace.pruned)

    @classmethod
    def join(cls, tables: Sequence["HeadLabels"]) -> "HeadLabels":
        """Concatenate the labels of single layers."""
        layers, pruned = (
            [layer for table in tables for layer in table.layers],
            frozenset().union(*(p.pruned for p in tables)),
        )
        return cls(tables[0].ids, layers, max((table.heads for table in tables), key=len), pruned)

    def find_unexpected(self, nan: HeadMask) -> HeadMask:
        """Return where attention is NaN although the head was not pruned."""
        if not self.pruned or nan.shape[1:] != (len(self.layers), len(self.heads)):
            return nan
        pruned = [[(layer, head) in self.pruned for head in self.heads] for layer in self.layers]
        return nan & ~torch.tensor(pruned, device=nan.device)


def largest_values(trace: Trace) -> dict[str, Float[Tensor, "batch layer head"]]:
    """Return one number per head for its attention, and one for its values where held; not finite if any entry is not.

    A softmax with NaN in it is NaN everywhere, so that one column of A is enough. On a GPU this launches two kernels
    for each table.
    """
    tables = {"attention": _largest([layer[..., :1] for layer in trace.attention])}
    return tables if trace.values is None else {**tables, "values": _largest(trace.values)}


def _largest(layers: Sequence[Tensor]) -> Float[Tensor, "batch layer head"]:
    alike = len({layer.shape for layer in layers}) == 1  # one stacked tensor: a launch costs more than a copy
    stacks = [torch.stack(list(layers), dim=1)] if alike else [layer[:, None] for layer in layers]
    return torch.cat([_largest_of_rows(stack) for stack in stacks], dim=1)


def _largest_of_rows(stack: Tensor) -> Tensor:
    """Return the largest absolute entry of each matrix, or NaN; on a CPU in a 20th of the time of the norm."""
    if not stack.is_cuda:
        return stack.abs().amax((-1, -2))
    largest: Tensor = torch.linalg.vector_norm(stack, torch.inf, (-1, -2))
    return largest


def find_nan(trace: Trace) -> dict[str, HeadMask]:
    """Return where the attention and, where held, the values of a trace are NaN or infinite."""
    return {source: ~table.isfinite() for source, table in largest_values(trace).items()}


def fill_nan(trace: Trace) -> Trace:
    """Return a trace with zeros in place of NaN and infinite numbers, for lenses that refuse these."""

    def clean(layers: Sequence[Tensor] | None) -> list[Tensor] | None:
        return (
            None if layers is None else [torch.nan_to_num(layer, nan=0.0, posinf=0.0, neginf=0.0) for layer in layers]
        )

    attention = clean(trace.attention) or []
    rest: dict[str, Any] = {name: clean(getattr(trace, name)) for name in ("values", "context", "gradient")}
    return replace(trace, attention=attention, **rest)


def describe_nan(tables: Mapping[str, HeadMask], labels: HeadLabels) -> str:
    """Return a sentence for attention, for values and for both that names the first layer with NaN in each example.

    `tables` is the result of `find_nan`. Layers after the first follow from it.
    """
    places: dict[tuple[str, ...], dict[str, list[str]]] = {}
    either = torch.stack(list(tables.values())).any(0)
    first = 0
    for row in either.flatten(1).any(-1).nonzero()[:, 0].tolist():
        layer = int(either[row].any(-1).nonzero()[0])
        first = max(first, layer)
        heads: dict[tuple[str, ...], list[int]] = {}
        for index in either[row, layer].nonzero()[:, 0].tolist():
            sources = tuple(source for source, nan in tables.items() if bool(nan[row, layer, index]))
            heads.setdefault(sources, []).append(labels.heads[index])
        for sources, head_numbers in heads.items():
            where = f"layer {labels.layers[layer]}, {_name_heads(head_numbers, labels)}"
            places.setdefault(sources, {}).setdefault(where, []).append(f"'{labels.ids[row]}'")
    texts = [_describe_source(sources, where, len(either)) for sources, where in places.items()]
    if first > 0 and "values" not in tables:
        texts.append("The values of lower layers were not captured: NaN may begin there.")
    return " ".join(texts)


def _describe_source(sources: tuple[str, ...], places: Mapping[str, Sequence[str]], total: int) -> str:
    verb = "is" if sources == ("attention",) else "are"
    text = f"{' and '.join(sources).capitalize()} {verb} NaN or infinite in {_describe_places(places, total)}"
    return f"{text} Attention is finite there." if sources == ("values",) else text


def describe_maps(nan: HeadMask, labels: HeadLabels) -> str:
    """Return where maps are NaN, "3 of 8 examples: layer 1, head 2 of examples …", with the first layer of each."""
    places: dict[str, list[str]] = {}
    for row in nan.flatten(1).any(-1).nonzero()[:, 0].tolist():
        layer = int(nan[row].any(-1).nonzero()[0])
        heads = [labels.heads[index] for index in nan[row, layer].nonzero()[:, 0].tolist()]
        where = f"layer {labels.layers[layer]}" + (f", {_name_heads(heads, labels)}" if nan.shape[-1] > 1 else "")
        places.setdefault(where, []).append(f"'{labels.ids[row]}'")
    return _describe_places(places, len(nan))


def _describe_places(places: Mapping[str, Sequence[str]], total: int) -> str:
    texts = [
        f"{where} of {_plural('example', ids)} {join_words(ids, limit=MAX_NAMED)}" for where, ids in places.items()
    ]
    count = len({name for ids in places.values() for name in ids})
    return f"{count} of {count_noun(total, 'example')}: {join_words(texts, limit=MAX_NAMED)}."


def _name_heads(heads: Sequence[int], labels: HeadLabels) -> str:
    if len(heads) == len(labels.heads) > 1:
        return "all heads"
    return f"{_plural('head', heads)} {join_words(heads)}"


def _plural(noun: str, items: Sequence[object]) -> str:
    return noun if len(items) == 1 else f"{noun}s"


def warn_about_nan(trace: Trace, *, stacklevel: int = 3) -> bool:
    """Warn if attention or values are NaN, and return whether they are.

    On a GPU nothing is checked, because the host would wait: `warn_about_weights` does when maps are fetched.
    """
    if trace.attention[0].is_cuda:
        return False
    labels = HeadLabels.from_trace(trace)
    tables = {source: labels.find_unexpected(nan) for source, nan in find_nan(trace).items()}
    if not any(bool(nan.any()) for nan in tables.values()):
        return False
    warnings.warn(f"{describe_nan(tables, labels)} {REMEDY}", DataWarning, stacklevel=stacklevel)
    return True


def warn_about_weights(weights: Float[Tensor, "layer head query key"], labels: HeadLabels) -> None:
    """Warn if the weights of an example, fetched from a GPU, are NaN."""
    nan = labels.find_unexpected(weights.isnan().flatten(2).any(-1)[None])
    if bool(nan.any()):
        text = f"These maps are NaN or infinite in {describe_maps(nan, labels)} {REMEDY}"
        warnings.warn(text, DataWarning, stacklevel=4)
