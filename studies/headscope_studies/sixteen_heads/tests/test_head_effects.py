"""Effects of heads: shares, correlations over heads, parts of the data, and the best head of a layer."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import pearsonr, spearmanr

from headscope.core.example import Example
from headscope.uncertainty.correlation import pearson
from headscope.uncertainty.intervals import wilson_interval
from headscope_studies.sixteen_heads.head_effects import (
    choose_best,
    correlate_heads,
    effects_on,
    judge_best,
    name_all_but,
    share_of,
    split_parts,
)


def test_a_share_has_wilsons_interval():
    assert share_of([True, False, False, True]) == (0.5, *wilson_interval(2, 4))


def test_heads_are_correlated_by_rank_or_value_and_missing_ones_are_left_out():
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, 3, 4))
    first[0, 0] = np.nan
    value, low, high = correlate_heads(first, second)
    assert value == pytest.approx(spearmanr(first.ravel()[1:], second.ravel()[1:]).statistic)
    assert low < value < high
    assert correlate_heads(first, second, pearson)[0] == pytest.approx(
        pearsonr(first.ravel()[1:], second.ravel()[1:]).statistic
    )
    assert correlate_heads(first, first)[0] == pytest.approx(1)
    assert np.isnan(correlate_heads(np.ones((1, 2)), np.ones((1, 2)))).all()


def ablation(predictions, whole):
    return xr.Dataset(
        {"prediction": (("layer", "head", "example"), predictions), "prediction_whole": ("example", whole)},
        {"layer": [0], "head": [0, 1]},
    )


def test_effects_on_a_part_are_those_of_its_examples():
    labels = [0, 1, 1, 0]
    examples = [Example(str(row), "text", label=label) for row, label in enumerate(labels)]
    found = ablation(np.array([[[0, 0, 1, 1], [0, 1, 1, 0]]]), np.array([0, 1, 0, 0]))
    rows = np.array([True, True, False, True])
    assert effects_on(found, examples, rows).values.tolist() == [[pytest.approx(1 / 3 - 1), 0.0]]
    assert effects_on(found, examples, ~rows).values.tolist() == [[1.0, 1.0]]


def test_effects_on_numbers_are_changes_of_pearsons_correlation():
    random = np.random.default_rng(1)
    labels, whole, predictions = random.normal(size=6), random.normal(size=6), random.normal(size=(1, 2, 6))
    examples = [Example(str(row), "text", label=float(label)) for row, label in enumerate(labels)]
    rows = np.arange(6) != 2
    expected = [pearsonr(table[rows], labels[rows]).statistic for table in predictions[0]]
    change = np.array(expected) - pearsonr(whole[rows], labels[rows]).statistic
    np.testing.assert_allclose(effects_on(ablation(predictions, whole), examples, rows)[0], change)


def test_the_best_head_is_chosen_on_one_part_and_judged_on_the_other():
    scores = [[0.5, 0.7], [np.nan, np.nan], [np.nan, 0.2]]  # a layer without heads
    chosen = choose_best(xr.Dataset({"ablated": (("layer", "head"), scores)}, {"layer": range(3), "head": [0, 1]}))
    assert chosen == {0: 1, 2: 1}
    assert name_all_but(chosen) == ["L0-L0H1", "L2-L2H1"]
    change = np.array([-0.1, -0.2])
    numbers = {"change": change, "change_low": change - 0.1, "change_high": change + 0.1, "change_p": [0.03, 0.04]}
    judged = xr.Dataset({name: ("heads", values) for name, values in numbers.items()}, {"heads": name_all_but(chosen)})
    best = judge_best(chosen, judged)
    assert best["layer"].values.tolist() == [0, 2]
    assert best["best_head"].values.tolist() == [1, 1]
    assert best["best_change"].values.tolist() == [-0.1, -0.2]
    assert best["best_change_low"].values.tolist() == pytest.approx([-0.2, -0.3])
    assert best["best_p"].values.tolist() == [0.03, 0.04]
    assert best["best_p_adjusted"].values.tolist() == [0.06, 0.06]  # Holm


def test_parts_are_the_two_largest_groups_and_two_halves():
    genres = ["news"] * 4 + ["forum"] * 3 + ["captions"] * 5 + [""]
    examples = [
        Example(str(row), "text", columns={"genre": genre} if genre else {}) for row, genre in enumerate(genres)
    ]
    pairs = split_parts(examples, "genre")
    assert {name: int(rows.sum()) for name, rows in pairs["groups"].items()} == {"captions": 5, "news": 4}
    assert [int(rows.sum()) for rows in pairs["halves"].values()] == [7, 6]
    assert "groups" not in split_parts(examples, "domain")
