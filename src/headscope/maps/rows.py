"""Rows and columns of attention maps, restricted to the cells where a query sees a key.

Padding sees no key and is seen by no query, so it is excluded in the same way.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int, Num, Shaped
from torch import Tensor

from headscope.core.maps import Maps
from headscope.core.maps.factored import Factored
from headscope.core.tokens import Tokens
from headscope.core.trace import Visible, at_least_float32

Weights = Float[Tensor, "batch head query key"]
BLOCK_CELLS = 2**18
"""Number of cells that a CPU processes at a time, so that intermediate results fit its cache."""

Reduction = Literal["sum", "max", "mean"]
AnyReduction = Literal["sum", "max", "mean", "all"]
"""How a statistic reduces the weights on several keys to one; "all" gives it an axis with every reduction."""

REDUCTIONS: tuple[Reduction, ...] = ("max", "mean", "sum")


@dataclass(frozen=True)
class ColumnWeights:
    """The weight of every row on each group of keys, signed and of |w|, and how many of these keys the row sees."""

    signed: Float[Tensor, "batch layer head query group several"]
    absolute: Float[Tensor, "batch layer head query group several"]
    counts: Int[Tensor, "batch layer query group"]

    @property
    def visible(self) -> Bool[Tensor, "batch layer query group"]:
        """Which rows see a key of the group."""
        return self.counts > 0


def iterate_layers(maps: Maps) -> Iterator[tuple[Weights, Visible]]:
    """Yield each layer's weights, in float32 at least, and its visibility mask."""
    for label, visible in zip(maps.layers, maps.visible, strict=True):
        yield at_least_float32(maps.layer(label)), visible


def map_rows(
    maps: Maps,
    function: Callable[..., Tensor],
    *tables: Shaped[Tensor, "batch query key"],
    rows: Sequence[Tensor] = (),
) -> Float[Tensor, "batch layer head query"]:
    """Apply a function of rows to every layer, and return one value per row.

    On a CPU the function is called with blocks of rows: of the weights, of the mask, and of each of `tables`. So the
    value of a row may depend on that row alone. `rows`, the `padded_indices` of some queries, selects these rows first.
    """
    layers = []
    for weights, visible in iterate_layers(maps):
        block = gather_rows(weights, visible, *rows) if rows else (weights, visible)
        layers.append(apply_in_blocks(function, *block, *tables))
    return torch.stack(layers, dim=1)


def apply_in_blocks(function: Callable[..., Tensor], weights: Weights, *tables: Tensor) -> Tensor:
    """Apply a function of rows to blocks of them, from every table; a GPU processes all rows at once.

    The last axis of its result is the query.
    """
    batch, heads, queries, keys = weights.shape
    step = queries if weights.is_cuda else max(1, BLOCK_CELLS // (batch * heads * keys))
    blocks = (slice(start, start + step) for start in range(0, queries, step))
    return torch.cat([function(*(table[..., block, :] for table in (weights, *tables))) for block in blocks], dim=-1)


def hide_cells(values: Float[Tensor, "*#axes"], mask: Bool[Tensor, "*#axes"]) -> Float[Tensor, "*axes"]:
    """Return the values where a mask is true, 0 elsewhere, also where they are NaN there."""
    return torch.where(mask, values, values.new_zeros(()))


def find_nan_maps(maps: Maps) -> Bool[Tensor, "batch layer head"]:
    """Return which maps have NaN or an infinite weight where a query sees a key."""
    layers = []
    for label, visible in zip(maps.layers, maps.visible, strict=True):
        weights = maps.layer(label)
        dtype = torch.promote_types(weights.dtype, torch.float32)
        finite = weights.sum(-1, dtype=dtype).isfinite()
        if weights.is_cuda or not bool(finite.all()):  # a GPU would have to wait for that
            finite = hide_cells(weights, visible[:, None]).sum(-1, dtype=dtype).isfinite()
        layers.append(~finite.all(-1))
    return torch.stack(layers, dim=1)


def absolute_weights(weights: Weights, visible: Visible) -> Weights:
    """Return |w| where a query sees a key, 0 elsewhere, as a new tensor."""
    return hide_cells(weights, visible[:, None]).abs_()


def normalize_rows(weights: Weights, visible: Visible, smoothing: float = 0.0) -> Weights:
    """Return each row as a distribution, |w| / Σ|w|; NaN where a row has no weight.

    `smoothing` s mixes in the uniform distribution: (1 − s)·p + s/n over the n keys that the query sees.
    """
    sizes = absolute_weights(weights, visible)
    total = sizes.sum(-1, keepdim=True)
    if not smoothing:
        return sizes.div_(total)
    uniform = smoothing / visible.sum(-1, keepdim=True)  # batch query 1
    return sizes.mul_((1 - smoothing) / total).add_((visible * uniform)[:, None].nan_to_num(0.0))


def x_log_x(sizes: Float[Tensor, "*axes"]) -> Float[Tensor, "*axes"]:
    """Return x·log x, with 0·log 0 = 0; faster than `torch.xlogy`."""
    return sizes.clamp_min(torch.finfo(sizes.dtype).tiny).log_().mul_(sizes)


@dataclass(frozen=True)
class Sums:
    """Two sums whose quotient is a value; sums of blocks of rows add."""

    total: Float[Tensor, "*axes"]
    count: Num[Tensor, "*#axes"]

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.total + other.total, self.count + other.count)

    @property
    def mean(self) -> Float[Tensor, "*axes"]:
        """The quotient; NaN where nothing was counted."""
        quotient: Tensor = self.total / self.count
        return quotient


