"""The cells of a map that count: those where a query sees a key.

Rows of padding see nothing, so what is said here of rows that see nothing is said of padding too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from headscope.core.maps import Maps
from headscope.core.tokens import Tokens
from headscope.core.trace import Visible, at_least_float32

Weights = Float[Tensor, "batch head query key"]
PIECE = 2**18
"""How many cells a processor takes at a time."""

Reduction = Literal["sum", "max", "mean"]


@dataclass(frozen=True)
class Masses:
    """The weight of every row on each kind of key: as it is, of |w|, and which rows see a key of the kind."""

    signed: Float[Tensor, "batch layer head query kind"]
    absolute: Float[Tensor, "batch layer head query kind"]
    there: Bool[Tensor, "batch layer query kind"]


def iterate_layers(maps: Maps) -> Iterator[tuple[Weights, Visible]]:
    """Each layer's weights, in float32 at least, and who sees whom there."""
    for label, visible in zip(maps.layers, maps.visible, strict=True):
        yield at_least_float32(maps.layer(label)), visible


def map_rows(
    maps: Maps, function: Callable[..., Tensor], *beside: Num[Tensor, "batch query key"]
) -> Float[Tensor, "batch layer head query"]:
    """What a function of rows gives for every layer, from the weights, who sees whom, and what lies `beside` them."""
    return torch.stack([_in_pieces(function, *layer, *beside) for layer in iterate_layers(maps)], dim=1)


def absolute_weights(weights: Weights, visible: Visible) -> Weights:
    """|w| where a query sees a key, 0 elsewhere; a new tensor."""
    return (weights * visible[:, None].to(weights.dtype)).abs_()


def normalize_rows(weights: Weights, visible: Visible, smoothing: float = 0.0) -> Weights:
    """Each row as a distribution, |w| / Σ|w|; NaN where a row has no weight at all.

    `smoothing` s mixes in the uniform one: (1 − s)·p + s/n over the n keys that the query sees.
    """
    sizes = absolute_weights(weights, visible)
    whole = sizes.sum(-1, keepdim=True)
    if not smoothing:
        return sizes.div_(whole)
    even = smoothing / visible.sum(-1, keepdim=True)  # batch query 1
    return sizes.mul_((1 - smoothing) / whole).add_((visible * even)[:, None].nan_to_num(0.0))


def x_log_x(sizes: Float[Tensor, "*axes"]) -> Float[Tensor, "*axes"]:
    """x·log x, where 0·log 0 is 0: two quick passes, for `xlogy` takes one slow one."""
    return sizes.clamp_min(torch.finfo(sizes.dtype).tiny).log_().mul_(sizes)


def masked_mean(values: Float[Tensor, "*#axes"], there: Bool[Tensor, "*#axes"], *, dim: int) -> Tensor:
    """The float64 mean along one axis of the values that are there; NaN where none is."""
    total = (values * there).sum(dim, dtype=torch.float64)
    return total / there.sum(dim)


def mean_over_rows(rows: Float[Tensor, "batch layer head query"]) -> Float[Tensor, "batch layer head"]:
    """The float64 mean over the rows that have a value; NaN where none has."""
    found: Tensor = rows.double().nanmean(-1)
    return found


def padded_indices(mask: Bool[Tensor, "*axes token"]) -> tuple[Int[Tensor, "*axes some"], Bool[Tensor, "*axes some"]]:
    """Where a mask is true, as indices padded to the same number, and which of them are no padding.

    >>> padded_indices(torch.tensor([[False, True, True], [True, False, False]]))
    (tensor([[1, 2],
            [0, 1]]), tensor([[ True,  True],
            [ True, False]]))
    """
    most = max(1, int(mask.sum(-1).max()))  # tokens lie with the host, where this costs nothing
    there, index = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True)
    return index[..., :most], there[..., :most].bool()


def token_positions(tokens: Tokens) -> Int[Tensor, "batch token"]:
    """The place of each token among the real ones of its row, so that padding on either side does not matter."""
    return tokens.real.cumsum(-1) - 1


def sum_columns(maps: Maps, columns: Sequence[Tensor], several: Reduction, rows: Sequence[Tensor] = ()) -> Masses:
    """The weight of every row on each kind of key, where an example may have several keys of a kind.

    `columns` are the `places` of the keys of each kind: only these few are ever touched. `rows`, the places of some
    queries, takes their rows alone.
    """
    index, there = columns
    signed, absolute, counted = [], [], []
    for weights, visible in iterate_layers(maps):
        if rows:
            weights, visible = gather_rows(weights, visible, *rows)
        picked, seen = _columns(weights, visible, index, there)
        signed.append(_joined(picked, seen[:, None], several))
        absolute.append(_joined(picked.abs_(), seen[:, None], several))
        counted.append(seen.any(-1))
    return Masses(*(torch.stack(each, dim=1) for each in (signed, absolute, counted)))


def gather_rows(
    weights: Weights, visible: Visible, index: Int[Tensor, "batch some"], there: Bool[Tensor, "batch some"]
) -> tuple[Float[Tensor, "batch head some key"], Bool[Tensor, "batch some key"]]:
    """Only the rows of those queries; one that is not there sees nothing."""
    heads, keys = weights.shape[1], weights.shape[-1]
    rows = weights.gather(2, index[:, None, :, None].expand(-1, heads, -1, keys))
    return rows, visible.gather(1, index[..., None].expand(-1, -1, keys)) & there[..., None]


def _in_pieces(function: Callable[..., Tensor], weights: Weights, *beside: Tensor) -> Tensor:
    """Some rows at a time: what a piece needs on its way fits a processor's cache. A GPU takes them all."""
    batch, heads, queries, keys = weights.shape
    step = queries if weights.is_cuda else max(1, PIECE // (batch * heads * keys))
    pieces = (slice(start, start + step) for start in range(0, queries, step))
    return torch.cat([function(*(each[..., rows, :] for each in (weights, *beside))) for rows in pieces], dim=-1)


def _columns(
    weights: Weights, visible: Visible, index: Int[Tensor, "batch kind some"], there: Bool[Tensor, "batch kind some"]
) -> tuple[Float[Tensor, "batch head query kind some"], Bool[Tensor, "batch query kind some"]]:
    """The weights on a few keys of each kind, 0 where a query cannot see one, and who sees which."""
    (_, heads, queries, _), kinds = weights.shape, index.shape[1:]
    flat = index.flatten(1)
    seen = visible.gather(-1, flat[:, None].expand(-1, queries, -1)).view(-1, queries, *kinds) & there[:, None]
    picked = weights.gather(-1, flat[:, None, None].expand(-1, heads, queries, -1)).view(-1, heads, queries, *kinds)
    return picked * seen[:, None], seen


def _joined(picked: Float[Tensor, "*axes some"], seen: Bool[Tensor, "*#axes some"], several: Reduction) -> Tensor:
    """One number for several keys of a kind: the sum, the largest or the mean; without meaning where none is seen."""
    if several == "max":
        return picked.masked_fill(~seen, -torch.inf).amax(-1).nan_to_num(neginf=0.0)
    total = picked.sum(-1)
    return total / seen.sum(-1).clamp_min(1) if several == "mean" else total
