"""What a layer writes with effective attention, of all heads at once and with few questions, for GPUs."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headscope.effective.memory import Memory
from headscope.effective.projection import sized_inverse_factor
from headscope.effective.reach import Reach
from headscope.effective.span import Fewer, frame_of, gram_of, rough, seen_of, spread_of, turn_of

STEP = 8
"""Heads that take the long way are counted in powers of this: each number of them is recorded apart."""


@dataclass(frozen=True)
class Effort:
    """What it takes to find what the values of a layer span."""

    long: int = 0  # heads that may lack a direction
    double: bool = False  # whether single precision would lose too much
    care: bool = False  # whether eigenvectors are needed now and then, so that the layer is asked in every pass

    def enough(self, told: Sequence[float], value: int) -> bool:
        """Whether a layer told that it was; of heads that took the long way, it tells if any did so in vain."""
        worst, spread, least, vain = told
        precise = self.double or not rough(spread, least, value)
        return worst < 1 and precise and (self.care or not vain)  # NaN is below nothing

    def more(self, told: Sequence[float], value: int, lost: int, heads: int) -> "Effort":
        """What it will take, where so many heads are not proved to have full rank."""
        _, spread, least, vain = told
        long = self.long
        while long < lost:
            long = min(max(STEP, STEP * long), heads)
        double = self.double or long > 0 or rough(spread, least, value)
        return Effort(long, double, self.care or vain > 0)


@dataclass(frozen=True)
class _Span:
    """What the values of a layer span, as far as an effort goes."""

    told: Tensor  # whether the effort was enough
    bound: Tensor  # for each head, below 1 where its rank is full
    right: Tensor | None = None  # W·T; None: the identity
    onto: Tensor | None = None  # (W·T)ᵀ·V
    frame: Tensor | None = None  # W and T, and heads that took the long way, where they may have done so in vain
    turn: Tensor | None = None
    fewer: Fewer | None = None

    def settled(self, values: Tensor) -> "_Span":
        """The same with eigenvectors for heads that took the long way in vain."""
        assert self.frame is not None
        assert self.turn is not None
        assert self.fewer is not None
        right = (self.frame @ self.fewer.settled().turned(self.turn)).to(values.dtype)
        return replace(self, right=right, onto=right.mT @ values)


def output_at_once(attention: Tensor, values: Tensor, reach: Reach, memory: Memory, where: Hashable) -> Tensor:
    """A_eff·V of the layer at `where`; values that are not finite are refused.

    Nothing is kept but the output, so that a GPU may replay the work from layer to layer. The layer is asked whether
    the effort was enough, unless that may be assumed.
    """
    assumptions = memory.assumptions
    effort: Effort = assumptions.needed(where, Effort())
    found = _spanned(values, reach, memory, effort)
    if effort.care or assumptions.asks(where):
        told = found.told.tolist()
        while not effort.enough(told, reach.value):
            effort = effort.more(told, reach.value, int((~(found.bound < 1)).sum()), found.bound.numel())
            found = _spanned(values, reach, memory, effort)
            told = found.told.tolist()
        assumptions.learn(where, effort)
        if told[-1]:
            found = found.settled(values)
    else:
        assumptions.take(found.told, lambda told: effort.enough(told, reach.value))
    if found.right is None or found.onto is None:
        return attention @ values
    return (attention @ found.right) @ found.onto


def _spanned(values: Tensor, reach: Reach, memory: Memory, effort: Effort) -> _Span:
    """What the values span, by an effort that may be too little."""
    kind = ("span", effort, reach.value, reach.whole, any(reach.short), all(reach.short))

    def work(values: Tensor, *parts: Tensor) -> _Span:
        there = reach.of_parts(parts)
        seen = seen_of(values, there)
        wide = seen.double()
        gram = gram_of(wide, there)
        inverse, condition, length = sized_inverse_factor(gram)
        bound = (condition * there.tolerance).nan_to_num(nan=torch.inf, posinf=torch.inf)
        worst, vain, fewer = bound.amax(), torch.zeros_like(length[0, 0]), None
        if effort.long:
            fewer = Fewer.of(gram, there, bound.flatten().topk(min(effort.long, bound.numel())).indices)
            worst, vain = bound.flatten().index_fill(0, fewer.place, 0).amax(), (~fewer.sure).any().double()
        told = torch.stack([worst, spread_of(condition, there), length.amin(), vain])
        if fewer is not None:
            frame, turn = frame_of(wide, there), turn_of(inverse, there)
            right = (frame @ _finite(fewer.turned(turn))).to(values.dtype)
            kept = (frame, turn, fewer) if effort.care else ()
            return _Span(told, bound, right, right.mT @ seen, *kept)
        if all(there.short):  # nothing is lost
            return _Span(told, bound)
        thin = _finite(inverse if effort.double else inverse.to(values.dtype))
        right = (wide @ thin).to(values.dtype) if effort.double else seen @ thin
        right = torch.where(there.is_short, there.places.identity, right) if any(there.short) else right
        return _Span(told, bound, right, right.mT @ seen)

    return memory.recordings.run(kind, work, values, fixed=reach.parts)


def _finite(given: Tensor) -> Tensor:
    """Nothing in place of what is not finite: a pass that assumed too little goes on, if only to be run again."""
    return given.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
