"""Cross-validated predictions: every map is classified without training on its head or its text."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from headscope.engine.device import single_thread
from headscope.patterns import CLASSES
from headscope.patterns.classify.classify import combine
from headscope.patterns.classify.cnn import CnnEnsemble, CnnSettings
from headscope.patterns.classify.resize import CHANNELS, resize_maps
from headscope.patterns.classify.rules import classify_by_rules
from headscope_patterns.labels.labelled_maps import Array
from headscope_patterns.train.fit import fit_networks
from headscope_patterns.train.folds import Fold
from headscope_patterns.train.training_set import Progress, TrainingMap, TrainingSet, normalized_batches

MIN_PARALLEL = 300
"""Folds are trained in parallel from this number of maps on."""

NEIGHBOUR_CHANNELS = [CHANNELS.index(name) for name in ("mean", "max")]
"""The channels by which nearest neighbours are compared."""


@dataclass(frozen=True)
class Predictions:
    """Cross-validated probabilities of every classifier for each map."""

    probabilities: Mapping[str, Array]  # classifier → map pattern; `both` has `unsure` as its last class
    targets: Array  # the index of each map's class
    temperature: float  # fitted on all maps that are trained on

    @property
    def classes(self) -> dict[str, Array]:
        """The index of the most probable class, for every classifier."""
        return {name: probabilities.argmax(-1) for name, probabilities in self.probabilities.items()}


def cross_validate(training: TrainingSet, progress: Progress | None = None) -> Predictions:
    """Train and test in folds; call `progress` with the epochs of each fold when it is done."""
    maps, folds, settings = training.training_maps, training.folds, training.settings
    targets = np.array([item.target for item in maps])
    logits, one_hot = np.zeros((len(maps), len(CLASSES))), np.eye(len(CLASSES))
    baselines = {name: np.zeros_like(logits) for name in ("nearest", "majority")}
    batches = normalized_batches(maps)
    pixels = torch.cat([resize_maps(batch, settings.side)[:, NEIGHBOUR_CHANNELS] for batch in batches]).flatten(1)
    jobs = [
        ([maps[index] for index in fold.train], [maps[index] for index in fold.test], settings, training.seed + number)
        for number, fold in enumerate(folds)
    ]
    results = map_parallel(_train_and_test, jobs, in_process=len(maps) < MIN_PARALLEL)
    for fold, fold_logits in zip(folds, results, strict=True):
        logits[fold.test] = fold_logits
        if progress is not None:
            progress(settings.epochs)
        nearest = torch.cdist(pixels[fold.test], pixels[fold.train]).argmin(-1).numpy()
        baselines["nearest"][fold.test] = one_hot[targets[fold.train][nearest]]
        baselines["majority"][fold.test] = one_hot[np.bincount(targets[fold.train]).argmax()]
    trained = training.trained
    cnn = _calibrate(logits, targets, folds, trained)
    rules = torch.cat([classify_by_rules(batch) for batch in batches]).double().numpy()
    both = combine(torch.from_numpy(cnn), torch.from_numpy(rules)).numpy()
    probabilities = {"cnn": cnn, "rules": rules, "both": both, **baselines}
    return Predictions(probabilities, targets, fit_temperature(logits[trained], targets[trained]))


def _train_and_test(train: list[TrainingMap], test: list[TrainingMap], settings: CnnSettings, seed: int) -> Array:
    """Return the logits of the test maps."""
    cnn = CnnEnsemble(fit_networks(train, settings, seed=seed), settings.side, 1.0, {})
    logits: Array = torch.cat([cnn.logits(batch) for batch in normalized_batches(test)]).double().numpy()
    return logits


def fit_temperature(logits: Array, targets: Array) -> float:
    """Return the temperature that minimises the cross-entropy, so that confidence matches accuracy."""

    def cross_entropy(log_temperature: float) -> float:
        probabilities = softmax(logits, np.exp(log_temperature))
        return float(-np.log(probabilities[np.arange(len(targets)), targets] + 1e-12).mean())

    return float(np.exp(minimize_scalar(cross_entropy, bounds=(-2.5, 2.5), method="bounded").x))


def softmax(logits: Array, temperature: float) -> Array:
    """Return probabilities from logits at a temperature."""
    probabilities: Array = torch.from_numpy(logits / temperature).softmax(-1).numpy()
    return probabilities


def _calibrate(logits: Array, targets: Array, folds: Sequence[Fold], trained: Array) -> Array:
    """Return the probabilities of each fold, at the temperature of the other maps that are trained on."""
    probabilities = np.zeros_like(logits)
    for fold in folds:
        others = np.setdiff1d(trained, fold.test)
        probabilities[fold.test] = softmax(logits[fold.test], fit_temperature(logits[others], targets[others]))
    return probabilities


def map_parallel(
    function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], *, in_process: bool = False
) -> Iterator[Any]:
    """Yield the function's result for each job, in order; run on all cores unless `in_process`.

    Every job runs on one thread, so that its result does not depend on the number of cores.

    >>> list(map_parallel(divmod, [(7, 2), (9, 4)], in_process=True))
    [(3, 1), (2, 1)]
    """
    workers = min(len(jobs), os.cpu_count() or 1)
    if in_process or workers < 2:
        with single_thread():
            yield from (function(*job) for job in jobs)
        return
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        yield from pool.map(function, *zip(*jobs, strict=True))
