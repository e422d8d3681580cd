"""Shares of classes, corrected for the errors of the classifier, with confidence intervals.

A classifier that takes one in ten vertical maps for heterogeneous ones counts too few of the first and too many of the
second. If C holds its error rates on cross-validated maps of the same lens, class by prediction, and p the true shares,
it counts q = Cᵀp. p is estimated from q by maximum likelihood.

Intervals draw what was sampled: the heads and the texts of the counted maps, and the heads, or else the texts, of the
labelled maps, whichever gives the wider interval. Weights of heads are exponential (the Bayesian bootstrap); without
clusters the rows of C would be drawn from Dirichlet distributions.

Two lenses have different C, so that maps which are the same through both would get different shares. `correct_parts`
therefore corrects maps that equal raw's by raw's C, and only the others by that of their lens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headscope.patterns import CLASSES
from headscope.patterns.classify.classify import CLASSIFIERS, class_names
from headscope.patterns.classify.cnn import BUNDLED, read_metadata
from headscope.uncertainty.bootstrap import percentile_interval
from headscope.uncertainty.intervals import Array

Column = np.ndarray[Any, np.dtype[Any]]
DRAWS = 500
STEPS = 200
PRIOR = 1.0
"""Pseudo-count of each row of a lens's C, spread over predictions as the maps of all lenses are."""


@dataclass(frozen=True)
class Errors:
    """The cross-validated predictions of a classifier on labelled maps; one entry for each map."""

    lens: Column
    head: Column
    text: Column
    label: Column  # the index of its class
    predicted: Column  # the index of the prediction
    predictions: int  # the number of classes that can be predicted

    @property
    def cell(self) -> Column:
        """The cell of every map in a flattened table of class by prediction."""
        return np.asarray(self.label * self.predictions + self.predicted)

    def of(self, lens: str) -> Column:
        """Return which maps are of a lens; all of them where none was labelled."""
        chosen: Column = self.lens == lens
        return chosen if chosen.any() else np.ones(len(self.lens), dtype=bool)

    def count(self, lens: str) -> Array:
        """Return the confusion matrix of a lens: class prediction."""
        counts = np.bincount(self.cell[self.of(lens)], minlength=len(CLASSES) * self.predictions)
        return counts.reshape(len(CLASSES), self.predictions).astype(np.float64)

    def prior(self) -> Array:
        """Return the pseudo-counts of every cell: in each row PRIOR in all, by the rates over all lenses."""
        counts = np.bincount(self.cell, minlength=len(CLASSES) * self.predictions).reshape(len(CLASSES), -1)
        smoothed = counts + 1 / self.predictions
        return np.asarray(PRIOR * smoothed / smoothed.sum(-1, keepdims=True))


def read_errors(classifier: str) -> Errors:
    """Return the cross-validated predictions of a classifier on the labelled maps that it was evaluated with."""
    table = read_metadata(BUNDLED if classifier in CLASSIFIERS else Path(classifier))["errors"]
    columns = {name: np.array(table[name]) for name in ("lens", "head", "text", "label")}
    predicted = np.array(table[classifier if classifier in CLASSIFIERS else "cnn"])
    return Errors(**columns, predicted=predicted, predictions=len(class_names(classifier)))


@dataclass(frozen=True)
class Shares:
    """Counted and corrected shares of a few rows, such as lenses, with draws of both."""

    counted: Array  # row prediction
    drawn_counts: Array  # draw row prediction
    share: Array  # row class
    drawn: Array  # by draw row class: `by` is heads or texts of the labelled maps

    def interval(self) -> tuple[Array, Array]:
        """Return the 95 % interval of the corrected shares."""
        low, high = widest_interval(self.drawn)
        return np.minimum(low, self.share), np.maximum(high, self.share)


