"""Training the networks on labelled maps."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from headscope.patterns.classes import CLASSES
from headscope.patterns.classify.cnn import Net, fused, seen_by_net
from headscope.patterns.classify.row_weights import Real, Segments, Sizes, sizes_of
from headscope.patterns.classify.settings import CnnSettings
from headscope.patterns.train.augment import augmented
from headscope.patterns.train.hand_built import hand_built

Array = np.ndarray[Any, np.dtype[Any]]
Said = Callable[[int], None]


@dataclass(frozen=True)
class Taught:
    """One map to learn from."""

    weights: Array  # query key
    segments: Sequence[int]
    label: str
    counts: float = 1.0  # how much it counts

    @property
    def place(self) -> int:
        """The place of its class."""
        return CLASSES.index(self.label)


def padded(maps: Sequence[Any]) -> tuple[Float[Tensor, "map token token"], Real, Segments]:
    """Anything with `weights` and `segments`, side by side."""
    wide = max(len(each.segments) for each in maps)
    weights = torch.zeros(len(maps), wide, wide)
    segments, real = torch.zeros(len(maps), wide, dtype=torch.long), torch.zeros(len(maps), wide, dtype=torch.bool)
    for place, each in enumerate(maps):
        n = len(each.segments)
        weights[place, :n, :n] = torch.from_numpy(np.ascontiguousarray(each.weights))
        segments[place, :n] = torch.tensor(each.segments)
        real[place, :n] = True
    return weights, real, segments


def batches(maps: Sequence[Any], many: int = 64) -> Sequence[Sizes]:
    """Maps as a classifier sees them, some at a time, in their order."""
    return [sizes_of(*padded(maps[start : start + many])) for start in range(0, len(maps), many)]


def fitted(maps: Sequence[Taught], settings: CnnSettings, *, seed: int, said: Said | None = None) -> tuple[Net, ...]:
    """Networks trained on these maps and on some built by hand; `said` hears 1 after every epoch.

    All see the same batches and begin with other weights. AdamW, a rate that rises and falls, and in the end the
    running mean of weights over the last steps.
    """
    built = hand_built(settings.hand_built, seed=seed)
    extra = [Taught(each.weights, each.segments, each.label, settings.hand_built_weight) for each in built]
    every, random = [*maps, *extra], torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        nets = nn.ModuleList([Net(settings, normalised=True) for _ in range(settings.nets)])
        return tuple(fused(net, settings) for net in _means(nets, every, settings, random, said))


def _means(
    nets: nn.ModuleList, maps: Sequence[Taught], settings: CnnSettings, random: torch.Generator, said: Said | None
) -> list[Net]:
    """Train the networks, and give the running means of their weights."""
    means = deepcopy(nets)
    steps = settings.epochs * -(-len(maps) // settings.batch)
    way = torch.optim.AdamW(nets.parameters(), lr=settings.rate, weight_decay=settings.decay)
    rates = torch.optim.lr_scheduler.OneCycleLR(way, settings.rate, total_steps=steps, pct_start=0.2)
    places = torch.tensor([each.place for each in maps])
    counts = torch.tensor([each.counts for each in maps]) * _balance(places, settings)[places]
    for _ in range(settings.epochs):
        for chosen in _batches([len(each.segments) for each in maps], settings.batch, random):
            given = augmented(*padded([maps[each] for each in chosen]), random, settings)
            seen = seen_by_net(sizes_of(*given), settings.side)
            losses = [_loss(net(*seen), places[chosen], counts[chosen], settings.smoothing) for net in nets]
            way.zero_grad()
            torch.autograd.backward(torch.stack(losses).sum())
            way.step()
            rates.step()
            _follow(means, nets, 1 - settings.memory)
        if said is not None:
            said(1)
    return [each for each in means if isinstance(each, Net)]


def _batches(lengths: Sequence[int], many: int, random: torch.Generator) -> Iterator[list[int]]:
    """All places in random order, but in each few batches those of like length together: there is less to pad."""
    order, few = torch.randperm(len(lengths), generator=random).tolist(), 4 * many
    for start in range(0, len(order), few):
        alike = sorted(order[start : start + few], key=lambda place: lengths[place])
        yield from (alike[first : first + many] for first in range(0, len(alike), many))


def _follow(means: nn.Module, nets: nn.Module, step: float) -> None:
    """Move the running means a step towards the weights of now."""
    for mean, now in zip(means.state_dict().values(), nets.state_dict().values(), strict=True):
        if mean.is_floating_point():
            mean.lerp_(now, step)


def _loss(found: Tensor, places: Tensor, counts: Tensor, smoothing: float) -> Tensor:
    each = nn.functional.cross_entropy(found, places, label_smoothing=smoothing, reduction="none")
    return (each * counts).mean()


def _balance(places: Tensor, settings: CnnSettings) -> Float[Tensor, " pattern"]:
    """What a map of each class counts; rare classes more, all maps together as many as they are."""
    often = torch.bincount(places, minlength=len(CLASSES)).clamp_min(1).float()
    weight = often.pow(-settings.balance)
    return weight / weight[places].mean()