def masked_sums(values: Float[Tensor, "*#axes"], mask: Bool[Tensor, "*#axes"], *, dim: int) -> Sums:
    """Return the float64 sum along one axis where the mask is true, and how often it is."""
    return Sums(hide_cells(values, mask).sum(dim, dtype=torch.float64), mask.sum(dim))


def sum_rows(rows: Float[Tensor, "batch layer head query"]) -> Sums:
    """Return the float64 sum over the rows that have a value, and their number."""
    return Sums(rows.double().nansum(-1), (~rows.isnan()).sum(-1))


def mean_over_rows(rows: Float[Tensor, "batch layer head query"]) -> Float[Tensor, "batch layer head"]:
    """Return the float64 mean over the rows that have a value; NaN where none has."""
    return sum_rows(rows).mean


def rows_with_keys(maps: Maps) -> Bool[Tensor, "batch layer query"]:
    """Return which queries see any key."""
    return torch.stack([visible.any(-1) for visible in maps.visible], dim=1)


def padded_indices(mask: Bool[Tensor, "*axes token"]) -> tuple[Int[Tensor, "*axes n"], Bool[Tensor, "*axes n"]]:
    """Return the indices where a mask is true, padded to the same number, and which of them are not padding.

    >>> padded_indices(torch.tensor([[False, True, True], [True, False, False]]))
    (tensor([[1, 2],
            [0, 1]]), tensor([[ True,  True],
            [ True, False]]))
    """
    width = max(1, int(mask.sum(-1).max()))  # tokens are on the host, so this causes no synchronisation
    valid, index = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True)
    return index[..., :width], valid[..., :width].bool()


def token_positions(tokens: Tokens) -> Int[Tensor, "batch token"]:
    """Return the position of each token among the real tokens of its row, whichever side is padded."""
    return tokens.real.cumsum(-1) - 1


def select_key(layer: Weights | Factored, key: Int[Tensor, " batch"]) -> Float[Tensor, "batch head query"]:
    """Return the weights of every row on one key of each example; of a factored map, only this column is computed."""
    if isinstance(layer, Factored):
        index = key[:, None, None, None].expand(-1, layer.right.shape[1], 1, layer.right.shape[-1])
        return (layer.left @ layer.right.gather(2, index).mT)[..., 0]
    return at_least_float32(layer.gather(-1, key[:, None, None, None].expand(-1, *layer.shape[1:3], 1))[..., 0])


