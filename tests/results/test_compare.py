import numpy as np
import pytest
import xarray as xr
from scipy import stats

from headscope.core.errors import DataWarning, InputError, UnknownName
from headscope.core.provenance import read_provenance, stamp
from headscope.results.compare import compare
from headscope.results.store import open_result, save
from tests.figures.data import (
    ablation,
    clustered,
    cues,
    dataset,
    evaluated,
    importances,
    measured,
    probed,
    pruning,
)
from tests.oracles import compare as oracle

PARTS = ("entropy", "entropy_low", "entropy_high", "entropy_p")


def two_results(**options):
    return measured(seed=1, **options), measured(seed=2, **options)


def with_gaps(data, seed):
    """Remove some values, as for a type that a text does not contain."""
    present = np.random.default_rng(seed).random(data["entropy_rows"].shape) > 0.2
    rows = data["entropy_rows"].where(present)
    return data.assign(
        entropy_rows=rows,
        entropy=rows.mean("example"),
        entropy_sd=rows.std("example", ddof=1),
        entropy_n=rows.count("example"),
    )


@pytest.mark.parametrize("paired", [True, False])
def test_every_cell_equals_the_result_of_scipy(paired):
    a, b = (with_gaps(each, seed) for seed, each in enumerate(two_results(layers=3, heads=4, examples=12)))
    result = compare(a, b, variable="entropy", paired=paired)
    test = oracle.paired if paired else oracle.unpaired
    for lens in range(2):
        for layer in range(3):
            for head in range(4):
                cell = {"lens": lens, "site": 0, "layer": layer, "head": head}
                expected = test(*(each["entropy_rows"].isel(cell).values for each in (a, b)))
                assert [float(result[name].isel(cell)) for name in PARTS] == pytest.approx(expected, rel=1e-9)


def test_holm_is_its_definition_over_all_cells_of_a_variable():
    a, b = two_results()
    result = compare(a, b)
    for name in ("entropy", "token_types"):
        assert np.allclose(result[f"{name}_p_adjusted"].values.ravel(), oracle.holm(result[f"{name}_p"].values.ravel()))
    assert (result["entropy_significant"] == (result["entropy_p_adjusted"] < 0.05)).all()


def test_benjamini_hochberg_is_scipys_and_none_changes_nothing():
    p = compare(*two_results(), correction="none")["entropy_p"]
    other = compare(*two_results(), correction="benjamini_hochberg")["entropy_p_adjusted"]
    assert np.allclose(other.values.ravel(), stats.false_discovery_control(p.values.ravel()))
    assert (compare(*two_results(), correction="none")["entropy_p_adjusted"] == p).all()


def test_pairing_removes_variance_between_examples():
    a = measured(examples=30)
    shift = np.random.default_rng(0).normal(0, 5, 30)
    between = a["entropy_rows"] + xr.DataArray(shift, dims="example")
    a = a.assign(entropy_rows=between, entropy_sd=between.std("example", ddof=1))
    b = a.assign(entropy_rows=between + 0.1 + 0.01 * a["distance_rows"], entropy=a["entropy"] + 0.1)
    assert compare(a, b, variable="entropy")["entropy_significant"].all()
    assert not compare(a, b, variable="entropy", paired=False)["entropy_significant"].any()


def test_two_lenses_of_one_result_are_compared():
    data = measured()
    result = compare(data.sel(lens="raw"), data.sel(lens="effective"))
    assert list(result["lens"].values) == ["effective − raw"]
    expected = data["entropy"].sel(lens="effective") - data["entropy"].sel(lens="raw")
    assert np.allclose(result["entropy"].isel(lens=0), expected)
    assert read_provenance(result)["paired"] is True
    kept = compare(data.isel(lens=[0]), data.isel(lens=[1]))
    assert list(kept["lens"].values) == ["effective − raw"]
    dropped = compare(data.sel(lens="raw", drop=True), data.sel(lens="effective", drop=True))
    assert np.allclose(dropped["entropy"].isel(lens=0), expected)


