"""Labelled maps changed in ways that keep their class, so that few of them teach as many would."""

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.patterns.classify.row_weights import Real, Segments
from headscope.patterns.classify.settings import USUAL, CnnSettings

KEPT = 4  # columns of the most weight that are never cut away: a sink is what makes a map vertical


def augmented(
    weights: Float[Tensor, "map token token"],
    real: Real,
    segments: Segments,
    random: torch.Generator,
    settings: CnnSettings = USUAL,
) -> tuple[Tensor, Real, Segments]:
    """The same maps sharper or flatter, noisier, with a run of tokens cut away, and some of them back to front."""

    def between(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(len(weights), 1, 1, generator=random)

    there = (real[:, :, None] & real[:, None]).to(weights)
    size = weights.abs() / weights.abs().sum(-1, keepdim=True).clamp_min(1e-12)
    size = size.pow(between(-settings.power, settings.power).exp())
    size = size * (between(0.0, settings.jitter) * torch.randn(size.shape, generator=random)).exp() * there
    noise = -torch.rand(size.shape, generator=random).clamp_min(1e-6).log() * there
    share = between(-settings.mixed, settings.mixed).clamp_min(0)  # half of the maps are left without
    size = (1 - share) * _even(size) + share * _even(noise)
    kept = _cut(size, real, random, settings.cut)
    back = torch.rand(len(size), generator=random) < 0.5
    return (
        torch.where(back[:, None, None], size.flip(-1, -2), size),
        torch.where(back[:, None], kept.flip(-1), kept),
        torch.where(back[:, None], 1 - segments.flip(-1), segments),
    )


def _even(size: Tensor) -> Tensor:
    return size / size.sum(-1, keepdim=True).clamp_min(1e-12)


def _cut(size: Float[Tensor, "map token token"], real: Real, random: torch.Generator, longest: float) -> Real:
    """Without a run of tokens, but for the columns of the most weight."""
    many, wide = real.shape
    counts = real.sum(-1, keepdim=True)
    length = (torch.rand(many, 1, generator=random) * 2 * longest - longest).clamp_min(0) * counts
    start = torch.rand(many, 1, generator=random) * (counts - length)
    place = real.cumsum(-1) - 1
    run = (place >= start) & (place < start + length)
    heavy = torch.zeros_like(real).scatter_(1, size.sum(1).topk(min(KEPT, wide)).indices, True)
    return real & (~run | heavy)