def correct_shares(
    heads: Array,  # head row prediction: the share of each head's maps
    covariance: Array,  # row prediction row prediction, of the mean over heads, from the texts
    lenses: Sequence[str],  # of each row
    errors: Errors,
    *,
    seed: int = 0,
) -> Shares:
    """Return shares over heads, and true shares estimated from them; NaN where nothing was counted.

    Every draw has a further head of unknown classes, so that the interval of a class of which no map was seen does not
    end at 0.
    """
    random = np.random.default_rng(seed)
    counted = _mean_heads(heads, np.ones((1, len(heads))))[0]
    rates, drawn_rates = draw_rates(errors, lenses, random)
    drawn_counts = _draw_counts(heads, covariance, random)
    share = estimate_shares(counted[..., None], rates[..., None])[..., 0]
    drawn = np.stack([estimate_shares(np.moveaxis(drawn_counts, 0, -1), draw) for draw in drawn_rates])
    number = np.isfinite(heads[..., 0]).sum(0)[:, None]
    drawn_counts, drawn = (_add_unknown(table, number, random) for table in (drawn_counts, np.moveaxis(drawn, -1, 1)))
    return Shares(counted, drawn_counts, share, drawn)


def correct_parts(
    parts: Array,  # lens part prediction, in shares of all maps; the parts are those that equal raw's, and the others
    covariance: Array,  # lens part prediction lens part prediction, of the mean over inputs
    lenses: Sequence[str],
    errors: Errors,
    inputs: int,
    *,
    first: int = 0,  # the index of raw attention, all of whose maps are in the first part
    seed: int = 0,
) -> tuple[Array, Array]:
    """Return true shares, lens class, and draws of them, by draw lens class; NaN where nothing was counted.

    Heads are fixed; inputs and the errors of the classifier are drawn. Every draw has a further input of unknown
    classes, the same through all lenses. A lens that changes no map has the shares and the draws of raw attention.
    """
    random = np.random.default_rng(seed)
    rates, drawn_rates = draw_rates(errors, lenses, random)
    counts = _draw_noise(parts[None], covariance, random)  # draw lens part prediction
    counts /= counts.sum((2, 3), keepdims=True)
    share = _mix(np.moveaxis(parts, -1, 0)[..., None], rates[..., None], first)[..., 0]
    drawn = np.stack([_mix(np.moveaxis(counts, (0, -1), (-1, 0)), draw, first) for draw in drawn_rates])
    drawn = np.moveaxis(drawn, -1, 1)  # by draw lens class
    same = parts[:, 1].sum(-1) == 0
    share[same], drawn[:, :, same] = share[[first]], drawn[:, :, [first]]
    unknown = random.dirichlet(np.full(share.shape[-1], 1 / share.shape[-1]), size=(*drawn.shape[:2], 1))
    return share, (inputs * drawn + unknown) / (inputs + 1)


def _mix(parts: Array, rates: Array, first: int) -> Array:
    """Return shares, lens class draw: of both parts, prediction lens part draw, each corrected by its rates."""
    counted = np.moveaxis(parts, 0, 2)  # lens part prediction draw
    sizes = counted.sum(2, keepdims=True)
    tables = np.stack([np.broadcast_to(rates[[first]], rates.shape), rates])  # part lens class prediction draw
    with np.errstate(invalid="ignore", divide="ignore"):
        estimates = [estimate_shares(counted[:, part] / sizes[:, part], tables[part]) for part in range(2)]
    weighted = [np.where(sizes[:, part] == 0, 0, sizes[:, part] * estimates[part]) for part in range(2)]
    return np.asarray(weighted[0] + weighted[1])


def _add_unknown(drawn: Array, heads: Column, random: np.random.Generator) -> Array:
    """Return shares over a further head, whose classes are drawn at random: … row class."""
    size = drawn.shape[-1]
    unknown = random.dirichlet(np.full(size, 1 / size), size=drawn.shape[:-1])
    return np.asarray((heads * drawn + unknown) / (heads + 1))