def test_examples_are_matched_by_id_and_unmatched_ones_counted():
    a, b = two_results(rows=True)
    turned = b.isel(example=[6, 5, 4, 3, 2, 1, 0])
    assert compare(a, turned).equals(compare(a, b))
    with pytest.warns(DataWarning, match=r"Only what both .*: 5 examples \(7 in the first, 5 in the second\)\."):
        result = compare(a, b.isel(example=slice(2, None)))
    assert (result["entropy_n"] == 5).all()
    assert read_provenance(result)["compared"] == {"example": {"both": 5, "a": 7, "b": 5}}


def test_cells_of_only_one_result_are_left_out_with_a_warning():
    a, b = measured(layers=2), measured(layers=4)
    with pytest.warns(DataWarning, match=r"2 layers \(2 in the first, 4 in the second\)"):
        assert compare(a, b).sizes["layer"] == 2
    with pytest.warns(DataWarning, match=r"1 lens \(2 in the first, 1 in the second\)"):
        assert list(compare(a, measured(lenses=["raw"]))["lens"].values) == ["raw"]


def test_without_rows_it_is_welchs_test_with_a_warning():
    a, b = two_results(rows=False)
    with pytest.warns(
        DataWarning, match=r"different examples: neither holds .* 'entropy_rows'. Measure with rows=True"
    ):
        result = compare(a, b)
    assert result.equals(compare(a, b, paired=False))
    assert read_provenance(result)["paired"] is False
    assert "rows=True" in read_provenance(result)["unpaired_because"]
    assert "entropy_sd" not in result


def test_pairing_without_rows_or_of_different_data_raises():
    a, b = two_results(rows=False)
    with pytest.raises(InputError, match=r"paired=True compares .* but neither holds .* Measure with rows=True\."):
        compare(a, b, paired=True)
    with pytest.raises(InputError, match=r"but the second does not hold the values of single examples"):
        compare(measured(), b, paired=True)
    other = measured(stamp=("other", "tiny"))
    with pytest.raises(InputError, match=r"but they were measured on different data, texts and other\."):
        compare(measured(), other, paired=True)
    with pytest.warns(DataWarning, match="different data"):
        assert not read_provenance(compare(measured(), other))["paired"]


def test_different_models_on_the_same_data_are_paired_and_both_are_stamped():
    facts = read_provenance(compare(measured(), measured(stamp=("texts", "large"), seed=3)))
    assert facts["paired"] is True
    assert (facts["a"]["model"], facts["b"]["model"]) == ("tiny", "large")
    assert facts["correction"] == "holm"
    assert "version" in facts


@pytest.mark.parametrize("paired", [True, False])
def test_cells_without_a_value_are_nan_with_their_count(paired):
    a, b = (with_gaps(each, 0) for each in two_results())
    gone = {name: b[name].where(b["head"] != 1) for name in ("entropy_rows", "entropy", "entropy_sd")}
    b = b.assign(**gone, entropy_n=b["entropy_n"].where(b["head"] != 1, 0))
    result = compare(a, b, variable="entropy", paired=paired).sel(head=1)
    assert all(np.isnan(result[name]).all() for name in (*PARTS, "entropy_p_adjusted"))
    assert (result["entropy_n"] == 0).all()
    assert (result["entropy_significant"] == 0).all()


def test_a_single_pair_has_a_difference_but_no_interval():
    result = compare(*(each.isel(example=[0]) for each in two_results()), variable="entropy")
    assert np.isfinite(result["entropy"]).all()
    assert np.isnan(result["entropy_p"]).all()
    assert (result["entropy_n"] == 1).all()


@pytest.mark.parametrize("paired", [True, False])
def test_p_is_1_without_differences_and_0_for_equal_differences(paired):
    a = measured().assign(entropy_rows=lambda each: 0 * each["entropy_rows"])
    a = a.assign(entropy=0 * a["entropy"], entropy_sd=0 * a["entropy_sd"])
    same = compare(a, a, variable="entropy", paired=paired)
    assert (same["entropy_p"] == 1).all()
    assert not same["entropy_significant"].any()
    b = a.assign(entropy_rows=a["entropy_rows"] + 1, entropy=a["entropy"] + 1)
    moved = compare(a, b, variable="entropy", paired=paired)
    assert (moved["entropy_p"] == 0).all()
    assert (moved["entropy_low"] == 1).all()


