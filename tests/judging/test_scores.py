"""Scores of lenses, worked out by hand."""

import numpy as np
import pytest

from headscope.judging.scores import SampledRows, chance_rows, hidden_mass, rank_rows, top_share_rows
from headscope.judging.tables import average_layers, compare_lenses

NAN = np.nan


def test_ranks_are_compared_within_a_row_and_missing_keys_are_left_out():
    lens = np.array([[3.0, 2.0, 1.0, NAN], [1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0], [1.0, 2.0, NAN, NAN]])
    effect = np.array([[30.0, 20.0, 10.0, 99.0], [4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, NAN, NAN]])
    assert rank_rows(lens, effect, 3) == pytest.approx([1.0, -1.0, NAN, NAN], nan_ok=True)


def test_the_share_of_the_effect_is_that_of_the_largest_keys():
    effect = np.array([[1.0, 2.0, 3.0, 4.0]])
    assert top_share_rows(np.array([[9.0, 1.0, 2.0, 8.0]]), effect, 2, 2) == pytest.approx([0.5])
    assert top_share_rows(effect, effect, 2, 1) == pytest.approx([0.4])


def test_of_tied_keys_each_is_as_likely_to_be_among_the_largest():
    effect = np.array([[1.0, 2.0, 3.0, 4.0]])
    assert top_share_rows(np.ones((1, 4)), effect, 2, 2) == pytest.approx([0.5])
    assert top_share_rows(np.array([[5.0, 1.0, 1.0, 0.0]]), effect, 2, 2) == pytest.approx([(1 + 2.5) / 10])


def test_chance_is_the_mean_over_all_orders():
    effect = np.array([[1.0, 2.0, 3.0, 4.0, NAN], [0.0, 0.0, 0.0, 0.0, 0.0]])
    assert chance_rows(effect, 2, 2) == pytest.approx([0.5, NAN], nan_ok=True)


def test_the_mass_without_an_effect_counts_each_key_as_often_as_its_stratum():
    rows = SampledRows(
        example=np.array([0, 0]),
        layer=np.array([0, 0]),
        stratum=np.array([[1.0, 3.0], [1.0, 1.0]]),
        effects=np.zeros((1, 2, 2)),
        lenses=np.zeros((1, 2, 2)),
        examples=2,
        layers=1,
    )
    lens, without = np.array([[0.4, -0.1], [0.2, 0.1]]), np.array([[False, True], [True, False]])
    share = hidden_mass(rows, lens, without, np.ones_like(without))
    assert share == pytest.approx(np.array([[(0.3 + 0.2) / (0.4 + 0.3 + 0.2 + 0.1)], [NAN]]), nan_ok=True)


def test_layers_without_a_value_are_left_out_of_the_mean():
    assert average_layers(np.array([[1.0, NAN, 3.0], [NAN, NAN, NAN]])) == pytest.approx([2.0, NAN], nan_ok=True)


def test_lenses_that_agree_on_every_example_differ_by_exactly_0_with_p_1():
    values = np.random.default_rng(0).random((9, 1))
    table = np.concatenate([values, values, values + 1], axis=1)
    found = compare_lenses("x", table, ("lens",))
    assert found["x_difference"][1][0, 1] == found["x_difference_low"][1][0, 1] == 0.0
    assert found["x_difference_p"][1][0, 1] == found["x_difference_p_adjusted"][1][0, 1] == 1.0
    assert found["x_difference"][1][2] == pytest.approx([1.0, 1.0, 0.0])
    assert found["x_difference_p"][1][0, 2] == pytest.approx(2 / 2**9, abs=2e-3)
    assert found["x_difference_p_adjusted"][1][2, 1] == pytest.approx(3 * found["x_difference_p"][1][2, 1])
    assert np.isnan(found["x_difference_p"][1].diagonal()).all()
