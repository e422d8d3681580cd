"""Labelled maps to train on, with the settings of the training, and batches of them."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.checks import check_seed
from headscope.core.errors import InputError
from headscope.core.prose import join_words
from headscope.patterns import CLASSES
from headscope.patterns.classify.cnn import DEFAULT_SETTINGS, CnnSettings
from headscope.patterns.classify.normalize import NormalizedMaps, Real, Segments, normalize_maps
from headscope.results.hashes import fingerprint
from headscope.version import __version__
from headscope_patterns.labels.labelled_maps import Array, LabelledMaps, PatternMap, Source
from headscope_patterns.train.folds import Fold, add_tests, split_folds

MIN_LABELS = 5
"""A class with fewer labelled maps would be missing from some folds."""

Progress = Callable[[int], None]
"""A callback that is given the number of epochs completed since its last call."""


@dataclass(frozen=True)
class TrainingMap:
    """One map with its class."""

    weights: Array  # query key
    segments: Sequence[int]
    label: str
    sample_weight: float = 1.0

    @property
    def target(self) -> int:
        """The index of its class."""
        return CLASSES.index(self.label)


@dataclass(frozen=True)
class TrainingSet:
    """The maps labelled in one annotation pass, with the settings and the seed of a training."""

    labelled: LabelledMaps
    name: str  # of the pass
    maps: Sequence[PatternMap]
    labels: Sequence[str]
    settings: CnnSettings
    seed: int

    @property
    def sources(self) -> list[Source]:
        """The source of every map."""
        return [item.source for item in self.maps]

    @property
    def training_maps(self) -> list[TrainingMap]:
        """The maps in the form that networks are trained on."""
        pairs = zip(self.maps, self.labels, strict=True)
        return [TrainingMap(item.weights, item.source.segments, label) for item, label in pairs]

    @cached_property
    def trained(self) -> Array:
        """The indices of the maps that networks are trained on: all but those of the part `test`."""
        return np.flatnonzero([source.part != "test" for source in self.sources])

    @cached_property
    def folds(self) -> list[Fold]:
        """The folds of a cross-validation; maps of the part `test` are only tested."""
        sources, trained = self.sources, self.trained
        folds = split_folds(
            [sources[index] for index in trained],
            [self.labels[index] for index in trained],
            self.settings.folds,
            seed=self.seed,
        )
        folds = [Fold(trained[fold.test], trained[fold.train]) for fold in folds]
        return add_tests(folds, sources, np.setdiff1d(np.arange(len(sources)), trained))

    @property
    def epochs(self) -> int:
        """The number of epochs of a cross-validation."""
        return self.settings.epochs * len(self.folds)

    def metadata(self) -> dict[str, Any]:
        """Return what identifies this set, for results and files of networks."""
        lines = (
            f"{item.source.id} {label} {hashlib.sha256(item.weights.tobytes()).hexdigest()}"
            for item, label in zip(self.maps, self.labels, strict=True)
        )
        return {
            "version": __version__,
            "labels": self.name,
            "labels_hash": fingerprint(sorted(lines)),
            "labelled_maps": len(self.maps),
            "seed": self.seed,
            "settings": asdict(self.settings),
        }


def select_training_set(
    labelled: LabelledMaps, name: str | None = None, *, seed: int = 0, settings: CnnSettings = DEFAULT_SETTINGS
) -> TrainingSet:
    """Select the maps of a pass, by default the first; raise InputError where a class has too few."""
    check_seed(seed)
    if not labelled.passes:
        raise InputError("These maps have no labels. Label them first: headscope patterns label.")
    name = name if name is not None else next(iter(labelled.passes))
    maps, labels = labelled.select(name)
    trained = [label for item, label in zip(maps, labels, strict=True) if item.source.part != "test"]
    counts = {label: trained.count(label) for label in CLASSES}
    if rare := [f"{label} has {count}" for label, count in counts.items() if count < MIN_LABELS]:
        raise InputError(
            f"Every class needs at least {MIN_LABELS} labelled maps, but in the pass '{name}' {join_words(rare)}. "
            "Label more."
        )
    return TrainingSet(labelled, name, maps, labels, settings, seed)


def pad_maps(maps: Sequence[TrainingMap]) -> tuple[Float[Tensor, "map token token"], Real, Segments]:
    """Return the weights of maps padded to the longest, which tokens are real, and the segments."""
    width = max(len(item.segments) for item in maps)
    weights = torch.zeros(len(maps), width, width)
    segments, real = torch.zeros(len(maps), width, dtype=torch.long), torch.zeros(len(maps), width, dtype=torch.bool)
    for index, item in enumerate(maps):
        n = len(item.segments)
        weights[index, :n, :n] = torch.from_numpy(np.ascontiguousarray(item.weights))
        segments[index, :n] = torch.tensor(item.segments)
        real[index, :n] = True
    return weights, real, segments


def normalized_batches(maps: Sequence[TrainingMap], size: int = 64) -> list[NormalizedMaps]:
    """Return maps in batches, in their order, as classifiers take them."""
    return [normalize_maps(*pad_maps(maps[start : start + size])) for start in range(0, len(maps), size)]
