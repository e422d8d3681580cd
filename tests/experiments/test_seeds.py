"""Several seeds become one number, and a statement about it is true of each."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import xarray as xr

from headscope.core.errors import InputError
from headscope.experiments.answers import Interval
from headscope.experiments.claims import Claim, Threshold, answer_seeds, read_intervals, scale_thresholds
from headscope.experiments.seeds import combine_seeds, describe_seeds, join_seeds, mark_collapsed
from headscope.experiments.verdicts import judge_all
from headscope.uncertainty.corrections import simultaneous_factor

CLAIM = Claim("It falls.", "x", threshold=Threshold("change", 0.1, "", "a tenth", "2026-11-16"), exact=("effective",))


def numbers(*changes, half=0.02):
    """A quantity of 1 that changes by so much with each seed."""
    table = np.array([[[0.0, change] for change in changes]])
    dims, ends = ("task", "seed", "lens"), {"": 0.0, "_low": -half, "_high": half}
    variables = {
        f"x{kind}{end}": (dims, table + add + whole)
        for kind, whole in (("", 1.0), ("_change", 0.0))
        for end, add in ends.items()
    }
    variables |= {"n": (("task", "seed"), [[277] * len(changes)]), "kind": (("task", "seed"), [["NLI"] * len(changes)])}
    variables |= {"tuned_hash": (("task", "seed"), [[f"a{seed}" for seed in range(len(changes))]])}
    variables |= {"plain": (("task", "seed"), [np.arange(len(changes), dtype=float)]), "size": ("task", [32])}
    coords = {"task": ["RTE"], "seed": range(len(changes)), "lens": ["raw", "effective"]}
    return xr.Dataset(variables, coords, {"headscope": "facts"})


def test_intervals_hold_those_of_every_seed():
    made = numbers(-0.3, -0.2, -0.1)
    one = combine_seeds(made)
    for name, lens in product(("x", "x_change"), ("raw", "effective")):  # number by number
        values, lows, highs = (
            [float(made[f"{name}{end}"].sel(task="RTE", seed=seed, lens=lens)) for seed in range(3)]
            for end in ("", "_low", "_high")
        )
        got = [float(one[f"{name}{end}"].sel(task="RTE", lens=lens)) for end in ("", "_low", "_high")]
        assert got == pytest.approx([sum(values) / 3, min(lows), max(highs)])
    assert one["plain"].values.tolist() == [1.0]
    assert one["n"].values.tolist() == [277]
    assert one["kind"].values.tolist() == ["NLI"]
    assert one["tuned_hash"].values.tolist() == ["a0 a1 a2"]
    assert one["size"].values.tolist() == [32]
    assert "seed" not in one.dims
    assert "seed" not in one.coords
    assert one.attrs == made.attrs


def test_numbers_without_seeds_are_left_as_they_are():
    plain = numbers(-0.3).isel(seed=0, drop=True)
    assert combine_seeds(plain) is plain
    xr.testing.assert_allclose(combine_seeds(numbers(-0.3)).drop_vars("tuned_hash"), plain.drop_vars("tuned_hash"))


def test_a_seed_without_a_number_leaves_none():
    made = numbers(-0.3, -0.2)
    made["x"].loc[{"seed": 1}] = np.nan
    made["x_low"].loc[{"seed": 1}] = np.nan
    assert np.isnan(combine_seeds(made)["x"]).all()
    assert np.isnan(combine_seeds(made)["x_low"]).all()


@pytest.mark.parametrize(("name", "values"), [("n", [[277, 276]]), ("kind", [["NLI", "QA"]])])
def test_counts_and_texts_that_differ_are_an_error(name, values):
    made = numbers(-0.3, -0.2).assign({name: (("task", "seed"), values)})
    listed = ", ".join(map(str, sorted(values[0])))
    with pytest.raises(InputError, match=f"Cannot combine seeds: '{name}' is not the same for all of them: {listed}. "):
        combine_seeds(made)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ((-0.3, -0.2), "holds"),
        ((-0.6, 0.01), "undecided"),  # although the mean falls by more than the threshold
        ((-0.6, -0.05), "undecided"),  # although no interval holds 0, too
        ((-0.6, -0.09), "undecided"),  # one seed is unclear
        ((-0.05, 0.2, 0.0), "not reproduced"),
    ],
)
def test_a_verdict_needs_the_same_answer_from_every_seed(changes, verdict):
    made = numbers(*changes)
    (judged,) = judge_all([CLAIM], made)
    assert (judged.verdict, judged.tests) == (verdict, 1)
    alone = {judge_all([CLAIM], made.isel(seed=seed))[0].verdict for seed in range(len(changes))}
    assert judged.verdict == (alone.pop() if len(alone) == 1 else "undecided")


def test_seeds_outside_of_bounds_on_different_sides_agree():
    (judged,) = judge_all([replace(CLAIM, direction="same")], numbers(-0.3, 0.3))
    assert judged.verdict == "not reproduced"  # although the mean does not change


def test_a_seed_says_yes_where_all_lenses_do():
    yes, no, unclear = Interval(-0.3, -0.4, -0.2), Interval(0.0, -0.01, 0.01), Interval(-0.3, -0.7, 0.1)
    said = {
        ((yes, yes), (yes, yes)): "yes",
        ((yes, no), (no, yes)): "no",  # with each seed another lens says no
        ((no, no), (yes, yes)): "no",
        ((yes, no), (yes, yes)): "unclear",  # the seeds differ
        ((yes, unclear), (yes, yes)): "unclear",
        ((no, unclear), (yes, unclear)): "unclear",
    }
    assert {lenses: answer_seeds(CLAIM, lenses) for lenses in said} == said


def test_scaled_thresholds_are_those_of_every_seed():
    (judged,) = judge_all([CLAIM], numbers(-0.3, -0.15))
    verdicts = [scale_thresholds(judged, factor).verdict for factor in (0.5, 1.0, 2.0, 4.0)]
    assert verdicts == ["holds", "holds", "undecided", "not reproduced"]
    assert scale_thresholds(judged, 2.0).tasks[0].interval == judged.tasks[0].interval


def test_a_relative_change_is_taken_seed_by_seed():
    made = numbers(-0.5, -0.1)
    for end in ("", "_low", "_high"):  # the raw value of the second seed is a tenth, and so is its change
        made[f"x{end}"] = made[f"x{end}"] * xr.DataArray([1.0, 0.1], dims="seed")
        made[f"x_change{end}"] = made[f"x_change{end}"] * xr.DataArray([1.0, 0.1], dims="seed")
    claim = replace(CLAIM, relative=True)
    whole = read_intervals(claim, made.sel(task="RTE"), "effective")
    alone = [read_intervals(claim, made.sel(task="RTE", seed=seed), "effective") for seed in range(2)]
    assert [interval.value for interval in whole] == pytest.approx([-0.5, -0.1])
    assert alone == [(interval,) for interval in whole]
    (task,) = judge_all([claim], made)[0].tasks
    assert (task.interval.value, task.interval.low, task.interval.high) == pytest.approx(
        (-0.3, min(interval.low for interval in whole), max(interval.high for interval in whole))
    )


def test_only_the_interval_of_each_seed_is_widened():
    made = numbers(-0.6, -0.2, half=0.02).assign(n=(("task", "seed"), [[277, 277]]))
    (task,) = judge_all([CLAIM], made, tests=100)[0].tasks
    reach = 0.02 * simultaneous_factor(100, 277)
    assert (task.interval.low, task.interval.high) == pytest.approx((-0.6 - reach, -0.2 + reach))
    assert task.verdict == "holds"  # as with each seed alone; widened after their union the interval would reach 0
    assert -0.4 + simultaneous_factor(100, 277) * 0.22 > -0.02


def test_what_is_the_largest_of_all_inputs_is_that_of_all_seeds():
    values = (("task", "seed"), [[0.1, 0.4]])
    made = numbers(-0.3, -0.2).assign(output_change=values, changed=values, changed_margin=values, score=values)
    one = combine_seeds(made)
    assert [one[name].item() for name in ("output_change", "changed", "changed_margin")] == [0.4] * 3
    assert one["score"].item() == pytest.approx(0.25)


def test_runs_are_joined_along_task_and_seed():
    made = {
        (task, seed): numbers(-0.1 * seed).assign_coords(task=[task], seed=[seed])
        for task in ("B", "A")
        for seed in (1, 2)
    }
    whole = join_seeds(list(made.values()))
    assert whole["x"].dims[:2] == ("task", "seed")
    assert (whole["task"].values.tolist(), whole["seed"].values.tolist()) == (["B", "A"], [1, 2])
    for (task, seed), run in made.items():
        xr.testing.assert_equal(whole["x"].sel(task=[task], seed=[seed]), run["x"])
    plain = [run.isel(seed=0, drop=True) for run in made.values() if int(run["seed"][0]) == 1]
    assert join_seeds(plain)["x"].dims[:2] == ("task", "lens")


def test_runs_that_do_not_belong_together_are_not_joined():
    runs = [
        numbers(-0.1).assign_coords(seed=[seed]).assign(data_hash=(("task", "seed"), [[f"h{seed}"]])) for seed in (0, 1)
    ]
    with pytest.raises(InputError, match="The seeds of RTE study different inputs"):
        join_seeds(runs)
    with pytest.raises(InputError, match="Tasks have different seeds: RTE 0; SST-2 1"):
        join_seeds([runs[0], runs[1].assign_coords(task=["SST-2"])])


def test_reports_say_how_many_seeds_there_are():
    assert "the mean of 3 seeds" in describe_seeds(numbers(-0.3, -0.2, -0.1))
    assert describe_seeds(numbers(-0.3)) == ""
    assert describe_seeds(numbers(-0.3).isel(seed=0)) == ""


def test_what_one_task_lacks_is_nan_there():
    whole, short = numbers(-0.3, -0.2), numbers(-0.1, -0.2).assign_coords(task=["SST-2"])
    trained = xr.DataArray(np.ones((1, 2, 2)), dims=("task", "seed", "trained"), coords={"trained": [50, 100]})
    for order in (1, -1):
        runs = [whole.assign(early=trained), short][::order]
        joined = join_seeds([run.isel(seed=[seed]) for run in runs for seed in (0, 1)])
        assert joined["early"].sel(task="RTE").values.tolist() == [[1, 1], [1, 1]]
        assert joined["early"].sel(task="SST-2").isnull().all()
        assert joined["trained"].values.tolist() == [50, 100]
        assert joined["x"].notnull().all()


def test_a_widened_interval_of_a_correlation_ends_at_one():
    task = numbers(0.0, half=0.3).isel(task=0)
    claim = replace(CLAIM, direction="above", limits=(-1.0, 1.2))
    (interval,) = read_intervals(claim, task, "raw", factor=2.0)
    assert (interval.value, interval.low, interval.high) == pytest.approx((1.0, 0.4, 1.2))
    (free,) = read_intervals(replace(claim, limits=CLAIM.limits), task, "raw", factor=2.0)
    assert free.high == pytest.approx(1.6)


def test_seeds_that_did_not_learn_are_left_out_of_verdicts_and_means():
    made = numbers(-0.3, -0.2, 0.4).assign(score=(("task", "seed"), [[0.7, 0.6, 0.5]]), majority=0.5)
    marked = mark_collapsed(made)
    assert marked["collapsed"].values.tolist() == [[False, False, True]]
    ((verdict,),) = (claim.tasks for claim in judge_all([CLAIM], marked))
    assert (verdict.verdict, len(verdict.intervals[0])) == ("holds", 2)
    one, two = combine_seeds(marked), combine_seeds(numbers(-0.3, -0.2))
    for name in ("x_change", "x_change_low", "x_change_high"):
        assert one[name].values.tolist() == two[name].values.tolist()
    assert one["collapsed"].values.tolist() == [1]
    ((verdict,),) = (claim.tasks for claim in judge_all([CLAIM], made))
    assert verdict.verdict == "undecided"


def test_what_is_missing_in_a_seed_that_learned_is_missing():
    made = numbers(-0.3, float("nan"), 0.4).assign(score=(("task", "seed"), [[0.7, 0.6, 0.5]]), majority=0.5)
    assert combine_seeds(mark_collapsed(made))["x_change"].isnull().values[0, 1]


def test_a_task_that_no_seed_learned_keeps_all_of_them():
    made = numbers(-0.3, -0.2).assign(score=(("task", "seed"), [[0.5, 0.4]]), majority=0.5)
    assert not mark_collapsed(made)["collapsed"].any()
    assert "collapsed" not in mark_collapsed(numbers(-0.3, -0.2))  # scores of regression have no most common label