def draw_rates(errors: Errors, lenses: Sequence[str], random: np.random.Generator) -> tuple[Array, Array]:
    """Return C of every lens, lens class prediction, and draws of it: by lens class prediction draw.

    The first draws are of heads, the second of texts; a head or text has the same weight for every lens.
    """
    prior = errors.prior()
    rates = np.stack([errors.count(lens) + prior for lens in lenses])
    drawn = []
    for group in (errors.head, errors.text):
        names, index = np.unique(group, return_inverse=True)
        weights = random.standard_exponential((len(names), DRAWS))
        tables = np.stack([_sum_cells(errors, index, weights, errors.of(lens)) for lens in lenses])
        drawn.append(tables + random.gamma(prior[..., None], size=tables.shape))
    normalized = np.stack(drawn)
    return rates / rates.sum(-1, keepdims=True), normalized / normalized.sum(-2, keepdims=True)


def _sum_cells(errors: Errors, index: Column, weights: Array, chosen: Column) -> Array:
    """Return the weight of the chosen maps in each cell, class prediction draw: of every map that of its index."""
    maps = np.zeros((len(CLASSES) * errors.predictions, len(weights)))
    np.add.at(maps, (errors.cell[chosen], index[chosen]), 1)
    return np.asarray(maps @ weights).reshape(len(CLASSES), errors.predictions, -1)


def _draw_counts(heads: Array, covariance: Array, random: np.random.Generator) -> Array:
    """Return draws of the mean over heads, draw row prediction: heads by their weights, texts by their covariance."""
    drawn = _draw_noise(_mean_heads(heads, random.standard_exponential((DRAWS, len(heads)))), covariance, random)
    return np.asarray(drawn / drawn.sum(-1, keepdims=True))


def _draw_noise(means: Array, covariance: Array, random: np.random.Generator) -> Array:
    """Return draws around means, draw …, by their covariance; what was never counted stays nearly 0."""
    size = means[0].size
    if not np.isfinite(covariance).all():
        return np.full((DRAWS, *means.shape[1:]), np.nan)
    values, vectors = np.linalg.eigh(covariance.reshape(size, size))
    noise = random.standard_normal((DRAWS, size)) * np.sqrt(np.maximum(values, 0)) @ vectors.T
    return np.asarray(np.maximum(means + noise.reshape(DRAWS, *means.shape[1:]), 1e-9))


def _mean_heads(heads: Array, weights: Array) -> Array:
    """Return weighted means over heads, draw row prediction; heads that are NaN are left out."""
    finite = np.isfinite(heads)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.einsum("dh,hrp->drp", weights, np.where(finite, heads, 0.0))
        return np.asarray(total / np.einsum("dh,hrp->drp", weights, finite.astype(float)))


def estimate_shares(counted: Array, rates: Array) -> Array:
    """Return the maximum-likelihood shares p for q = Cᵀp, by expectation maximisation.

    `counted`, q, is row prediction draw; `rates`, C, is row class prediction draw; the shares are row class draw.
    """
    share: Array = np.full((*rates.shape[:2], counted.shape[-1]), 1 / rates.shape[1])
    for _ in range(STEPS):
        expected = np.einsum("rpd,rpqd->rqd", share, rates)
        share = share * np.einsum("rpqd,rqd->rpd", rates, counted / expected)
    return share


def widest_interval(draws: Array) -> tuple[Array, Array]:
    """Return the interval from the lowest low to the highest high along the first axis."""
    low, high = percentile_interval(draws, axis=1)
    return low.min(0), high.max(0)


def append_unsure(share: Array, classifier: str) -> Array:
    """Extend true shares to all predictions of a classifier; NaN for `unsure`, which is no true class."""
    missing = len(class_names(classifier)) - len(CLASSES)
    return np.concatenate([share, np.full((*share.shape[:-1], missing), np.nan)], axis=-1)
