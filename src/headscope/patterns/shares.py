"""Shares of classes, corrected for the errors of the classifier, with confidence intervals.

A classifier that takes one in ten vertical maps for heterogeneous ones counts too few of the first and too many of the
second. If C is its confusion matrix on cross-validated maps, row-normalised, and p the true shares, it counts q = Cᵀp.
p is estimated from q by maximum likelihood. Its interval comes from resampling q, and the rows of C from Dirichlet
distributions.
"""

from pathlib import Path

import numpy as np

from headscope.patterns import CLASSES
from headscope.patterns.classify.classify import CLASSIFIERS, class_names
from headscope.patterns.classify.cnn import BUNDLED, read_metadata
from headscope.uncertainty.bootstrap import percentile_interval
from headscope.uncertainty.intervals import Array

DRAWS = 500
STEPS = 200
PRIOR = 1.0
"""Pseudo-count of each row of C, spread over all predictions."""


def read_confusion(classifier: str) -> Array:
    """Return the confusion matrix of a classifier on cross-validated maps: class prediction."""
    by_name = read_metadata(BUNDLED if classifier in CLASSIFIERS else Path(classifier))["errors"]
    table = np.array(by_name[classifier if classifier in CLASSIFIERS else "cnn"], dtype=np.float64)
    return table[:, : len(class_names(classifier))]


def pool_heads(
    mean: Array,  # … head prediction
    variance: Array,
) -> tuple[Array, Array]:
    """Return the mean over heads and an upper bound of its standard error, reached where heads correlate fully.

    `variance` is that of each head's mean; heads without examples, which are NaN, are left out.
    """
    finite = np.isfinite(mean)
    count = np.maximum(finite.sum(-2), 1)
    share = np.where(finite, mean, 0).sum(-2) / count
    error = np.where(finite, np.sqrt(variance), 0).sum(-2) / count
    known = finite.any(-2)
    return np.where(known, share, np.nan), np.where(known, error, np.nan)


def correct_shares(
    counted: Array,  # row prediction
    error: Array,  # its standard error
    confusion: Array,  # class prediction
    *,
    seed: int = 0,
) -> tuple[Array, Array, Array]:
    """Return the estimated true shares and their 95 % interval; NaN where nothing was counted.

    >>> confusion = np.array([[90.0, 10.0], [20.0, 80.0]])
    >>> correct_shares(np.array([[0.55, 0.45]]), np.zeros((1, 2)), confusion)[0].round(2).tolist()
    [[0.5, 0.5]]
    """
    random = np.random.default_rng(seed)
    rates, drawn_rates = draw_rates(confusion, DRAWS, random)
    share = estimate_shares(counted[..., None], rates[..., None])[..., 0]
    drawn = counted[..., None] + error[..., None] * random.standard_normal((*counted.shape, DRAWS))
    drawn = np.maximum(drawn, 1e-9)
    estimates = estimate_shares(drawn / drawn.sum(1, keepdims=True), drawn_rates)
    low, high = percentile_interval(estimates, axis=-1)
    return share, np.minimum(low, share), np.maximum(high, share)


def draw_rates(confusion: Array, draws: int, random: np.random.Generator) -> tuple[Array, Array]:
    """Return C, class prediction, and draws of its rows from Dirichlet distributions, class prediction draw."""
    counts = confusion + PRIOR / confusion.shape[1]
    drawn = np.stack([random.dirichlet(row, size=draws).T for row in counts])
    return counts / counts.sum(-1, keepdims=True), drawn


def estimate_shares(counted: Array, rates: Array) -> Array:
    """Return the maximum-likelihood shares p for q = Cᵀp, by expectation maximisation.

    `counted`, q, is row prediction draw; `rates`, C, is class prediction draw; the shares are row class draw.
    """
    share: Array = np.full((len(counted), len(rates), counted.shape[-1]), 1 / len(rates))
    for _ in range(STEPS):
        expected = np.einsum("rpd,pqd->rqd", share, rates)
        share = share * np.einsum("pqd,rqd->rpd", rates, counted / expected)
    return share


def append_unsure(share: Array, classifier: str) -> Array:
    """Extend true shares to all predictions of a classifier; NaN for `unsure`, which is no true class."""
    missing = len(class_names(classifier)) - len(CLASSES)
    return np.concatenate([share, np.full((*share.shape[:-1], missing), np.nan)], axis=-1)
