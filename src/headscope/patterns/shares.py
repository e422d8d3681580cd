"""From counted shares of classes to shares with the classifier's own errors taken out, and how sure they are.

A classifier that takes one in ten vertical maps for heterogeneous ones counts too few of the first and too many of the
second. Its errors on labelled maps that it had not seen, C, say what is counted where the true shares are p: q = Cᵀp.
From q follows the likeliest p. Its interval comes from drawing q, and C with rows of Dirichlet distributions, again and
again.
"""

from pathlib import Path
from typing import Any

import numpy as np

from headscope.patterns.classes import CLASSES
from headscope.patterns.classify.classify import NAMED, patterns
from headscope.patterns.classify.cnn import BUNDLED, about_cnn

Array = np.ndarray[Any, np.dtype[np.float64]]
DRAWS = 500
STEPS = 200
PRIOR = 1.0
"""The weight of one map in each row of C, spread over all predictions."""


def errors_of(classifier: str) -> Array:
    """How often each class met each prediction of a classifier, on maps that it had not seen: class prediction."""
    held = about_cnn(BUNDLED if classifier in NAMED else Path(classifier))["errors"]
    table = np.array(held[classifier if classifier in NAMED else "cnn"], dtype=np.float64)
    return table[:, : len(patterns(classifier))]


def pooled(
    mean: Array,  # … head prediction
    variance: Array,
) -> tuple[Array, Array]:
    """The mean over heads, and its standard error if all heads erred together, which is the most it can be.

    `variance` is that of each head's mean; heads without any example do not count.
    """
    there = np.isfinite(mean)
    many = np.maximum(there.sum(-2), 1)
    share = np.where(there, mean, 0).sum(-2) / many
    error = np.where(there, np.sqrt(variance), 0).sum(-2) / many
    seen = there.any(-2)
    return np.where(seen, share, np.nan), np.where(seen, error, np.nan)


def corrected(
    counted: Array,  # row prediction
    error: Array,  # the standard error of that
    errors: Array,  # class prediction
    *,
    seed: int = 0,
) -> tuple[Array, Array, Array]:
    """The likeliest true shares and their 95 % interval; NaN where nothing was counted.

    >>> exact = np.array([[90.0, 10.0], [20.0, 80.0]])
    >>> corrected(np.array([[0.55, 0.45]]), np.zeros((1, 2)), exact)[0].round(2).tolist()
    [[0.5, 0.5]]
    """
    random = np.random.default_rng(seed)
    table = errors + PRIOR / errors.shape[1]
    share = likeliest(counted[..., None], (table / table.sum(-1, keepdims=True))[..., None])[..., 0]
    rows = np.stack([random.dirichlet(row, size=DRAWS).T for row in table])  # class prediction draw
    again = counted[..., None] + error[..., None] * random.standard_normal((*counted.shape, DRAWS))
    again = np.maximum(again, 1e-9)
    found = likeliest(again / again.sum(1, keepdims=True), rows)
    low, high = np.percentile(found, [2.5, 97.5], axis=-1)
    return share, np.minimum(low, share), np.maximum(high, share)


def likeliest(counted: Array, table: Array) -> Array:
    """The shares p ≥ 0 that add up to one under which q = Cᵀp is the likeliest; by expectation and maximisation.

    `counted` is row prediction draw, `table` is class prediction draw; the shares are row class draw.
    """
    share: Array = np.full((len(counted), len(table), counted.shape[-1]), 1 / len(table))
    for _ in range(STEPS):
        expected = np.einsum("rpd,pqd->rqd", share, table)
        share = share * np.einsum("pqd,rqd->rpd", table, counted / expected)
    return share


def named(share: Array, classifier: str) -> Array:
    """True shares along a classifier's own classes; NaN for `unsure`, which no map is."""
    missing = len(patterns(classifier)) - len(CLASSES)
    return np.concatenate([share, np.full((*share.shape[:-1], missing), np.nan)], axis=-1)
