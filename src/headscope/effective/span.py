"""What the values of many heads span, of texts of any length and values of any rank.

A frame W spans all that V spans: V itself, or rows of the identity where a text has no more tokens than a head has
values. Then A_eff = (A·W·T)(W·T)ᵀ, where T = R⁻¹ with RᵀR = WᵀW, and I for the identity; directions of V that do not
count are taken out of T.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headscope.effective.projection import WELL_CONDITIONED, inverse_factor
from headscope.effective.reach import Reach
from headscope.effective.spectral import by_eigenvectors, counting, trace_of

TINY = 1e-200
"""In place of nothing, where something is divided by it or must have an inverse."""


def seen_of(values: Tensor, reach: Reach) -> Tensor:
    """Values without those that no query sees."""
    return values if reach.whole else values * reach.keys[:, None, :, None]


def gram_of(wide: Tensor, reach: Reach) -> Tensor:
    """The matrix that says which directions count: VᵀV, or VVᵀ of a short text, its keys in front.

    Values that no query sees must be zero.
    """
    if not any(reach.short):
        return wide.mT @ wide
    places = reach.places
    shape = (*wide.shape[:-2], places.key.shape[-1], wide.shape[-1])
    rows = wide.gather(-2, places.key[:, None, :, None].expand(shape))
    gram = rows @ rows.mT
    ordinary = (trace_of(gram) / places.filled).clamp(min=TINY)
    gram = torch.addcmul(gram, places.spare, ordinary[..., None, None])  # at spare places it leaves the condition alone
    return gram if all(reach.short) else torch.where(reach.is_short, gram, wide.mT @ wide)


def frame_of(wide: Tensor, reach: Reach) -> Tensor:
    """W: the values, or rows of the identity for a short text."""
    if not any(reach.short):
        return wide
    if all(reach.short):
        return reach.places.identity.to(wide.dtype).expand(*wide.shape[:-2], -1, -1)
    return torch.where(reach.is_short, reach.places.identity, wide)


def turn_of(inverse: Tensor, reach: Reach) -> Tensor:
    """T where everything counts."""
    return torch.where(reach.is_short, eye_like(inverse), inverse) if any(reach.short) else inverse


def spread_of(condition: Tensor, reach: Reach) -> Tensor:
    """The worst condition of heads whose frame is V."""
    return (condition.masked_fill(reach.is_short[..., 0, 0], 0) if any(reach.short) else condition).amax()


def rough(spread: float, least: float, value: int) -> bool:
    """Whether single precision would lose too much, where that is the worst condition and the least ‖R‖."""
    fits = spread < least * torch.finfo(torch.float32).max  # so does R⁻¹
    return not (spread <= WELL_CONDITIONED * value and fits)


@dataclass(frozen=True)
class Fewer:
    """Some heads, of which not every direction counts."""

    place: Tensor  # which they are, of all heads one after another
    gram: Tensor
    tolerance: Tensor
    short: Tensor | None  # which of them belong to short texts; None: none
    kept: Tensor  # the projector on what counts
    sure: Tensor  # whether that is so
    turn: Tensor

    @classmethod
    def of(cls, gram: Tensor, reach: Reach, place: Tensor) -> "Fewer":
        """Heads at some places, only directions that count left in their T."""
        heads = gram.shape[:-2]
        some, tolerance = gram.flatten(0, -3)[place], reach.tolerance.expand(heads).flatten()[place]
        short = reach.is_short[..., 0, 0].expand(heads).flatten()[place] if any(reach.short) else None
        kept, sure = counting(some, tolerance)
        return cls(place, some, tolerance, short, kept, sure, _solved(some, kept, short))

    def settled(self) -> "Fewer":
        """The same with eigenvectors for the few of which it is not sure; the host finds them."""
        few = (~self.sure).nonzero()[:, 0]
        if not len(few):
            return self
        exact = by_eigenvectors(self.gram[few], self.tolerance[few])
        turn = _solved(self.gram[few], exact, None if self.short is None else self.short[few])
        kept, turn = self.kept.index_copy(0, few, exact), self.turn.index_copy(0, few, turn)
        return replace(self, kept=kept, sure=torch.ones_like(self.sure), turn=turn)

    def turned(self, turn: Tensor) -> Tensor:
        """T of all heads, with theirs."""
        return turn.flatten(0, -3).index_copy(0, self.place, self.turn).reshape(turn.shape)

    def ranked(self, rank: Tensor, reach: Reach) -> Tensor:
        """The rank of all heads, with theirs."""
        found = trace_of(self.kept).round().long()
        if self.short is not None:
            count = reach.count.expand(rank.shape).flatten()[self.place]
            found = torch.where(self.short, found - self.gram.shape[-1] + count, found)  # without spare places
        return rank.flatten().index_copy(0, self.place, found).reshape(rank.shape)


def _solved(gram: Tensor, kept: Tensor, short: Tensor | None) -> Tensor:
    """T from the projector on what counts: that itself for a short text, whose frame is the identity."""
    ordinary = (trace_of(gram) / gram.shape[-1]).clamp(min=TINY)
    inverse, _ = inverse_factor(kept @ gram @ kept + ordinary[:, None, None] * (eye_like(gram) - kept))
    return kept @ inverse if short is None else torch.where(short[:, None, None], kept, kept @ inverse)


def eye_like(matrix: Tensor) -> Tensor:
    """The identity beside a matrix."""
    return torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
