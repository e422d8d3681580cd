"""Paired intervals and tests equal literal loops, scipy's tests and answers worked out by hand."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest

from headscope.core.errors import DataWarning
from headscope.uncertainty.bootstrap import CELLS
from headscope.uncertainty.corrections import LEVEL, correct_p_values
from headscope.uncertainty.correlation import pearson, pearson_from_sums, pearson_moments
from headscope.uncertainty.paired import bootstrap_change, count_permutations, mcnemar_test, permutation_test


def mean(sums):
    return sums[..., 0] / sums[..., 1]


def with_ones(values):
    return np.stack([values, np.ones_like(values)], -1)


def test_mcnemar_is_a_binomial_test_of_the_examples_that_differ():
    random = np.random.default_rng(0)
    before, after = random.random(60) < 0.7, random.random((60, 2, 3)) < 0.6
    p = mcnemar_test(before, after)
    for cell in product(range(2), range(3)):
        lost, gained = (before & ~after[:, *cell]).sum(), (~before & after[:, *cell]).sum()
        assert p[cell] == pytest.approx(binomtest(int(lost), int(lost + gained)).pvalue, rel=1e-12)


def test_mcnemar_of_equal_answers_is_1():
    before = np.array([1, 0, 1])
    assert mcnemar_test(before, np.stack([before, 1 - before], -1)).tolist() == [1.0, 1.0]


def test_a_permutation_test_approaches_all_swaps():
    before, after = np.array([0.2, 0.9, 0.4, 0.5, 0.1, 0.8]), np.array([0.9, 1.0, 0.3, 0.9, 0.7, 0.9])
    swaps = np.array(list(product([False, True], repeat=6)))
    changes = np.where(swaps, before - after, after - before).mean(-1)
    exact = np.mean(np.abs(changes) >= np.abs((after - before).mean()) - 1e-12)
    found = permutation_test(with_ones(before), with_ones(after)[:, None], mean, permutations=20_000)
    assert found == pytest.approx([exact], abs=0.01)  # four standard errors of 20,000 swaps


def test_a_permutation_test_equals_a_literal_loop(monkeypatch):
    monkeypatch.setattr("headscope.uncertainty.paired.CELLS", 120)  # several batches
    random = np.random.default_rng(3)
    x, before, after = random.normal(size=(3, 12))
    after = np.stack([before + 0.1 * after, after, before], -1)
    statistics = pearson_moments(x, before), pearson_moments(np.repeat(x[:, None], 3, 1), after)
    found = permutation_test(*statistics, pearson_from_sums, permutations=99, seed=5)
    draws = np.random.default_rng(5)
    swaps = np.concatenate([draws.integers(0, 2, (size, 12), dtype=np.int8) for size in _batches(99, 120 // 18)])
    for run in range(3):
        observed, count = abs(pearson(x, after[:, run]) - pearson(x, before)), 1
        for swap in swaps.astype(bool):
            first, second = np.where(swap, after[:, run], before), np.where(swap, before, after[:, run])
            count += abs(pearson(x, second) - pearson(x, first)) >= observed - 1e-12
        assert found[run] == count / 100
    assert found[2] == 1.0  # nothing changed


def _batches(total, size):
    return [min(size, total - start) for start in range(0, total, size)]


def test_an_undefined_change_has_no_p_value():
    x = np.arange(5.0)
    constant = pearson_moments(x, np.full(5, 0.1))
    assert np.isnan(permutation_test(pearson_moments(x, x), constant[:, None], pearson_from_sums, permutations=9))


def test_both_runs_share_the_draws_of_the_bootstrap():
    random = np.random.default_rng(4)
    before, after = random.random((2, 30))
    found = bootstrap_change(with_ones(before), with_ones(np.stack([after, before], -1)), mean, draws=50, seed=6)
    index = np.random.default_rng(6).integers(0, 30, (50, 30))
    assert CELLS > 50 * 30  # all draws are one batch
    assert found[:, 0] == pytest.approx((after[index] - before[index]).mean(-1), abs=1e-12)
    assert (found[:, 1] == 0).all()


def test_a_change_of_every_example_is_significant_among_600_tests():
    before = np.zeros(40)
    after = np.random.default_rng(7).normal(size=(40, 600))
    after[:, 0] = 1.0  # only the observed signs, and all reversed, are as extreme
    p = permutation_test(with_ones(before), with_ones(after), mean)
    assert p[0] < correct_p_values(p)[0] < 0.02
    assert correct_p_values(p)[1:].min() > 0.05


def test_p_values_above_the_level_need_no_more_permutations():
    random = np.random.default_rng(8)
    before, after = with_ones(random.normal(size=30)), with_ones(random.normal(size=(30, 4)))
    few = permutation_test(before, after, mean)
    many = permutation_test(before, after, mean, tests=1000)
    assert (few > LEVEL).all()
    assert many.tolist() == few.tolist()


@pytest.mark.parametrize(("tests", "permutations"), [(1, 9_999), (99, 9_999), (600, 59_999), (10**6, 1_000_000)])
def test_permutations_grow_with_the_number_of_tests_up_to_a_bound(tests, permutations):
    assert count_permutations(tests) == permutations


def test_more_tests_than_permutations_can_tell_are_a_warning():
    values = with_ones(np.arange(6.0))
    with pytest.warns(DataWarning, match=r"60,000 tests .* 1,000,000 permutations .* below 0.06, so that none can be"):
        permutation_test(values, values[:, None], mean, tests=60_000)