def gather_rows(
    weights: Weights, visible: Visible, index: Int[Tensor, "batch n"], valid: Bool[Tensor, "batch n"]
) -> tuple[Float[Tensor, "batch head n key"], Bool[Tensor, "batch n key"]]:
    """Select the rows of some queries; an index that is not valid gives a row that sees no key."""
    heads, keys = weights.shape[1], weights.shape[-1]
    rows = weights.gather(2, index[:, None, :, None].expand(-1, heads, -1, keys))
    return rows, visible.gather(1, index[..., None].expand(-1, -1, keys)) & valid[..., None]


def reduce_columns(
    maps: Maps, columns: Sequence[Tensor], reduction: AnyReduction, rows: Sequence[Tensor] = ()
) -> ColumnWeights:
    """Return the weight of every row on each group of keys, the keys of a group reduced to one number.

    `columns` are the `padded_indices` of the keys of each group; no other column is read. `rows`, the
    `padded_indices` of some queries, selects these rows first. The last axis has the reductions: one, or all.
    """
    reductions = REDUCTIONS if reduction == "all" else (reduction,)
    reduce = _reduce_picked if "max" in reductions else _reduce_summed
    layers = []
    for weights, visible in iterate_layers(maps):
        selected = gather_rows(weights, visible, *rows) if rows else (weights, visible)
        layers.append(reduce(*selected, columns, reductions))
    return ColumnWeights(*(torch.stack(tables, dim=1) for tables in zip(*layers, strict=True)))


def _reduce_picked(
    weights: Weights, visible: Visible, columns: Sequence[Tensor], reductions: Sequence[Reduction]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return signed and absolute weights and counts from the columns of the groups; no other column is read."""
    picked, mask = _gather_columns(weights, visible, *columns)
    signed = _reduce(picked, mask[:, None], reductions)
    return signed, _reduce(picked.abs_(), mask[:, None], reductions), mask.sum(-1)


def _reduce_summed(
    weights: Weights, visible: Visible, columns: Sequence[Tensor], reductions: Sequence[Reduction]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return signed and absolute sums and means, and counts, as products with the groups: fast for large groups."""
    index, valid = columns
    group = torch.zeros(len(index), visible.shape[-1], index.shape[1], dtype=weights.dtype, device=weights.device)
    group = group.mT.scatter_add(-1, index, valid.to(weights.dtype)).mT  # batch key group
    counts = visible.to(weights.dtype) @ group
    seen = hide_cells(weights, visible[:, None])
    totals = [table @ group[:, None] for table in (seen, seen.abs())]
    divisors = {"sum": torch.ones_like(counts), "mean": counts.clamp_min(1)}
    signed, absolute = (
        torch.stack([total / divisors[reduction][:, None] for reduction in reductions], dim=-1) for total in totals
    )
    return signed, absolute, counts.round().long()


def _gather_columns(
    weights: Weights, visible: Visible, index: Int[Tensor, "batch group n"], valid: Bool[Tensor, "batch group n"]
) -> tuple[Float[Tensor, "batch head query group n"], Bool[Tensor, "batch query group n"]]:
    """Return the weights on the keys of each group, 0 where a query does not see the key, and the mask of these."""
    (_, heads, queries, _), shape = weights.shape, index.shape[1:]
    flat = index.flatten(1)
    mask = visible.gather(-1, flat[:, None].expand(-1, queries, -1)).view(-1, queries, *shape) & valid[:, None]
    picked = weights.gather(-1, flat[:, None, None].expand(-1, heads, queries, -1)).view(-1, heads, queries, *shape)
    return hide_cells(picked, mask[:, None]), mask


def _reduce(
    picked: Float[Tensor, "*axes n"], mask: Bool[Tensor, "*#axes n"], reductions: Sequence[Reduction]
) -> Float[Tensor, "*axes several"]:
    """Return the maximum, mean or sum where the mask is true; 0 where it never is."""
    reduced = []
    for reduction in reductions:
        if reduction == "max":
            reduced.append(picked.masked_fill(~mask, -torch.inf).amax(-1).nan_to_num(neginf=0.0))
        else:
            total = picked.sum(-1)
            reduced.append(total / mask.sum(-1).clamp_min(1) if reduction == "mean" else total)
    return torch.stack(reduced, dim=-1)
