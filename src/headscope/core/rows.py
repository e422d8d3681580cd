"""Effective attention where queries differ in the keys they see: causal, prefix and sliding-window masks.

Each row must be projected within its own keys. A causal row sees all that the row before it saw and one key more, so a
chunk of rows shares one basis, that of the keys its first row sees, and every further key is a small correction: with Q
orthonormal over the shared keys and W the coordinates of the new ones, the Gram matrix of row i is I + Σ wₜwₜᵀ, whose
inverse is I − Σ tₜtₜᵀ with T = L⁻¹W and LLᵀ = I + WWᵀ; a triangular mask picks the terms of each row.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.core.projection import WELL_CONDITIONED, independent, inverse_factor, project, rank_tolerance

CHUNK = 128
"""How many keys the rows of one chunk may add to what its first row sees."""

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
        order = nested_order(seen) if exact == torch.float32 else None
        problem = _Rows(attention[example].to(exact), values[example].to(exact), seen)
        found = _one_by_one(problem) if order is None else _nested(problem, *order)
        effective[example], rank[example] = found
    return effective, rank


def nested_order(visible: Bool[Tensor, "query key"]) -> tuple[Int[Tensor, " query"], Int[Tensor, " key"]] | None:
    """Rows from those that see least, keys from those that are seen most, if every row sees the first of them."""
    count = visible.sum(-1)
    keys = visible.sum(0).argsort(descending=True, stable=True)
    place = torch.arange(visible.shape[-1], device=visible.device)
    if not torch.equal(visible[:, keys], place < count[:, None]):
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


def _nested(problem: _Rows, rows: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Sort rows and keys, go through the rows in chunks, and put everything back in its place."""
    value = problem.values.shape[-1]
    ordered = problem if _in_order(rows, keys) else problem.sorted(rows, keys)
    effective = torch.zeros_like(ordered.attention)
    rank = torch.zeros(effective.shape[:2], dtype=torch.long, device=effective.device)
    wide, gram, known = ordered.values.double(), torch.zeros((), device=effective.device), 0
    for chunk, first in _chunks(ordered.visible.sum(-1).tolist(), value):
        some = ordered.take(chunk)
        reach = some.values.shape[-2]
        if reach <= value:
            effective[:, chunk, :reach], proved = some.attention, _independent(some)
        else:
            gram, known = gram + wide[:, known:first].mT @ wide[:, known:first], first
            effective[:, chunk, :reach], proved = _corrected(some, wide[:, :reach], gram, first)
        rank[:, chunk] = some.visible.sum(-1).clamp(max=value)
        if not bool(proved.all()):
            effective[~proved, chunk, :reach], rank[~proved, chunk] = _one_by_one(some.take(slice(None), ~proved))
    if ordered is problem:
        return effective, rank
    return effective[:, rows.argsort()][:, :, keys.argsort()], rank[:, rows.argsort()]


def _in_order(*orders: Tensor) -> bool:
    return all(torch.equal(each, torch.arange(len(each), device=each.device)) for each in orders)


def _chunks(counts: list[int], value: int) -> Iterator[tuple[slice, int]]:
    """Rows that see no more keys than there are value dimensions, then chunks of rows that add few keys each.

    With every chunk comes how many keys its first row sees.
    """
    start = sum(count == 0 for count in counts)
    while start < len(counts):
        limit = value if counts[start] <= value else counts[start] + CHUNK
        stop = bisect_right(counts, limit)
        yield slice(start, stop), counts[start]
        start = stop


def _independent(rows: _Rows) -> Tensor:
    """The heads in which the values of all keys are proved independent, so that nothing of attention is lost."""
    return independent(rows.values, rows.visible.any(0).expand(len(rows.values), -1))


def _corrected(rows: _Rows, wide: Tensor, gram: Tensor, first: int) -> tuple[Tensor, Tensor]:
    """One basis for the `first` keys that all rows see, corrections for those that some add; and where that is proved.

    `wide` are the values in float64, and `gram` their Gram matrix over the first keys.
    """
    inverse, condition = inverse_factor(gram)
    added, last = wide[:, first:], torch.tensor(wide.shape[-2], device=wide.device)
    size = gram.diagonal(dim1=-2, dim2=-1).sum(-1)
    growth = ((size + added.square().sum((-1, -2))) / size).sqrt()  # of ‖V‖ while keys are added; R⁻¹ only shrinks
    proved = growth * condition * rank_tolerance(last, wide.shape[-1]) < 1
    inverse = torch.where(proved[:, None, None], inverse, 0)  # the others are done one by one
    basis = _basis(rows.values[:, :first], wide[:, :first], inverse, condition)  # Q
    new = added @ inverse  # W
    attention, mask = rows.attention, rows.visible[:, first:]
    mixed = (attention[:, :, :first] @ basis).double() + attention[:, :, first:].double() @ new
    triangle = torch.linalg.cholesky(new @ new.mT + torch.eye(new.shape[-2], dtype=new.dtype, device=new.device))
    terms = torch.linalg.solve_triangular(triangle, new, upper=False)  # T
    left = mixed - ((mixed @ terms.mT) * mask) @ terms
    old = left.to(attention.dtype) @ basis.mT
    return torch.cat([old, ((left @ new.mT) * mask).to(attention.dtype)], dim=-1), proved


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
