"""What every classifier says of maps whose head and text it has never seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from headscope.patterns.classes import CLASSES
from headscope.patterns.classify.classify import agreed
from headscope.patterns.classify.cnn import Cnn
from headscope.patterns.classify.resize import CHANNELS, pictures
from headscope.patterns.classify.rules import rules
from headscope.patterns.classify.settings import CnnSettings
from headscope.patterns.labels.labelled import PatternMap
from headscope.patterns.train.fit import Said, Taught, batches, fitted
from headscope.patterns.train.folds import Fold, folds
from headscope.patterns.train.side_by_side import side_by_side

Array = np.ndarray[Any, np.dtype[Any]]
FEW = 300
"""So many maps and more are worth processes of their own."""

PIXELS = [CHANNELS.index(each) for each in ("mean", "largest")]
"""What nearest neighbours are compared by."""


@dataclass(frozen=True)
class HeldOut:
    """The probabilities of every classifier for each map, by a training without its head and its text."""

    probabilities: Mapping[str, Array]  # classifier → map pattern; `both` has `unsure` as a last one
    places: Array  # the class of each map
    folds: Sequence[Fold]
    temperature: float  # fitted to all maps


def held_out(
    maps: Sequence[PatternMap],
    labels: Sequence[str],
    settings: CnnSettings,
    *,
    seed: int = 0,
    said: Said | None = None,
) -> HeldOut:
    """Train and test in folds; `said` hears the epochs of each fold when it is done."""
    taught = [Taught(each.weights, each.source.segments, label) for each, label in zip(maps, labels, strict=True)]
    places = np.array([each.place for each in taught])
    parts = folds([each.source for each in maps], labels, settings.folds, seed=seed)
    scores = np.zeros((len(maps), len(CLASSES)))
    pixels = _pixels(taught, settings.side)
    plain = {name: np.zeros_like(scores) for name in ("nearest", "majority")}
    jobs = [(_taken(taught, fold), settings, seed + number) for number, fold in enumerate(parts)]
    for fold, found in zip(parts, side_by_side(_unseen, jobs, here=len(maps) < FEW), strict=True):
        scores[fold.test] = found
        if said is not None:
            said(settings.epochs)
        plain["nearest"][fold.test] = _sure(_nearest(pixels, fold, places))
        plain["majority"][fold.test] = _sure(np.full(len(fold.test), np.bincount(places[fold.train]).argmax()))
    cnn = _calibrated(scores, places, parts)
    by_rules = torch.cat([rules(each) for each in batches(taught)]).double().numpy()
    both = agreed(torch.from_numpy(cnn), torch.from_numpy(by_rules)).numpy()
    every = {"cnn": cnn, "rules": by_rules, "both": both, **plain}
    return HeldOut(every, places, parts, temperature(scores, places))


def _taken(taught: Sequence[Taught], fold: Fold) -> tuple[list[Taught], list[Taught]]:
    return [taught[each] for each in fold.train], [taught[each] for each in fold.test]


def _unseen(parts: tuple[list[Taught], list[Taught]], settings: CnnSettings, seed: int) -> Array:
    """The scores of the second part by networks that know only the first."""
    train, test = parts
    return net_scores(Cnn(fitted(train, settings, seed=seed), settings.side, 1.0, {}), test)


def net_scores(cnn: Cnn, maps: Sequence[Any]) -> Array:
    """The networks' scores of maps."""
    found: Array = torch.cat([cnn.scores(each) for each in batches(maps)]).double().numpy()
    return found


def temperature(scores: Array, places: Array) -> float:
    """What scores are divided by, so that confidence is what the share of right answers is."""

    def surprise(log: float) -> float:
        return float(-np.log(softened(scores, np.exp(log))[np.arange(len(places)), places] + 1e-12).mean())

    return float(np.exp(minimize_scalar(surprise, bounds=(-2.5, 2.5), method="bounded").x))


def softened(scores: Array, by: float) -> Array:
    """Scores as probabilities."""
    found: Array = torch.from_numpy(scores / by).softmax(-1).numpy()
    return found


def _calibrated(scores: Array, places: Array, parts: Sequence[Fold]) -> Array:
    """Each fold by the temperature of the others."""
    found = np.zeros_like(scores)
    for fold in parts:
        others = np.setdiff1d(np.arange(len(places)), fold.test)
        found[fold.test] = softened(scores[fold.test], temperature(scores[others], places[others]))
    return found


def _pixels(maps: Sequence[Taught], side: int) -> Array:
    found: Array = torch.cat([pictures(each, side)[:, PIXELS].flatten(1) for each in batches(maps)]).numpy()
    return found


def _nearest(pixels: Array, fold: Fold, places: Array) -> Array:
    """The class of the training map whose picture is nearest."""
    apart = torch.cdist(torch.from_numpy(pixels[fold.test]), torch.from_numpy(pixels[fold.train]))
    found: Array = places[fold.train][apart.argmin(-1).numpy()]
    return found


def _sure(places: Array) -> Array:
    found: Array = np.eye(len(CLASSES))[places]
    return found
