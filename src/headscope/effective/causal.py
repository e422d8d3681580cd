"""Effective attention where queries differ in the keys they see: causal, prefix and sliding-window masks.

Each row must be projected within its own keys. A causal row sees all that the row before it saw and one key more, so a
chunk of rows shares one basis, that of the keys all of them see, and every further key is a small correction: with Q
orthonormal over the shared keys and W the coordinates of the new ones, the Gram matrix of row i is I + Σ wₜwₜᵀ, whose
inverse is I − Σ tₜtₜᵀ with T = L⁻¹W and LLᵀ = I + WWᵀ; a triangular mask picks the terms of each row.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.effective.projection import WELL_CONDITIONED, independent, inverse_factor, project, rank_tolerance

CHUNK = 96
"""How many keys the rows of one chunk may add to those of its base."""

CHUNK_BYTES = 2**28
"""How much memory the row-by-row path may take for its copies of V."""


def project_rows(
    attention: Float[Tensor, "batch head query key"],
    values: Float[Tensor, "batch head key value"],
    visible: Bool[Tensor, "batch query key"],
) -> tuple[Float[Tensor, "batch head query key"], Int[Tensor, "batch head query"]]:
    """Project each row of attention within the keys it can see, and the rank it met there.

    Rows whose keys are nested (causal, prefix, padded or not) go in chunks; all others, and the few whose full rank is
    not proved, one by one.
    """
    exact = torch.float64 if attention.dtype == torch.float64 else torch.float32
    effective = torch.zeros(attention.shape, dtype=exact, device=attention.device)
    rank = torch.zeros(attention.shape[:3], dtype=torch.long, device=attention.device)
    for example, seen in enumerate(visible):
        problem = _Rows(attention[example].to(exact), values[example].to(exact), seen)
        order = nested_order(seen) if exact == torch.float32 else None
        if order is None:
            effective[example], rank[example] = _one_by_one(problem)
        else:
            _nested(problem, *order, effective[example], rank[example])
    return effective, rank


def nested_order(visible: Bool[Tensor, "query key"]) -> tuple[Int[Tensor, " query"], Int[Tensor, " key"]] | None:
    """Rows from those that see least, keys from those that are seen most, if every row sees the first of them."""
    count = visible.sum(-1)
    keys = torch.arange(visible.shape[-1], device=visible.device)
    nested = keys < count[:, None]
    if not torch.equal(visible, nested):
        keys = visible.sum(0).argsort(descending=True, stable=True)
        if not torch.equal(visible[:, keys], nested):
            return None
    return count.argsort(stable=True), keys


@dataclass(frozen=True)
class _Rows:
    """The rows of one example, all heads."""

    attention: Float[Tensor, "head query key"]
    values: Float[Tensor, "head key value"]
    visible: Bool[Tensor, "query key"]

    def sorted(self, rows: Tensor, keys: Tensor) -> "_Rows":
        """The same rows and keys in another order."""
        return _Rows(self.attention[:, rows][:, :, keys], self.values[:, keys], self.visible[rows][:, keys])

    def take(self, rows: slice, heads: Tensor | None = None) -> "_Rows":
        """Some of the rows, of some of the heads, with the keys that they see."""
        seen = self.visible[rows]
        reach = _reach(seen)
        some = slice(None) if heads is None else heads
        return _Rows(self.attention[some][:, rows, :reach], self.values[some][:, :reach], seen[:, :reach])


def _nested(problem: _Rows, rows: Tensor, keys: Tensor, effective: Tensor, rank: Tensor) -> None:
    """Sort rows and keys, go through the rows in chunks, and put everything in its place in the last two arguments."""
    if _in_order(rows, keys):
        _in_chunks(problem, effective, rank)
    else:
        found, ranks = torch.zeros_like(effective), torch.zeros_like(rank)
        _in_chunks(problem.sorted(rows, keys), found, ranks)
        effective[...], rank[...] = found[:, rows.argsort()][:, :, keys.argsort()], ranks[:, rows.argsort()]


def _in_order(*orders: Tensor) -> bool:
    return all(torch.equal(each, torch.arange(len(each), device=each.device)) for each in orders)


def _in_chunks(rows: _Rows, effective: Tensor, rank: Tensor) -> None:
    """Go through sorted rows; what is found is written where it belongs, for maps are too large to be copied."""
    value, count = rows.values.shape[-1], rows.visible.sum(-1)
    rank[...] = count.clamp(max=value)
    wide, counts, base = rows.values.double(), count.tolist(), None
    for chunk, first in _chunks(counts, value):
        reach = counts[chunk.stop - 1]
        some = _Rows(rows.attention[:, chunk, :reach], rows.values[:, :reach], rows.visible[chunk, :reach])
        out = effective[:, chunk, :reach]
        if reach < value:
            out[...], proved = some.attention, _independent(some)
        elif reach == value:  # as many keys as value dimensions: their base proves all that see fewer, too
            square = _base(wide, reach)
            out[...], proved = some.attention, square.proves(wide[:, :reach])
            base = square if bool(square.proves(wide[:, : reach + CHUNK]).all()) else None  # one key more proves more
        else:
            if base is None or base.first < first:
                base = _base(wide, first if base else counts[chunk.start], base)
            proved = _correct(some, wide[:, :reach], base, out)
        if not bool(proved.all()):
            out[~proved], rank[~proved, chunk] = _one_by_one(some.take(slice(None), ~proved))


def _chunks(counts: list[int], value: int) -> Iterator[tuple[slice, int]]:
    """Rows that see no more keys than there are value dimensions, then chunks of rows that add few keys each.

    With every chunk comes how many keys to take for its base: those the row before it sees, if they are enough.
    """
    start = sum(count == 0 for count in counts)
    while start < len(counts):
        before, own = counts[start - 1] if start else 0, counts[start]
        first = before if value <= before and own <= before + CHUNK else own
        stop = bisect_right(counts, value if own <= value else first + CHUNK)
        yield slice(start, stop), first
        start = stop


def _independent(rows: _Rows) -> Tensor:
    """The heads in which the values of all keys are proved independent, so that nothing of attention is lost."""
    return independent(rows.values, rows.visible.any(0).expand(len(rows.values), -1))


@dataclass(frozen=True)
class _Base:
    """The `first` keys, which all rows of a chunk see: R with RᵀR = VᵀV over them, in float64."""

    first: int
    gram: Float[Tensor, "head value value"]
    inverse: Float[Tensor, "head value value"]
    condition: Float[Tensor, " head"]

    def proves(self, wide: Tensor) -> Tensor:
        """The heads in which V has full rank by the rank rule, over the first of these values and any number more."""
        size = self.gram.diagonal(dim1=-2, dim2=-1).sum(-1)
        added = wide[:, self.first :].square().sum((-1, -2))
        growth = ((size + added) / size).sqrt()  # of ‖V‖ while keys are added; R⁻¹ only shrinks
        last = torch.tensor(wide.shape[-2], device=wide.device)
        return growth * self.condition * rank_tolerance(last, wide.shape[-1]) < 1


def _base(wide: Tensor, first: int, before: _Base | None = None) -> _Base:
    """The base of the first keys, from that of fewer where there is one."""
    known = wide[:, before.first if before else 0 : first]
    gram = known.mT @ known + before.gram if before else known.mT @ known
    return _Base(first, gram, *inverse_factor(gram))


def _correct(rows: _Rows, wide: Tensor, base: _Base, out: Tensor) -> Tensor:
    """One basis for the keys that all rows see, corrections for those that some add; gives where that is proved.

    `wide` are the values in float64.
    """
    first, attention, added = base.first, rows.attention, wide[:, base.first :]
    proved = base.proves(wide)
    inverse = torch.where(proved[:, None, None], base.inverse, 0)  # the others are done one by one
    basis = _basis(rows.values[:, :first], wide[:, :first], inverse, base.condition)  # Q
    new = added @ inverse  # W
    mask = rows.visible[:, first:].to(new.dtype)
    mixed = torch.baddbmm((attention[:, :, :first] @ basis).double(), attention[:, :, first:].double(), new)
    small = new @ new.mT
    small.diagonal(dim1=-2, dim2=-1).add_(1)
    terms = torch.linalg.solve_triangular(torch.linalg.cholesky(small), new, upper=False)  # T
    left = mixed - (mixed @ terms.mT).mul_(mask) @ terms
    out[:, :, :first] = left.to(attention.dtype) @ basis.mT
    out[:, :, first:] = (left @ new.mT).mul_(mask)
    return proved


def _basis(values: Tensor, wide: Tensor, inverse: Tensor, condition: Tensor) -> Tensor:
    """V·R⁻¹, in float64 where float32 would lose digits."""
    if bool((condition <= WELL_CONDITIONED * values.shape[-1]).all()):
        return values @ inverse.to(values.dtype)
    return (wide @ inverse).to(values.dtype)


def _one_by_one(rows: _Rows) -> tuple[Tensor, Tensor]:
    """Each row as a small problem of its own; holds for any mask."""
    heads, queries, width = rows.attention.shape
    effective = torch.zeros_like(rows.attention)
    rank = torch.zeros(heads, queries, dtype=torch.long, device=effective.device)
    step = max(1, CHUNK_BYTES // (8 * heads * width * rows.values.shape[-1]))
    for start in range(0, queries, step):
        some = rows.take(slice(start, start + step))
        reach = some.values.shape[-2]
        own = some.values[:, None].expand(-1, len(some.visible), -1, -1)
        part = project(some.attention[:, :, None], own, some.visible.expand(heads, -1, -1))
        effective[:, start : start + step, :reach] = (part.left @ part.right.mT)[:, :, 0]
        rank[:, start : start + step] = part.rank
    return effective, rank


def _reach(visible: Tensor) -> int:
    """One past the last key that any of these rows sees."""
    seen = visible.any(0).nonzero()
    return int(seen.max()) + 1 if len(seen) else 1
