import numpy as np
import pytest
import xarray as xr

from headscope.experiments.pattern_shares import (
    COUNTS,
    correct_patterns,
    count_patterns,
    summarise_patterns,
)
from headscope.patterns import CLASSES
from headscope.patterns.shares import read_errors

LENSES = {"raw": "raw", "paper": "effective:keys=paper"}


def make_rows(examples, layers=2, heads=3, seed=0):
    """Return the classes of every map, one-hot, at random."""
    random = np.random.default_rng(seed)
    shape = (examples, len(LENSES), layers, heads)
    classes = np.minimum(random.integers(0, 7, shape), 4)
    dims = ("example", "lens", "layer", "head", "pattern")
    return xr.Dataset({"patterns_rows": (dims, np.eye(5)[classes])}, {"lens": list(LENSES), "pattern": list(CLASSES)})


def test_counts_are_shares_of_each_head_and_the_covariance_of_means_over_inputs():
    rows = make_rows(9)
    counts, table = count_patterns(rows), rows["patterns_rows"].values
    assert counts["counted_head"].dims == ("layer", "head", "lens", "pattern")
    assert float(counts["counted_head"][1, 2, 0, 4]) == pytest.approx(sum(table[e, 0, 1, 2, 4] for e in range(9)) / 9)
    means = [[table[e, lens, :, :, c].mean() for lens in range(2) for c in range(5)] for e in range(9)]
    centred = np.array(means) - np.mean(means, axis=0)
    expected = sum(np.outer(row, row) for row in centred) / 8 / 9
    np.testing.assert_allclose(counts["counted_cov"].values.reshape(10, 10), expected, atol=1e-12)


def test_shares_solve_for_the_counts_with_the_errors_of_each_lens():
    data, errors = summarise_patterns(make_rows(40), "cnn", LENSES), read_errors("cnn")
    for name, lens in LENSES.items():
        table = errors.count(lens) + errors.prior()
        expected = np.linalg.solve((table / table.sum(-1, keepdims=True)).T, data["counted"].sel(lens=name).values)
        assert (expected > 0.02).all()  # inside the simplex the estimate solves q = Cᵀp
        np.testing.assert_allclose(data["share"].sel(lens=name), expected, atol=0.005)
    np.testing.assert_allclose(data["counted"], make_rows(40)["patterns_rows"].mean(("example", "layer", "head")))
    for name in ("counted", "share"):
        assert (data[f"{name}_low"] <= data[name]).all()
        assert (data[f"{name}_high"] >= data[name]).all()
        change = data[name] - data[name].sel(lens="raw")
        np.testing.assert_allclose(data[f"{name}_change"], change, atol=1e-12)


def test_counts_of_several_tasks_are_corrected_like_each_alone():
    alone = [summarise_patterns(make_rows(12, seed=seed), "cnn", LENSES) for seed in range(2)]
    joined = xr.concat([part[list(COUNTS)] for part in alone], "task").assign_coords(task=["a", "b"])
    found = correct_patterns(joined, "cnn", LENSES)
    assert found["share"].dims == ("task", "lens", "pattern")
    for task, part in zip("ab", alone, strict=True):
        for name in found.data_vars:
            np.testing.assert_allclose(found[name].sel(task=task), part[name])


def test_one_input_has_no_interval_and_none_has_no_share():
    one = summarise_patterns(make_rows(1), "cnn", LENSES)
    assert np.isfinite(one["share"]).all()
    assert np.isnan(one["share_low"]).all()
    empty = summarise_patterns(make_rows(0), "cnn", LENSES)
    assert np.isnan(empty["share"]).all()
    assert np.isnan(empty["counted"]).all()


def test_a_lens_without_a_spec_raises():
    with pytest.raises(KeyError, match="paper"):
        summarise_patterns(make_rows(3), "cnn", {"raw": "raw"})
