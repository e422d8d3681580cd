import numpy as np
import pytest
import xarray as xr

from headscope.experiments.pattern_shares import (
    COUNTS,
    correct_patterns,
    count_patterns,
    split_counts,
    summarise_patterns,
)
from headscope.patterns import CLASSES
from headscope.patterns.shares import read_errors
from headscope.uncertainty.intervals import mean_interval

LENSES = {"raw": "raw", "effective": "effective", "paper": "effective:keys=paper"}


def make_rows(examples, layers=2, heads=3, seed=0, changed=1.0):
    """Return the classes of every map, one-hot, at random; of other lenses a part is not raw's."""
    random = np.random.default_rng(seed)
    shape = (examples, len(LENSES), layers, heads)
    classes = np.minimum(random.integers(0, 7, shape), 4)
    distance = (random.random(shape) < changed).astype(float)
    distance[:, 0] = 0
    classes = np.where(distance == 0, classes[:, :1], classes)
    dims = ("example", "lens", "layer", "head")
    rows = {"patterns_rows": ((*dims, "pattern"), np.eye(5)[classes]), "relative_change_rows": (dims, distance)}
    return xr.Dataset(rows, {"lens": list(LENSES), "pattern": list(CLASSES)})


def test_counted_changes_are_those_of_the_same_heads_input_by_input():
    rows = make_rows(9, changed=0.5)
    data, table = summarise_patterns(rows, "cnn", LENSES), rows["patterns_rows"].mean(("layer", "head"))
    np.testing.assert_allclose(data["counted"], table.mean("example"))
    change = (table - table.sel(lens="raw")).transpose("example", "lens", "pattern")
    for end, values in zip(("", "_low", "_high"), mean_interval(change.values), strict=True):
        np.testing.assert_allclose(data[f"counted_change{end}"], values, atol=1e-12)


def test_maps_that_are_the_same_do_not_change():
    """The null: whatever the errors of the classifier on each lens are, the change is exactly 0."""
    data = summarise_patterns(make_rows(12, changed=0.0), "cnn", LENSES)
    for name in ("counted_change", "share_change"):
        for end in ("", "_low", "_high"):
            assert (data[f"{name}{end}"] == 0).all()
    assert (data["share"] == data["share"].sel(lens="raw")).all()


def test_a_map_that_equals_raws_has_its_class_whatever_the_classifier_says():
    rows = make_rows(12, changed=0.0)
    rows["patterns_rows"][{"lens": 1}] = make_rows(12, seed=5)["patterns_rows"].isel(lens=1)
    assert (summarise_patterns(rows, "cnn", LENSES)["counted_change"] == 0).all()


def test_counts_are_of_maps_that_equal_raws_and_of_others_with_the_covariance_of_means():
    rows = make_rows(9, changed=0.4)
    parts = split_counts(rows)
    counts, table = count_patterns(parts), rows["patterns_rows"].values
    changed = rows["relative_change_rows"].values > 0
    expected = [(table[e, 1, ..., 4] * changed[e, 1]).mean() for e in range(9)]
    assert float(counts["counted_part"].sel(lens="effective", pattern=CLASSES[4])[1]) == pytest.approx(
        np.mean(expected)
    )
    assert float(counts["counted_part"].sel(lens="raw")[1].sum()) == 0
    means = parts.values.reshape(9, -1)
    np.testing.assert_allclose(
        counts["counted_cov"].values.reshape(30, 30), np.cov(means, rowvar=False) / 9, atol=1e-12
    )


def test_shares_solve_for_the_counts_with_the_errors_of_raw_and_of_each_lens():
    rows = make_rows(40, changed=0.5)
    data, errors = summarise_patterns(rows, "cnn", LENSES), read_errors("cnn")
    rates = {name: errors.count(lens) + errors.prior() for name, lens in LENSES.items()}
    for name in LENSES:
        same, changed = data["counted_part"].sel(lens=name).values
        expected = np.linalg.solve((rates["raw"] / rates["raw"].sum(-1, keepdims=True)).T, same)
        expected = expected + np.linalg.solve((rates[name] / rates[name].sum(-1, keepdims=True)).T, changed)
        np.testing.assert_allclose(data["share"].sel(lens=name), expected, atol=0.01)
        assert (data["share_low"] <= data["share"]).all()
        assert (data["share_high"] >= data["share"]).all()
    np.testing.assert_allclose(data["share_change"], data["share"] - data["share"].sel(lens="raw"), atol=1e-12)


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


def test_without_distances_only_raw_maps_are_raws():
    rows = make_rows(6, changed=0.0).drop_vars("relative_change_rows")
    part = summarise_patterns(rows, "cnn", LENSES)["counted_part"]
    assert (part.isel(part=1).sel(lens="raw") == 0).all()
    assert (part.isel(part=0).sel(lens="effective") == 0).all()


def test_a_lens_without_a_spec_raises():
    with pytest.raises(KeyError, match="effective"):
        summarise_patterns(make_rows(3), "cnn", {"raw": "raw"})
