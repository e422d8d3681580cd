"""Training of the networks, on maps changed at random in ways that keep their class."""

from collections.abc import Iterator, Sequence
from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headscope.patterns import CLASSES
from headscope.patterns.classify.cnn import DEFAULT_SETTINGS, CnnSettings, PatternNet, fuse_batch_norm, make_inputs
from headscope.patterns.classify.normalize import Real, Segments, normalize_maps
from headscope_patterns.train.synthetic import make_synthetic_maps
from headscope_patterns.train.training_set import Progress, TrainingMap, pad_maps

KEPT_COLUMNS = 4  # columns of the most weight are never cut out: a sink is what makes a map vertical


def fit_networks(
    maps: Sequence[TrainingMap], settings: CnnSettings, *, seed: int, progress: Progress | None = None
) -> tuple[PatternNet, ...]:
    """Train networks on these maps and on synthetic ones; call `progress` with 1 after every epoch.

    All networks see the same batches and differ in their initial weights. AdamW with a one-cycle learning rate; the
    result is an exponential moving average of the weights.
    """
    synthetic = make_synthetic_maps(settings.hand_built, seed=seed, sample_weight=settings.hand_built_weight)
    random = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        nets = nn.ModuleList([PatternNet(settings, batch_norm=True) for _ in range(settings.nets)])
        averages = _fit(nets, [*maps, *synthetic], settings, random, progress)
        return tuple(fuse_batch_norm(net, settings) for net in averages if isinstance(net, PatternNet))


def _fit(
    nets: nn.ModuleList,
    maps: Sequence[TrainingMap],
    settings: CnnSettings,
    random: torch.Generator,
    progress: Progress | None,
) -> nn.ModuleList:
    """Train the networks, and return the moving averages of their weights."""
    averages = deepcopy(nets)
    steps = settings.epochs * -(-len(maps) // settings.batch)
    optimizer = torch.optim.AdamW(nets.parameters(), lr=settings.rate, weight_decay=settings.decay)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.rate, total_steps=steps, pct_start=0.2)
    targets = torch.tensor([item.target for item in maps])
    sample_weight = torch.tensor([item.sample_weight for item in maps]) * _class_weight(targets, settings)[targets]
    for _ in range(settings.epochs):
        for batch in _shuffle_batches([len(item.segments) for item in maps], settings.batch, random):
            augmented = augment(*pad_maps([maps[index] for index in batch]), random, settings)
            inputs = make_inputs(normalize_maps(*augmented), settings.side)
            losses = [_loss(net(*inputs), targets[batch], sample_weight[batch], settings.smoothing) for net in nets]
            optimizer.zero_grad()
            torch.autograd.backward(torch.stack(losses).sum())
            optimizer.step()
            scheduler.step()
            _update_averages(averages, nets, 1 - settings.memory)
        if progress is not None:
            progress(1)
    return averages


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


def _shuffle_batches(lengths: Sequence[int], size: int, random: torch.Generator) -> Iterator[list[int]]:
    """Yield batches of indices in random order; within every four batches, sort by length to reduce padding."""
    order, window = torch.randperm(len(lengths), generator=random).tolist(), 4 * size
    for start in range(0, len(order), window):
        indices = sorted(order[start : start + window], key=lambda index: lengths[index])
        yield from (indices[first : first + size] for first in range(0, len(indices), size))


def _update_averages(averages: nn.Module, nets: nn.Module, step: float) -> None:
    for average, current in zip(averages.state_dict().values(), nets.state_dict().values(), strict=True):
        if average.is_floating_point():
            average.lerp_(current, step)


def _loss(logits: Tensor, targets: Tensor, sample_weight: Tensor, smoothing: float) -> Tensor:
    losses = nn.functional.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="none")
    return (losses * sample_weight).mean()


def _class_weight(targets: Tensor, settings: CnnSettings) -> Float[Tensor, " pattern"]:
    """Return the weight of each class: higher for rare ones, 1 in the mean over maps."""
    frequency = torch.bincount(targets, minlength=len(CLASSES)).clamp_min(1).float()
    weight = frequency.pow(-settings.balance)
    return weight / weight[targets].mean()
