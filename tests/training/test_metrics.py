"""Metrics equal those of scikit-learn, and their intervals cover the truth."""

import numpy as np
import pytest
from sklearn import metrics as sklearn

from headscope.training import metrics
from headscope.uncertainty.bootstrap import resample_counts
from headscope.uncertainty.correlation import pearson


def make_answers(classes, count=200, seed=0):
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, count)
    return labels, np.where(random.random(count) < 0.7, labels, random.integers(0, classes, count))


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_class_metrics_equal_those_of_scikit_learn(classes):
    labels, predictions = make_answers(classes)
    counts = metrics.count_confusions(labels, predictions, classes)
    assert metrics.make_accuracy(labels, predictions).value == sklearn.accuracy_score(labels, predictions)
    assert metrics.matthews(counts) == pytest.approx(sklearn.matthews_corrcoef(labels, predictions))
    if classes == 2:
        assert metrics.f1(counts) == pytest.approx(sklearn.f1_score(labels, predictions))


def test_constant_predictions_have_no_correlation():
    counts = metrics.count_confusions([0, 1, 1], [0, 0, 0], 2)
    assert metrics.matthews(counts) == metrics.f1(counts) == 0


def test_an_undefined_metric_has_no_interval():
    metric = metrics.make_example_metric(pearson, np.array([0.0, 1.0, 2.0]), np.full(3, 0.1))
    assert np.isnan(metric.value)
    assert metric.interval() == pytest.approx((np.nan, np.nan), nan_ok=True)


def test_perplexity_is_weighted_by_tokens():
    assert metrics.perplexity(np.array([np.log(2) + 3 * np.log(4), 4.0])) == pytest.approx(2**1.75)


def test_resampled_counts_equal_those_of_resampled_examples():
    labels, predictions = make_answers(2)
    counts = resample_counts(metrics.count_confusions(labels, predictions, 2), draws=metrics.DRAWS, seed=metrics.SEED)
    resampled = metrics.matthews(counts)
    indices = np.random.default_rng(3).integers(0, 200, (300, 200))
    literal = np.array([sklearn.matthews_corrcoef(labels[row], predictions[row]) for row in indices])
    assert resampled.mean() == pytest.approx(literal.mean(), abs=0.015)  # 0.055 / sqrt(300), four times
    assert resampled.std() == pytest.approx(literal.std(), rel=0.2)


def test_an_interval_covers_the_truth_95_times_in_100():
    covered = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        x = random.normal(size=100)
        y = 0.6 * x + 0.8 * random.normal(size=100)
        low, high = metrics.make_example_metric(pearson, x, y).interval()
        covered += low < 0.6 < high
    assert 88 <= covered <= 99


def test_metrics_of_sums_equal_those_of_examples():
    labels, predictions = make_answers(2)
    x, y = np.random.default_rng(1).normal(size=(2, 50))
    answers = {"loss": np.abs(x), "tokens": np.arange(1, 51), "right": np.arange(50) // 2}
    made = [metrics.make_accuracy(labels, predictions), metrics.make_pearson(x + 3, y + x)]
    for metric in [*made, *metrics.make_token_metrics(answers).values()]:
        assert metric.from_sums(metric.statistics.sum(0)) == pytest.approx(metric.value, rel=1e-12)


def test_the_interval_of_a_metric_of_sums_is_that_of_resampled_examples():
    loss, tokens = np.random.default_rng(2).random((2, 40)) + 1
    found = metrics.make_sum_metric(metrics.perplexity, np.stack([loss, tokens], -1)).interval()
    literal = metrics.make_example_metric(lambda loss, tokens: np.exp(loss.sum(-1) / tokens.sum(-1)), loss, tokens)
    assert found == pytest.approx(literal.interval(), rel=1e-12)
