"""Metrics of predictions, with their 95 % confidence intervals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from headscope.uncertainty.bootstrap import bootstrap_metric, bootstrap_sums, percentile_interval, resample_counts
from headscope.uncertainty.correlation import pearson, pearson_from_sums, pearson_moments
from headscope.uncertainty.intervals import wilson_interval
from headscope.uncertainty.paired import FromSums

DRAWS, SEED = 1000, 0
"""Bootstrap draws of an interval, and their random seed."""

Counts = Int[np.ndarray, "*draws label prediction"]


@dataclass(frozen=True)
class Metric:
    """The value of a metric, and how to compute its interval."""

    value: float
    interval: Callable[[], tuple[float, float]]
    method: str  # of the interval
    statistics: Float[np.ndarray, "example statistic"] | None = None  # whose sums decide the value
    from_sums: FromSums | None = None  # from these sums to the value; None for metrics that are not compared
    is_proportion: bool = False  # of examples that are right, the first statistic


def make_accuracy(labels: Any, predictions: Any) -> Metric:
    """Return the accuracy with Wilson's interval."""
    right = np.asarray(labels == predictions, float)
    ends = partial(wilson_interval, int(right.sum()), len(right))
    return Metric(right.mean(), ends, "Wilson", np.stack([right, np.ones_like(right)], -1), divide_sums, True)


def make_pearson(labels: Float[np.ndarray, " example"], predictions: Float[np.ndarray, " example"]) -> Metric:
    """Return the linear correlation with its bootstrap interval."""
    metric, center = make_example_metric(pearson, labels, predictions), labels.mean()  # for the precision of squares
    return replace(
        metric, statistics=pearson_moments(labels - center, predictions - center), from_sums=pearson_from_sums
    )


def make_sum_metric(from_sums: FromSums, statistics: Float[np.ndarray, "example statistic"]) -> Metric:
    """Return a metric that is a function of sums over examples, with its bootstrap interval."""
    draws = partial(bootstrap_sums, statistics, draws=DRAWS, seed=SEED)
    metric = _bootstrap(from_sums(statistics.sum(0)), lambda: from_sums(draws()))
    return replace(metric, statistics=statistics, from_sums=from_sums)


def make_count_metric(function: Callable[[Counts], Any], counts: Counts) -> Metric:
    """Return a metric of a confusion matrix with its bootstrap interval.

    Resampling pairs of label and prediction is a multinomial draw over the cells.
    """
    return _bootstrap(function(counts), lambda: function(resample_counts(counts, draws=DRAWS, seed=SEED)))


def make_example_metric(function: Callable[..., Any], *columns: Float[np.ndarray, " example"]) -> Metric:
    """Return a metric of columns of values, one per example, with its bootstrap interval over examples."""
    return _bootstrap(function(*columns), partial(bootstrap_metric, function, *columns, draws=DRAWS, seed=SEED))


def make_token_metrics(answers: Mapping[str, Any]) -> dict[str, Metric]:
    """Return the metrics of a language model, from the summed loss, tokens and right tokens of each example.

    `log_likelihood` is the mean of a token in nats, `perplexity` is exp of its negative, `accuracy` the share of right
    tokens. Examples are resampled, as the tokens of one are dependent.
    """
    loss, right, tokens = (np.asarray(answers[name], float) for name in ("loss", "right", "tokens"))
    return {
        "perplexity": make_sum_metric(perplexity, np.stack([loss, tokens], -1)),
        "log_likelihood": make_sum_metric(divide_sums, np.stack([-loss, tokens], -1)),
        "accuracy": make_sum_metric(divide_sums, np.stack([right, tokens], -1)),
    }


def _bootstrap(value: Any, resample: Callable[[], Any]) -> Metric:
    """Return a metric with its percentile interval; draws for which it is not defined are left out."""

    def interval() -> tuple[float, float]:
        low, high = percentile_interval(resample(), ignore_nan=True)
        return float(low), float(high)

    return Metric(float(value), interval, "bootstrap")


def count_confusions(labels: Any, predictions: Any, classes: int) -> Counts:
    """Return the confusion matrix.

    >>> count_confusions([0, 0, 1], [0, 1, 1], 2).tolist()
    [[1, 1], [0, 1]]
    """
    cells = np.asarray(labels, np.int64) * classes + np.asarray(predictions, np.int64)
    return np.bincount(cells, minlength=classes**2).reshape(classes, classes)


def f1(counts: Counts) -> Float[np.ndarray, "*draws"]:
    """Return the F1 score of class 1 of two classes; 0 where it was never predicted correctly."""
    right, missed, false = counts[..., 1, 1], counts[..., 1, 0], counts[..., 0, 1]
    return _divide(2 * right, 2 * right + missed + false, empty=0.0)


def matthews(counts: Counts) -> Float[np.ndarray, "*draws"]:
    """Return Matthews' correlation for any number of classes; 0 where labels or predictions have one class only."""
    counts = counts.astype(float)  # products of counts overflow integers
    total, right = counts.sum((-2, -1)), np.trace(counts, axis1=-2, axis2=-1)
    labels, predictions = counts.sum(-1), counts.sum(-2)
    covariance = right * total - (labels * predictions).sum(-1)
    variances = (total**2 - (labels**2).sum(-1)) * (total**2 - (predictions**2).sum(-1))
    return _divide(covariance, np.sqrt(variances), empty=0.0)


def divide_sums(sums: Float[np.ndarray, "*draws 2"]) -> Float[np.ndarray, "*draws"]:
    """Return a mean, such as the accuracy of tokens, from a sum and the number of terms."""
    return _divide(sums[..., 0], sums[..., 1], empty=np.nan)


def perplexity(sums: Float[np.ndarray, "*draws 2"]) -> Float[np.ndarray, "*draws"]:
    """Return exp of the mean loss per token, from the sum of losses and the number of tokens."""
    return np.asarray(np.exp(divide_sums(sums)))


def _divide(numerator: Any, denominator: Any, empty: float) -> Float[np.ndarray, "*draws"]:
    """Return the quotient, and `empty` where the denominator is 0."""
    numerator, denominator = np.asarray(numerator, float), np.asarray(denominator, float)
    return np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1.0), empty)
