"""How good predictions are: values from counts and pairs, and how far they would vary with other examples."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import rankdata
from sklearn.metrics import confusion_matrix

TIMES, SEED = 1000, 0
"""How often examples are drawn again for an interval, and from which seed."""

Z = 1.959963984540054  # the normal quantile of 95 % between both ends

Counts = Int[np.ndarray, "*draws label prediction"]


def counted(labels: Any, predictions: Any, classes: int) -> Counts:
    """How often each label met each prediction."""
    found: Counts = confusion_matrix(labels, predictions, labels=range(classes)).astype(np.int64)
    return found


def accuracy(counts: Counts) -> Float[np.ndarray, "*draws"]:
    """The share of predictions that are right."""
    right = np.trace(counts, axis1=-2, axis2=-1)
    return _ratio(right, counts.sum((-2, -1)), empty=np.nan)


def f1(counts: Counts) -> Float[np.ndarray, "*draws"]:
    """The harmonic mean of precision and recall of class 1, of two classes; 0 where it was never right."""
    right, missed, false = counts[..., 1, 1], counts[..., 1, 0], counts[..., 0, 1]
    return _ratio(2 * right, 2 * right + missed + false, empty=0.0)


def matthews(counts: Counts) -> Float[np.ndarray, "*draws"]:
    """Matthews' correlation of labels and predictions, for any number of classes; 0 where either has one class only."""
    counts = counts.astype(float)  # products of counts outgrow whole numbers
    total, right = counts.sum((-2, -1)), np.trace(counts, axis1=-2, axis2=-1)
    true, guessed = counts.sum(-1), counts.sum(-2)
    both = right * total - (true * guessed).sum(-1)
    spread = (total**2 - (true**2).sum(-1)) * (total**2 - (guessed**2).sum(-1))
    return _ratio(both, np.sqrt(spread), empty=0.0)


def pearson(
    labels: Float[np.ndarray, "*draws example"], predictions: Float[np.ndarray, "*draws example"]
) -> Float[np.ndarray, "*draws"]:
    """The linear correlation; NaN where either side is constant."""
    one, other = (each - each.mean(-1, keepdims=True) for each in (labels, predictions))
    flat = (np.ptp(labels, -1) == 0) | (np.ptp(predictions, -1) == 0)  # rounding leaves no clean zero below
    sizes = np.sqrt((one**2).sum(-1) * (other**2).sum(-1))
    return np.where(flat, np.nan, _ratio((one * other).sum(-1), sizes, empty=np.nan))


def spearman(
    labels: Float[np.ndarray, "*draws example"], predictions: Float[np.ndarray, "*draws example"]
) -> Float[np.ndarray, "*draws"]:
    """The correlation of ranks, ties sharing theirs."""
    return pearson(rankdata(labels, axis=-1), rankdata(predictions, axis=-1))


def perplexity(
    losses: Float[np.ndarray, "*draws example"], tokens: Float[np.ndarray, "*draws example"]
) -> Float[np.ndarray, "*draws"]:
    """exp of the mean loss of a token, from the summed losses of examples and how many tokens these are over."""
    mean = _ratio(losses.sum(-1), tokens.sum(-1), empty=np.nan)
    return np.asarray(np.exp(mean))


def wilson(right: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    >>> [round(end, 3) for end in wilson(8, 10)]
    [0.49, 0.943]
    """
    if not total:
        return float("nan"), float("nan")
    share, extra = right / total, Z**2 / total
    middle = share + extra / 2
    reach = Z * np.sqrt(share * (1 - share) / total + extra / (4 * total))
    return float((middle - reach) / (1 + extra)), float((middle + reach) / (1 + extra))


def counts_drawn_again(
    counts: Int[np.ndarray, "label prediction"],
) -> Int[np.ndarray, "draw label prediction"]:
    """Counts as they would be for other examples: drawing pairs with replacement is a multinomial over the cells."""
    shares = counts.ravel() / counts.sum()
    drawn = np.random.default_rng(SEED).multinomial(int(counts.sum()), shares, size=TIMES)
    return drawn.reshape(TIMES, *counts.shape)


def drawn_again(
    metric: Callable[..., Float[np.ndarray, "*draws"]], *values: Float[np.ndarray, " example"]
) -> Float[np.ndarray, " draw"]:
    """A metric of examples drawn with replacement, `TIMES` times; in parts, so that memory stays small."""
    generator, many = np.random.default_rng(SEED), len(values[0])
    part = max(1, 2_000_000 // many)
    found = []
    for start in range(0, TIMES, part):
        places = generator.integers(0, many, (min(part, TIMES - start), many))
        found.append(metric(*(each[places] for each in values)))
    return np.concatenate(found)


def middle(draws: Float[np.ndarray, " draw"]) -> tuple[float, float]:
    """The ends between which 95 % of the draws lie; draws for which a metric is not defined are left out."""
    known = draws[~np.isnan(draws)]
    if not known.size:
        return float("nan"), float("nan")
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)


def _ratio(above: Any, below: Any, empty: float) -> Float[np.ndarray, "*draws"]:
    """A quotient that is `empty` where there is nothing to divide by."""
    above, below = np.asarray(above, float), np.asarray(below, float)
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), empty)
