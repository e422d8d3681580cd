"""Metrics are those of scikit-learn and scipy, and their intervals hold the truth."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sklearn

from headscope.training import metrics


def answers(classes, many=200, seed=0):
    chance = np.random.default_rng(seed)
    labels = chance.integers(0, classes, many)
    return labels, np.where(chance.random(many) < 0.7, labels, chance.integers(0, classes, many))


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_class_metrics_are_those_of_scikit_learn(classes):
    labels, predictions = answers(classes)
    counts = metrics.counted(labels, predictions, classes)
    assert metrics.accuracy(counts) == pytest.approx(sklearn.accuracy_score(labels, predictions))
    assert metrics.matthews(counts) == pytest.approx(sklearn.matthews_corrcoef(labels, predictions))
    if classes == 2:
        assert metrics.f1(counts) == pytest.approx(sklearn.f1_score(labels, predictions))


def test_a_model_that_gives_one_class_only_has_no_correlation():
    counts = metrics.counted([0, 1, 1], [0, 0, 0], 2)
    assert metrics.matthews(counts) == metrics.f1(counts) == 0
    assert metrics.accuracy(counts) == pytest.approx(1 / 3)


def test_correlations_are_those_of_scipy():
    chance = np.random.default_rng(1)
    one = chance.integers(0, 6, 80).astype(float)
    other = one + chance.normal(size=80)
    assert metrics.pearson(one, other) == pytest.approx(stats.pearsonr(one, other).statistic)
    assert metrics.spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)


def test_a_constant_side_has_no_correlation():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(metrics.pearson(np.array([0.0, 1.0, 2.0]), np.full(3, 0.1)))
        assert metrics.middle(np.full(3, np.nan)) == pytest.approx((np.nan, np.nan), nan_ok=True)


def test_wilson_is_scipy_s():
    for right, total in ((0, 5), (3, 7), (200, 200)):
        found = stats.binomtest(right, total).proportion_ci(0.95, "wilson")
        assert metrics.wilson(right, total) == pytest.approx((found.low, found.high))


def test_perplexity_weighs_tokens_and_not_texts():
    assert metrics.perplexity(np.array([np.log(2), 3 * np.log(4)]), np.array([1.0, 3.0])) == pytest.approx(2**1.75)


def test_counts_drawn_again_are_those_of_examples_drawn_again():
    labels, predictions = answers(2)
    again = metrics.matthews(metrics.counts_drawn_again(metrics.counted(labels, predictions, 2)))
    places = np.random.default_rng(3).integers(0, 200, (1000, 200))
    literal = np.array([sklearn.matthews_corrcoef(labels[row], predictions[row]) for row in places[:300]])
    assert again.mean() == pytest.approx(literal.mean(), abs=0.015)  # 0.055 / sqrt(300), four times
    assert again.std() == pytest.approx(literal.std(), rel=0.2)


def test_an_interval_holds_the_truth_95_times_in_100():
    held = 0
    for seed in range(100):
        chance = np.random.default_rng(seed)
        one = chance.normal(size=100)
        other = 0.6 * one + 0.8 * chance.normal(size=100)
        low, high = metrics.middle(metrics.drawn_again(metrics.pearson, one, other))
        held += low < 0.6 < high
    assert 88 <= held <= 99


def test_draws_do_not_depend_on_how_they_are_cut_into_parts(monkeypatch):
    values = np.random.default_rng(0).normal(size=(2, 3000))
    whole = metrics.drawn_again(metrics.pearson, *values)
    assert len(whole) == metrics.TIMES
    monkeypatch.setattr(metrics, "TIMES", 100)
    assert (metrics.drawn_again(metrics.pearson, *values) == whole[:100]).all()
