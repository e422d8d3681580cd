"""Effective attention where queries differ in the keys they see: causal, prefix and sliding-window masks.

Each row is projected within its own keys. Where these are nested (every query sees the first m keys, in some order),
all rows of all heads are computed in a few batched products. The keys after the first d come in chunks. With L·Lᵀ the
Gram matrix of the keys before a chunk and W the keys of the chunk, whitened by L⁻¹, the Gram matrix of a row that sees
the first p of them is I + Σ wₜwₜᵀ, and its inverse is I − Σ nₜnₜᵀ with N = C⁻¹·W and C·Cᵀ = I + W·Wᵀ: a mask over t
selects the terms of each row. Key-value heads that several query heads share are factored once.

As in `projection`, there are two code paths: this one, for rows whose full rank is proved, and each remaining row as a
projection of its own. Beside the rounding to float32, the error of this path is about eps64 · κ² / 10, with κ at most
1e5. Absolute error of a map against a float64 decomposition of each row: at most 1e-6.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.effective.cholesky import bound_norm, cholesky_inverse, proves_rank
from headscope.effective.projection import project, rank_tolerance
from headscope.effective.visibility import Visibility

CHUNK = 32
"""Number of keys in a chunk."""

MAX_CONDITION = 1e5
"""Condition bound up to which the rows of a chunk are exact: their error is about eps64 · κ² / 10."""

ROW_BYTES = 2**28
"""Memory for the copies of V that single rows may take at a time."""

Attention = Float[Tensor, "batch head query key"]


@dataclass(frozen=True)
class RowProjection:
    """Effective attention of the layers that share a mask, and the rank of each row."""

    effective: list[Attention]
    rank: Int[Tensor, "layer batch value_head query"]


GRAM_STEP = 512
"""Number of keys between two Gram matrices that are kept for rows that begin late."""


class NestedKeys:
    """Values in an order of keys of which each row sees the first ones, with what all rows share."""

    def __init__(
        self,
        values: Float[Tensor, "layer batch value_head key value"],
        keys: Bool[Tensor, "batch key"],
        order: Int[Tensor, "batch key"] | None,
    ) -> None:
        """Take the visible keys in an order; None is their own."""
        self.wide = values.double() * keys[:, None, :, None]
        self.sorted = order is None
        self.prefix = self.wide
        if order is not None:
            self.prefix = self.wide.gather(-2, order[None, :, None, :, None].expand_as(self.wide))

    @cached_property
    def short_proved(self) -> Bool[Tensor, "layer batch value_head key"]:
        """For each m up to the number of value dimensions, whether the first m rows are proved independent."""
        return _prove_short(self.prefix[..., : self.prefix.shape[-1], :])

    def gram(self, starts: Sequence[int]) -> Float[Tensor, "layer batch value_head value value"]:
        """Return the Gram matrix of the first keys of each example; starts are those of the examples."""
        if max(starts) <= 2 * GRAM_STEP and len(set(starts)) == 1:
            base = self.prefix[..., : starts[0], :]
            return base.mT @ base
        grams = []
        for example, start in enumerate(starts):
            step = min(start // GRAM_STEP, self._grams.shape[-3] - 1)
            rest = self.prefix[:, example, :, step * GRAM_STEP : start]
            grams.append(self._grams[:, example, :, step] + rest.mT @ rest)
        return torch.stack(grams, dim=1)

    @cached_property
    def _grams(self) -> Float[Tensor, "layer batch value_head step value value"]:
        """The Gram matrices of the first 0, GRAM_STEP, 2 · GRAM_STEP … keys."""
        chunks = torch.split(self.prefix, GRAM_STEP, dim=-2)
        grams = [chunk.mT @ chunk for chunk in chunks]
        return torch.stack([torch.zeros_like(grams[0]), *grams], dim=-3).cumsum(-3)


def project_rows(
    attention: Sequence[Attention],
    values: Float[Tensor, "layer batch value_head key value"],
    visible: Bool[Tensor, "batch query key"],
    structure: Visibility,
    nested: NestedKeys | None = None,
) -> RowProjection:
    """Project each row of attention within the keys that it can see; `nested` is what rows seen before share."""
    counts = structure.counts.to(visible.device)
    rank = counts.clamp(max=values.shape[-1])[None, :, None].expand(*values.shape[:3], -1).clone()
    if structure.order is None or values.dtype == torch.float64:
        result = [torch.zeros_like(weights, dtype=values.dtype) for weights in attention]
        lost = (counts > 0)[None, :, None].expand_as(rank)
    else:
        order = None if structure.sorted else structure.order
        nested = nested or NestedKeys(values, visible.any(1), order)
        result, proved = _project_nested(attention, nested, visible, structure.counts)
        lost = ~proved & (counts > 0)[:, None]
    if bool(lost.any()):
        _project_lost(attention, values, visible, lost, result, rank)
    return RowProjection(result, rank)


def _project_nested(
    attention: Sequence[Attention], nested: NestedKeys, visible: Tensor, counts: Int[Tensor, "batch query"]
) -> tuple[list[Attention], Bool[Tensor, "layer batch value_head query"]]:
    """Compute all rows on the full-rank path, and return for which of them full rank is proved."""
    wide = nested.wide[..., : visible.shape[-1], :]
    value = wide.shape[-1]
    device_counts = counts.to(wide.device)
    proved = nested.short_proved.gather(
        -1, (device_counts.clamp(max=value) - 1).clamp(min=0)[:, None].expand(*wide.shape[:3], -1)
    )
    result = [weights.new_empty(weights.shape, dtype=torch.float32) for weights in attention]
    # rows that see no more keys than value dimensions lose nothing if those are independent: A_eff = A
    tall = (counts > value).any(0).nonzero()[:, 0].tolist()
    first = tall[0] if tall else counts.shape[1]
    for weights, effective in zip(attention, result, strict=True):
        effective[:, :, :first] = weights[:, :, :first]
    if not tall:
        return result, proved
    starts = _find_starts(counts[:, first:], value)
    chunks = _Chunks.from_counts(counts[:, first:], starts)
    factors = _factor(nested, starts, chunks)
    rows = _Rows(attention, wide, visible, counts, first, nested.sorted)
    solved = _solve(rows.contexts(), factors, chunks)  # layer batch value_head group row value
    short = (device_counts[:, first:] <= value)[:, None, :, None]
    rows.write(solved, short, result)
    chunk = chunks.chunk.to(wide.device)[:, None].expand(*wide.shape[:3], -1)
    condition = factors.condition.gather(-1, chunk)
    exact = proves_rank(condition, rank_tolerance(device_counts[:, None, first:], value)) & (condition < MAX_CONDITION)
    tall_proved = torch.where(short[..., 0], proved[..., first:], exact)
    return result, torch.cat([proved[..., :first], tall_proved], -1)


def _find_starts(counts: Int[Tensor, "batch row"], value: int) -> list[int]:
    """Return for each example how many keys lie before its first chunk; chunks are the same whatever rows there are."""
    tall = torch.where(counts > value, counts, counts.amax()).amin(-1)
    starts: list[int] = (value + (tall - value - 1).clamp(min=0) // CHUNK * CHUNK).tolist()
    return starts


def _prove_short(rows: Float[Tensor, "*shape key value"]) -> Bool[Tensor, "*shape key"]:
    """Return for each m whether the first m rows are proved independent, so that A_eff = A for them.

    Leading blocks of a Cholesky factor, and of its inverse, are those of the leading blocks of the matrix.
    """
    gram = rows @ rows.mT
    diagonal = gram.diagonal(dim1=-2, dim2=-1)
    scale = diagonal.sum(-1, keepdim=True) / rows.shape[-2]
    padded = gram + torch.diag_embed((diagonal == 0) * torch.where(scale > 0, scale, 1))  # rows of padding
    factor, failed = torch.linalg.cholesky_ex(padded)
    eye = torch.eye(rows.shape[-2], dtype=gram.dtype, device=gram.device)
    lower = torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False)
    size = torch.minimum(diagonal.cumsum(-1).sqrt(), bound_norm(gram)[..., None])
    condition = size * lower.square().sum(-1).cumsum(-1).sqrt()
    count = torch.arange(1, rows.shape[-2] + 1, device=rows.device)
    factored = (failed[..., None] == 0) | (count < failed[..., None])  # the first `failed - 1` rows have a factor
    independent = proves_rank(condition, rank_tolerance(count, rows.shape[-1])) & factored
    proved: Tensor = independent & ((diagonal > 0).cumsum(-1) == count)
    return proved


@dataclass(frozen=True)
class _Chunks:
    """Which chunk of keys the last key of each row is in, and slots for the rows of each chunk."""

    chunk: Int[Tensor, "batch row"]
    row: Int[Tensor, "batch chunk slot"]  # the row in each slot, 0 in empty ones
    slot: Int[Tensor, "batch row"]  # chunk · slots + slot of each row
    added: Int[Tensor, "batch chunk slot"]  # number of keys of the chunk that the row in a slot sees

    @classmethod
    def from_counts(cls, counts: Int[Tensor, "batch row"], starts: Sequence[int]) -> "_Chunks":
        """Assign rows to chunks by the number of keys that they see; all tensors are on the CPU."""
        beyond = (counts - torch.tensor(starts)[:, None] - 1).clamp(min=0)
        chunk = beyond // CHUNK
        number = int(chunk.max()) + 1
        member = torch.nn.functional.one_hot(chunk, number)  # batch row chunk
        position = (member.cumsum(1) * member).sum(-1) - 1
        slots = int(position.max()) + 1
        slot = chunk * slots + position
        row = torch.zeros(len(counts), number * slots, dtype=torch.long)
        row.scatter_(1, slot, torch.arange(counts.shape[1]).expand_as(slot))
        added = torch.zeros_like(row).scatter_(1, slot, beyond % CHUNK + 1)
        shape = (len(counts), number, slots)
        return cls(chunk, row.view(shape), slot, added.view(shape))


@dataclass(frozen=True)
class _Factors:
    """What the rows of each chunk share."""

    lower: Float[Tensor, "*heads chunk value value"]  # L⁻¹
    terms: Float[Tensor, "*heads chunk added value"]  # N
    condition: Float[Tensor, "*heads chunk"]  # bound for all rows of the chunk; NaN or infinite without a factor


def _factor(nested: NestedKeys, starts: Sequence[int], chunks: _Chunks) -> _Factors:
    """Factor the Gram matrices before each chunk, and those of the chunks."""
    tail = _take_tail(nested.prefix, starts, chunks.row.shape[1] * CHUNK)
    tail = tail.view(*tail.shape[:-2], -1, CHUNK, tail.shape[-1])
    # the Gram matrix of nested keys is the sum of those of the chunks
    grams = torch.cat([nested.gram(starts)[..., None, :, :], tail.mT @ tail], -3).cumsum(-3)
    lower, norm, _ = cholesky_inverse(grams[..., :-1, :, :])
    condition = bound_norm(grams[..., 1:, :, :]) * norm  # with all keys that rows of the chunk may see
    lower = torch.where(condition.isfinite()[..., None, None], lower, 0)
    added = tail @ lower.mT  # W
    small = added @ added.mT
    small.diagonal(dim1=-2, dim2=-1).add_(1)  # I + W·Wᵀ = C·Cᵀ
    factor, _ = torch.linalg.cholesky_ex(small)
    return _Factors(lower, torch.linalg.solve_triangular(factor, added, upper=False), condition)


def _take_tail(prefix: Tensor, starts: Sequence[int], width: int) -> Tensor:
    """Return `width` keys of each example from its start on, and zeros behind the last."""

    def take(keys: Tensor) -> Tensor:
        return torch.nn.functional.pad(keys, (0, 0, 0, width - keys.shape[-2]))

    if len(set(starts)) == 1:
        return take(prefix[..., starts[0] : starts[0] + width, :])
    return torch.stack([take(prefix[:, row, :, start : start + width]) for row, start in enumerate(starts)], dim=1)


def _solve(contexts: Tensor, factors: _Factors, chunks: _Chunks) -> Tensor:
    """Return G⁻¹·z for every row, with G the Gram matrix of its keys and z its context A·V."""
    layer, batch, heads, group, rows, value = contexts.shape
    number, slots = chunks.row.shape[1:]
    index = chunks.row.to(contexts.device).view(1, batch, 1, 1, -1, 1)
    slotted = contexts.gather(-2, index.expand(layer, -1, heads, group, -1, value))
    slotted = slotted.view(layer, batch, heads, group, number, slots, value).transpose(3, 4)
    slotted = slotted.reshape(layer, batch, heads, number, -1, value)
    mask = torch.arange(CHUNK, device=contexts.device) < chunks.added.to(contexts.device)[..., None]
    mask = mask[None, :, None].repeat(1, 1, 1, 1, group, 1)  # layer batch head chunk group·slot added
    white = slotted @ factors.lower.mT  # L⁻¹·z
    white = white - (white @ factors.terms.mT).mul_(mask) @ factors.terms  # (I − Σ nₜnₜᵀ)·L⁻¹·z, t among the row's keys
    solved = (white @ factors.lower).view(layer, batch, heads, number, group, slots, value)
    solved = solved.transpose(3, 4).reshape(layer, batch, heads, group, -1, value)
    back = chunks.slot.to(contexts.device).view(1, batch, 1, 1, rows, 1)
    rows_solved: Tensor = solved.gather(-2, back.expand(layer, -1, heads, group, -1, value))
    return rows_solved


@dataclass(frozen=True)
class _Rows:
    """The rows from `first` on, in blocks: all of them on a GPU, as many as fit a cache on a CPU."""

    attention: Sequence[Attention]
    wide: Tensor  # layer batch value_head key value, float64
    visible: Tensor
    counts: Tensor
    first: int
    sorted: bool  # whether each row sees the first keys, so that later ones need no work

    def blocks(self) -> Iterator[tuple[slice, int]]:
        """Return each block with the number of keys that its rows reach."""
        last, width = self.counts.shape[1], self.visible.shape[-1]
        step = last - self.first if self.visible.is_cuda else CHUNK
        for start in range(self.first, last, step):
            rows = slice(start, min(start + step, last))
            yield rows, max(1, int(self.counts[:, rows].max())) if self.sorted else width

    def contexts(self) -> Float[Tensor, "layer batch value_head group row value"]:
        """Return A·V of every row in float64."""
        batch, heads = self.wide.shape[1:3]
        layers = []
        for weights, values in zip(self.attention, self.wide, strict=True):
            products = []
            for rows, reach in self.blocks():
                some = weights[:, :, rows, :reach].double().reshape(batch, heads, -1, reach)
                product = some @ values[..., :reach, :]
                products.append(product.view(batch, heads, -1, rows.stop - rows.start, values.shape[-1]))
            layers.append(torch.cat(products, -2) if len(products) > 1 else products[0])
        return torch.stack(layers)

    def write(self, solved: Tensor, short: Tensor, result: Sequence[Attention]) -> None:
        """Write each row's map where its query sees a key, 0 elsewhere; short rows keep their attention."""
        keep_some = bool(short.any())
        for weights, values, rows_solved, effective in zip(self.attention, self.wide, solved, result, strict=True):
            for rows, reach in self.blocks():
                here = slice(rows.start - self.first, rows.stop - self.first)
                maps = rows_solved[..., here, :].flatten(2, 3) @ values[..., :reach, :].mT
                maps = maps.view(*weights.shape[:2], -1, reach)
                maps.masked_fill_(~self.visible[:, None, rows, :reach], 0)
                if keep_some:
                    maps = torch.where(short[:, :, here], weights[:, :, rows, :reach], maps)
                effective[:, :, rows, :reach] = maps
                effective[:, :, rows, reach:] = 0


def _project_lost(
    attention: Sequence[Attention], values: Tensor, visible: Tensor, lost: Tensor, result: list[Attention], rank: Tensor
) -> None:
    """Project each row without a proof as a problem of its own, in place, whatever the mask."""
    heads, width, value = values.shape[2:]
    shape = (len(attention[0]), heads, -1, *attention[0].shape[2:])
    weights, effective = ([layer.view(shape) for layer in layers] for layers in (attention, result))
    for rows in torch.split(lost.nonzero(), max(1, ROW_BYTES // (8 * width * value))):
        layer, example, head, query = rows.unbind(-1)
        number = torch.bincount(layer.cpu(), minlength=len(attention)).tolist()  # rows are sorted by layer
        indices = [(chunk[:, 1], chunk[:, 2], slice(None), chunk[:, 3]) for chunk in torch.split(rows, number)]
        own = torch.cat([source[index] for source, index in zip(weights, indices, strict=True)])
        projected = project(own.to(values.dtype), values[layer, example, head], visible[example, query])
        rank[layer, example, head, query] = projected.rank
        maps = torch.split(projected.left @ projected.right.mT, number)
        for target, index, own_maps in zip(effective, indices, maps, strict=True):
            target[index] = own_maps