def test_a_comparison_is_saved_and_opened(tmp_path):
    result = compare(*two_results())
    assert result["entropy_significant"].dtype == np.int8
    back = open_result(save(result, tmp_path / "a.nc"))
    assert back.equals(result)
    assert back.attrs == result.attrs


def test_units_are_preserved():
    a, b = two_results()
    b["entropy"].attrs["units"] = "bits"
    assert compare(a, b)["entropy"].attrs == {"units": "bits"}
    assert a["entropy"].attrs == {"units": "nats"}


def test_results_that_cannot_be_compared_raise():
    a, b = two_results()
    with pytest.raises(InputError, match="one holds 'entropy', the other 'distance', and nothing is in both. Measure"):
        compare(a[["entropy", "entropy_n", "entropy_sd"]], b[["distance", "distance_n", "distance_sd"]])
    with pytest.raises(UnknownName, match=r"No variable of both results is called 'entropi'. Did you mean 'entropy'"):
        compare(a, b, variable="entropi")
    with pytest.raises(
        InputError, match="no lens in common: one has raw and effective, the other norm. Choose one of each"
    ):
        compare(a, measured(lenses=["norm"]))
    with pytest.raises(InputError, match=r"no layer in common: one has 0 and 1, the other 7 and 8"):
        compare(a, b.assign_coords(layer=[7, 8]))
    with pytest.raises(InputError, match=r"no example in common"):
        compare(a, b.assign_coords(example=[f"x{each}" for each in range(7)]))


def test_statistics_of_only_one_result_are_left_out_by_name():
    a, b = two_results()
    fewer = b[[name for name in b.data_vars if not str(name).startswith(("token_types", "distance"))]]
    for first, second, which in ((a, fewer, "first"), (fewer, a, "second")):
        with pytest.warns(
            DataWarning, match=f"is compared. Left out: 'distance' and 'token_types', only in the {which}"
        ):
            result = compare(first, second)
        assert "entropy" in result
        assert not {"distance", "token_types"} & set(result.data_vars)
        assert read_provenance(result)["left_out"] == {which: ["distance", "token_types"]}
    np.testing.assert_allclose(result["entropy"], -compare(a, b)["entropy"])


def test_a_variable_that_was_asked_for_leaves_out_nothing():
    a, b = two_results()
    fewer = b[["entropy", "entropy_n", "entropy_sd", "entropy_rows"]]
    assert "left_out" not in read_provenance(compare(a, fewer, variable="entropy"))


def test_one_label_of_an_axis_is_not_compared_with_all_of_them():
    a, b = two_results()
    with pytest.raises(
        InputError,
        match="'token_types' is along lens, site, layer, head and type in the first result and lens, ",
    ):
        compare(a, b.sel(type="noun"))


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        (ablation("layer", "head"), "holds 'change', 'ablated'"),
        (probed(), "holds 'accuracy'"),
        (cues(), "comes from hs.cues"),
        (pruning(), "holds 'score', 'change'"),
        (importances(), "holds 'importance'"),
        (evaluated(), "holds"),
        (dataset(), "holds 'weights'"),
        (clustered(), "comes from headscope cluster"),
        (compare(*two_results()), "comes from headscope compare"),
        (compare(*two_results(), paired=False), "comes from headscope compare"),
        (stamp(ablation("layer", "head"), command="hs.ablate"), "comes from hs.ablate"),
        (stamp(xr.Dataset({"score": 0.5, "score_n": 9}), command="hs.score"), "comes from hs.score"),
    ],
)
def test_results_of_other_kinds_are_refused_with_what_can_be_compared(other, kind):
    words = "compares statistics that hs.measure has averaged over examples, but the {} result {}"
    for pair, which in (((other, other), "first"), ((measured(), other), "second")):
        with pytest.raises(InputError, match=words.format(which, kind)):
            compare(*pair)
