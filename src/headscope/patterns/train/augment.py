"""Augmentation: random changes of labelled maps that keep their class."""

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.patterns.classify.cnn import DEFAULT_SETTINGS, CnnSettings
from headscope.patterns.classify.normalize import Real, Segments

KEPT_COLUMNS = 4  # columns of the most weight are never cut out: a sink is what makes a map vertical


def augment(
    weights: Float[Tensor, "map token token"],
    real: Real,
    segments: Segments,
    random: torch.Generator,
    settings: CnnSettings = DEFAULT_SETTINGS,
) -> tuple[Tensor, Real, Segments]:
    """Sharpen or flatten maps, add noise, cut out a run of tokens, and reverse the order of tokens in half of them."""

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(len(weights), 1, 1, generator=random)

    mask = (real[:, :, None] & real[:, None]).to(weights)
    changed = _normalize(weights.abs()).pow(uniform(-settings.power, settings.power).exp())
    changed = changed * (uniform(0.0, settings.jitter) * torch.randn(changed.shape, generator=random)).exp() * mask
    noise = -torch.rand(changed.shape, generator=random).clamp_min(1e-6).log() * mask
    share = uniform(-settings.mixed, settings.mixed).clamp_min(0)  # 0 for half of the maps
    changed = (1 - share) * _normalize(changed) + share * _normalize(noise)
    real = _cut_run(changed, real, random, settings.cut)
    reverse = torch.rand(len(changed), generator=random) < 0.5
    return (
        torch.where(reverse[:, None, None], changed.flip(-1, -2), changed),
        torch.where(reverse[:, None], real.flip(-1), real),
        torch.where(reverse[:, None], 1 - segments.flip(-1), segments),
    )


def _normalize(weights: Tensor) -> Tensor:
    return weights / weights.sum(-1, keepdim=True).clamp_min(1e-12)


def _cut_run(weights: Float[Tensor, "map token token"], real: Real, random: torch.Generator, longest: float) -> Real:
    """Mark a run of tokens as padding, except for the columns of the most weight."""
    count, width = real.shape
    tokens = real.sum(-1, keepdim=True)
    length = (torch.rand(count, 1, generator=random) * 2 * longest - longest).clamp_min(0) * tokens
    start = torch.rand(count, 1, generator=random) * (tokens - length)
    position = real.cumsum(-1) - 1
    run = (position >= start) & (position < start + length)
    heavy = torch.zeros_like(real).scatter_(1, weights.sum(1).topk(min(KEPT_COLUMNS, width)).indices, True)
    return real & (~run | heavy)
