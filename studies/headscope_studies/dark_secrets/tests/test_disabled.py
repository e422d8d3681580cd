"""Scores with heads disabled: the best of many, the mean over heads, and counts over seeds."""

import numpy as np
import pytest
import xarray as xr

from headscope.core.provenance import stamp
from headscope.training.metrics import DRAWS, SEED
from headscope.uncertainty.bootstrap import resample_counts
from headscope.uncertainty.corrections import simultaneous_factor
from headscope_studies.dark_secrets.disabled import (
    average_changes,
    count_significant,
    find_best,
    name_best,
    summarise_changes,
)


def ablated(change, margin=0.02, examples=50):
    """Return the result of hs.ablate for heads, with these changes."""
    change, dims = np.array(change, float), ("layer", "head")
    random = np.random.default_rng(0)
    label, whole = random.integers(0, 2, examples), random.integers(0, 2, examples)
    variables = {
        "change": (dims, change),
        "change_low": (dims, change - margin),
        "change_high": (dims, change + 2 * margin),
        "change_p": (dims, np.where(np.abs(change) > 0.05, 0.001, 0.5)),
        "change_p_adjusted": (dims, np.where(np.abs(change) > 0.05, 0.01, 1.0)),
        "label": ("example", label),
        "prediction_whole": ("example", whole),
        "prediction": ((*dims, "example"), random.integers(0, 2, (*change.shape, examples))),
    }
    coords = {"layer": range(change.shape[0]), "head": range(change.shape[1])}
    return stamp(xr.Dataset(variables, coords), main="accuracy")


def test_the_best_head_has_the_interval_of_the_best_of_all():
    data = summarise_changes(ablated([[0.0, 0.03], [-0.1, 0.02]], margin=0.1), "head")
    factor = simultaneous_factor(4, 50)
    assert float(data["best_head_change"]) == pytest.approx(0.03)
    assert float(data["best_head_change_low"]) == pytest.approx(0.03 - factor * 0.1)
    assert float(data["best_head_change_high"]) == pytest.approx(0.03 + factor * 0.2)
    assert name_best(data, "head") == "L0H1"


def test_no_changed_prediction_is_no_proof_that_none_ever_changes():
    data = ablated(np.zeros((1, 2)), margin=0.0)
    best = summarise_changes(data, "head")
    margin = simultaneous_factor(2, 50) * 1.959964 * np.sqrt(2) / 52  # by Bonett & Price, with one more of each kind
    assert [float(best[f"best_head_change{end}"]) for end in ("", "_low", "_high")] == pytest.approx(
        [0, -margin, margin]
    )
    exact = find_best(best, "head", 50, "pearson")  # which any change of an output changes
    assert float(exact["best_head_change_low"]) == 0


def test_the_largest_lower_end_need_not_be_that_of_the_largest_value():
    data = ablated([[0.03, 0.02]], margin=0.2)
    data["change_low"][0, 1] = 0.02 - 0.06
    low = 0.02 - simultaneous_factor(2, 50) * 0.06
    assert float(summarise_changes(data, "head")["best_head_change_low"]) == pytest.approx(low)


def test_the_mean_over_heads_equals_a_literal_bootstrap():
    data = ablated(np.zeros((2, 3)))
    result = average_changes(data)
    label, whole = data["label"].values, data["prediction_whole"].values
    right = [
        (data["prediction"].values[layer, head] == label).astype(float) - (whole == label)
        for layer in range(2)
        for head in range(3)
    ]
    assert float(result["mean_head_change"]) == pytest.approx(np.mean(right))
    times = resample_counts(np.ones(50), draws=DRAWS, seed=SEED)
    drawn = [np.mean([(each * row).sum() / 50 for each in right]) for row in times]
    low, high = np.percentile(drawn, (2.5, 97.5))
    ends = float(result["mean_head_change_low"]), float(result["mean_head_change_high"])
    assert ends == pytest.approx((low, high), abs=0.02)  # the draws may be others
    assert ends[0] < float(result["mean_head_change"]) < ends[1]


def test_a_change_counts_as_significant_if_it_is_so_with_every_seed():
    data = summarise_changes(ablated([[-0.1, 0.2], [-0.2, 0.0]]), "head")
    assert count_significant(data) == (2, 1)
    other = data.copy(deep=True)
    other["head_change_p_adjusted"][0, 0] = 0.5
    assert count_significant(xr.concat([data, other], "seed")) == (1, 1)
