"""Accuracies with intervals and tests over documents."""

import numpy as np
import pytest

from headscope.results.accuracies import select_adjusted_p, tabulate_accuracies

NAMES = {"tasks": ["real"], "predictors": ["head", "offset"], "groups": {"relation": ["all", "nsubj", "rare"]}}


def tabulate(hits, counts):
    return tabulate_accuracies(np.array(hits)[None], np.array(counts), **NAMES).isel(task=0)


def test_accuracies_gains_and_counts_are_those_of_all_documents():
    hits = [[[3, 2, 0], [4, 1, 0]], [[1, 1, 0], [2, 0, 0]]]  # predictor document relation
    result = tabulate(hits, [[4, 2, 0], [6, 2, 0]])
    np.testing.assert_allclose(result["accuracy"].sel(relation="all"), [0.7, 0.3])
    np.testing.assert_allclose(result["accuracy"].sel(relation="nsubj"), [0.75, 0.25])
    assert result["gain"].sel(relation="nsubj").item() == 0.5
    assert result["accuracy_n"].values.tolist() == [[10, 4, 0], [10, 4, 0]]
    assert int(result["documents"]) == 2


def test_without_a_question_everything_is_nan():
    result = tabulate(np.zeros((2, 5, 3), int), np.tile([3, 1, 0], (5, 1))).sel(relation="rare")
    for name in (
        "accuracy",
        "accuracy_low",
        "accuracy_high",
        "gain",
        "gain_low",
        "gain_high",
        "gain_p",
        "gain_p_adjusted",
    ):
        assert np.isnan(result[name]).all(), name


def test_intervals_hold_the_accuracy_and_are_wider_where_documents_differ():
    counts = np.full((40, 3), 10)
    same = np.full((40, 3), 5)
    different = np.where(np.arange(40)[:, None] % 2, 9, 1) * np.ones((1, 3), int)
    result = tabulate([different, same], counts).sel(relation="all")
    width = result["accuracy_high"] - result["accuracy_low"]
    assert width.sel(predictor="offset").item() == 0
    assert 0.2 < width.sel(predictor="head").item() < 0.3  # 2 · 1.96 · 0.4 / √40 = 0.25
    assert result["gain_p"].item() > 0.5


def test_p_values_are_corrected_for_the_groups_behind_the_first():
    counts, better = np.full((5, 3), 10), np.full((5, 3), 8)
    result = tabulate([better, np.full((5, 3), 4)], counts)
    p, corrected = result["gain_p"].values, result["gain_p_adjusted"].values
    assert p == pytest.approx(2 / 2**5, abs=0.01)  # all documents swapped, or none
    np.testing.assert_allclose(corrected, [p[0], 2 * p[0], 2 * p[0]])


def test_corrected_p_values_of_older_files_are_found():
    new = tabulate(np.zeros((2, 5, 3), int), np.tile([3, 1, 2], (5, 1)))
    old = new.drop_vars("gain_p").rename(gain_p_adjusted="gain_p")
    np.testing.assert_array_equal(select_adjusted_p(old, "gain"), select_adjusted_p(new, "gain"))
