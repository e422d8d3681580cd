from itertools import combinations, permutations

import numpy as np
import pytest

from headscope.uncertainty.group_distances import compare_groups


def distances(seed=0, count=7):
    points = np.random.default_rng(seed).normal(size=(count, 3))
    return np.linalg.norm(points[:, None] - points, axis=-1)


def literal(table, groups):
    pairs = {"within": [], "between": []}
    for a, b in combinations(range(len(table)), 2):
        pairs["within" if groups[a] == groups[b] else "between"].append(table[a, b])
    return {name: sum(values) / len(values) for name, values in pairs.items()}


def test_means_and_p_are_those_of_all_permutations():
    table, groups = distances(), [2, 2, 5, 5, 5, 9, 9]
    result, observed = compare_groups(table, groups, permutations=20_000), literal(table, groups)
    assert result.within == pytest.approx(observed["within"])
    assert result.between == pytest.approx(observed["between"])
    least = observed["between"] - observed["within"] - 1e-12
    every = [literal(table, order) for order in set(permutations(groups))]
    exact = np.mean([means["between"] - means["within"] >= least for means in every])
    assert result.p == pytest.approx(exact, abs=0.02)  # 20,000 draws: a standard error of at most 0.0036


def test_groups_that_are_apart_have_the_smallest_possible_p():
    points = np.repeat([0.0, 10.0, 20.0], 8) + np.arange(24) / 24
    result = compare_groups(np.abs(points[:, None] - points), np.repeat([0, 1, 2], 8), permutations=99)
    assert result.p == 1 / 100
    assert result.within < result.between


def test_equal_distances_give_a_p_of_1():
    assert compare_groups(1 - np.eye(6), [0, 0, 1, 1, 2, 2], permutations=99).p == 1.0


def test_chance_gives_every_p_equally_often():
    values = [compare_groups(distances(seed, 9), np.arange(9) % 3, permutations=199).p for seed in range(200)]
    assert np.mean(np.array(values) <= 0.1) == pytest.approx(0.1, abs=0.06)  # 200 tests: a standard error of 0.021


@pytest.mark.parametrize("groups", [[0, 1, 2, 3], [4, 4, 4, 4]])
def test_without_pairs_of_both_kinds_there_is_no_test(groups):
    result = compare_groups(distances(count=4), groups)
    assert np.isnan(result.p)
    assert np.isnan(result.within) == (len(set(groups)) == 4)
    assert np.isnan(result.between) == (len(set(groups)) == 1)
