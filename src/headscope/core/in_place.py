"""What a layer writes with effective attention, of all heads at once and with few questions, for GPUs."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headscope.core.memory import Memory
from headscope.core.projection import sized_inverse_factor
from headscope.core.reach import Reach
from headscope.core.span import Fewer, frame_of, gram_of, rough, seen_of, spread_of, turn_of

STEP = 4
"""Heads that take the long way are counted in powers of this: each number of them is recorded apart."""


@dataclass(frozen=True)
class Effort:
    """What it takes to find what the values of a layer span."""

    long: int = 0  # heads that may lack a direction
    double: bool = False  # whether single precision would lose too much
    care: bool = False  # whether even that is not enough, and heads must be taken one by one

    def enough(self, told: Sequence[float], value: int) -> bool:
        """Whether a layer told that it was; of heads that took the long way, it tells if any did so in vain."""
        worst, spread, least, vain = told
        return worst < 1 and not vain and (self.double or not rough(spread, least, value))  # NaN is below nothing

    def more(self, told: Sequence[float], value: int, lost: int, heads: int) -> "Effort":
        """What it will take, where so many heads are not proved to have full rank."""
        _, spread, least, _ = told
        long = self.long
        while long < lost:
            long = min(max(STEP, STEP * long), heads)
        return replace(self, long=long, double=self.double or long > 0 or rough(spread, least, value))


def output_at_once(attention: Tensor, values: Tensor, reach: Reach, memory: Memory, where: Hashable) -> Tensor | None:
    """A_eff·V of the layer at `where`, or None where that takes more care, or values are not finite.

    Nothing is kept but the output, so that a GPU may replay the work from layer to layer. The layer is asked whether
    the effort was enough, unless that may be assumed.
    """
    assumptions = memory.assumptions
    effort: Effort = assumptions.needed(where, Effort())
    if effort.care:
        return None
    told, bound, *factors = _spanned(values, reach, memory, effort)
    if assumptions.asks(where):
        numbers = told.tolist()
        if not effort.enough(numbers, reach.value):
            effort = effort.more(numbers, reach.value, int((~(bound < 1)).sum()), bound.numel())
            told, bound, *factors = _spanned(values, reach, memory, effort)
            effort = replace(effort, care=not effort.enough(told.tolist(), reach.value))
        assumptions.learn(where, effort)
        if effort.care:
            return None
    else:
        assumptions.take(told, lambda numbers: effort.enough(numbers, reach.value))
    if not factors:
        return attention @ values
    right, span = factors
    return (attention @ right) @ span


def _spanned(values: Tensor, reach: Reach, memory: Memory, effort: Effort) -> tuple[Tensor, ...]:
    """Numbers that tell whether the effort was enough, a bound for each head that is below 1 where its rank is full,
    then W·T and (W·T)ᵀ·V, unless W·T is the identity."""

    def work(values: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
        there = reach.of_parts(parts)
        seen = seen_of(values, there)
        wide = seen.double()
        gram = gram_of(wide, there)
        inverse, condition, length = sized_inverse_factor(gram)
        bound = condition * there.tolerance
        worst, vain = bound.amax(), torch.zeros_like(length[0, 0])
        if effort.long:
            fewer = Fewer.of(gram, there, bound.flatten().topk(effort.long).indices)
            rest = bound.flatten().index_fill(0, fewer.place, 0)
            worst, vain = rest.amax(), (~fewer.sure).any().double()
        told = torch.stack([worst, spread_of(condition, there), length.amin(), vain])
        if all(there.short) and not effort.long:  # nothing is lost
            return told, bound
        if effort.long:
            right = (frame_of(wide, there) @ _finite(fewer.turned(turn_of(inverse, there)))).to(values.dtype)
        else:
            thin = _finite(inverse if effort.double else inverse.to(values.dtype))
            right = (wide @ thin).to(values.dtype) if effort.double else seen @ thin
            right = torch.where(there.is_short, there.places.identity, right) if any(there.short) else right
        return told, bound, right, right.mT @ seen

    kind = ("span", effort, reach.value, reach.whole, any(reach.short), all(reach.short))
    return memory.recordings.run(kind, work, values, fixed=reach.parts)


def _finite(given: Tensor) -> Tensor:
    """Nothing in place of what is not finite: a pass that assumed too little goes on, if only to be run again."""
    return given.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
