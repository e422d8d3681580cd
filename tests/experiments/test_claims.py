"""Claims are judged by intervals."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import xarray as xr
from scipy.stats import t as student

from headscope.experiments.answers import Interval, above, all_yes, below, falls, rises, within
from headscope.experiments.claims import (
    Claim,
    JudgedClaim,
    TaskVerdict,
    Threshold,
    answer,
    decide,
    explain_undecided,
    format_interval,
    judge,
    list_verdict_names,
    scale_thresholds,
)
from headscope.experiments.rendering.sentences import (
    compare_verdicts,
    conjugate,
    count_verdicts,
    describe_factor,
    describe_tests,
    describe_versions,
)
from headscope.experiments.verdicts import judge_all, judge_together, replace_where
from headscope.uncertainty.corrections import simultaneous_factor

TENTH = Threshold("change", 0.1, "% of the raw value", "a tenth", "2026-11-16")
CLAIM = Claim("It falls.", "x", threshold=TENTH, exact=("effective",), published=("paper",), contrast="padding")


def numbers(exact=-0.2, paper=-0.2, *, half=0.01, raw=1.0, tasks=("RTE",), **labels):
    """A quantity of 1 that changes by so much exactly, and with the paper's code."""
    change = np.array([0.0, exact, paper])
    ends = {"": 0.0, "_low": -half, "_high": half}
    variables = {
        f"x{kind}{end}": ("lens", table + add)
        for kind, table in (("", raw + change), ("_change", change))
        for end, add in ends.items()
    }
    return xr.Dataset(variables, {"lens": ["raw", "effective", "paper"]}).expand_dims(task=list(tasks), **labels)


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ((-0.3, -0.4, -0.2), "yes"),
        ((-0.12, -0.3, 0.02), "unclear"),  # a notable fall that chance alone might give
        ((-0.05, -0.06, -0.04), "no"),  # a sure fall that is not notable
        ((-0.09, -0.12, -0.06), "unclear"),  # sure, and perhaps notable
        ((0.2, 0.1, 0.3), "no"),
        ((float("nan"), 0.0, 0.0), "unclear"),
        ((-0.3, float("nan"), float("nan")), "unclear"),
    ],
)
def test_a_fall_is_certain_and_reaches_the_threshold(change, answer):
    assert falls(Interval(*change), 0.1) == answer
    value, low, high = change
    assert rises(Interval(-value, -high, -low), 0.1) == answer


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ((0.0, -0.05, 0.05), "yes"),
        ((0.0, -0.2, 0.2), "unclear"),
        ((-0.3, -0.4, -0.2), "no"),
        ((0.05, 0.0, 0.2), "unclear"),
    ],
)
def test_the_same_is_an_interval_within_the_threshold(change, answer):
    assert within(Interval(*change), (-0.1, 0.1)) == answer


def test_a_sign_needs_the_whole_interval():
    sides = {(0.2, 0.1, 0.3): "yes", (0.2, -0.1, 0.3): "unclear", (-0.2, -0.3, -0.1): "no", (0.0, 0.0, 0.0): "unclear"}
    for ends, said in sides.items():
        number = Interval(*ends)
        assert above(number, 0.0) == said
        assert below(Interval(-number.value, -number.high, -number.low), 0.0) == said
    assert above(Interval(0.2), 0.0) == below(Interval(0.2), 0.0) == "unclear"
    assert all_yes(["yes", "yes"]) == "yes"


def test_a_verdict_tells_refuted_from_not_reproduced():
    verdicts = {pair: decide(*pair, "padding") for pair in product(("yes", "no", "unclear"), repeat=2)}
    assert verdicts == {
        ("yes", "yes"): "holds",
        ("yes", "unclear"): "holds",
        ("yes", "no"): "holds only without padding",
        ("no", "yes"): "refuted by exactness",
        ("no", "no"): "not reproduced",
        ("no", "unclear"): "undecided",
        ("unclear", "yes"): "undecided",
        ("unclear", "no"): "undecided",
        ("unclear", "unclear"): "undecided",
    }
    assert set(verdicts.values()) | {"does not apply"} == set(list_verdict_names("padding"))


def test_a_claim_without_a_published_variant_is_not_reproduced_where_it_is_not_true():
    plain = replace(CLAIM, published=())
    assert judge(plain, numbers(0.0)).verdict == "not reproduced"
    assert judge(plain, numbers(-0.2)).verdict == "holds"
    assert judge(CLAIM, numbers(0.0, -0.2)).verdict == "refuted by exactness"


def test_a_task_that_the_paper_excepts_has_no_verdict_whatever_is_measured():
    excepted = replace(CLAIM, but_on=("QNLI",))
    for exact in (-0.2, 0.0, 0.2):
        (task,) = judge(excepted, numbers(exact, tasks=["QNLI"])).tasks
        assert (task.verdict, task.figures, task.exact) == ("does not apply", "the paper excepts this task", False)
        assert not task.interval.known


def test_a_verdict_carries_the_interval_that_decides():
    (alone,) = judge(replace(CLAIM, relative=True), numbers(-0.4, -0.3, half=0.02, raw=2.0)).tasks
    half = 0.01 * np.sqrt(0.8 - 0.2 * (0.8 - 1))  # the raw value is a mean with an interval too
    ends = (-0.2, -0.2 - half, -0.2 + half)
    assert (alone.interval.value, alone.interval.low, alone.interval.high) == pytest.approx(ends)
    (among,) = judge(replace(CLAIM, relative=True), numbers(-0.4, -0.3, half=0.02, raw=2.0), tests=100).tasks
    assert among.interval.high == pytest.approx(-0.2 + half * simultaneous_factor(100))
    assert among.figures == "2.000 → 1.600, −20 % [−22, −18]; the paper's code −15 %"
    share = replace(CLAIM, percent=True)
    assert format_interval(share, Interval(-0.2, -0.25, -0.15)) == "−20.0 points [−25.0, −15.0]"
    assert format_interval(replace(share, direction="within"), Interval(0.2, 0.1, 0.3)) == "20.0 % [10.0, 30.0]"
    assert format_interval(CLAIM, Interval(0.2)) == "0.200 without an interval"
    assert format_interval(replace(CLAIM, relative=True), Interval(-0.004, -0.01, -0.002)) == "0 % [−1, 0]"
    signed = replace(share, direction="above", limits=(-1.0, 1.0))
    assert format_interval(signed, Interval(-0.2, -0.25, -0.15)) == "−20.0 points [−25.0, −15.0]"
    assert format_interval(replace(CLAIM, p_value=True), Interval(0.0001, 0.0001, 0.0001)) == "p = 0.0001"


def test_more_verdicts_need_more_evidence():
    weak = numbers(-0.2, -0.2, half=0.15)
    assert judge(CLAIM, weak).verdict == "holds"
    assert judge(CLAIM, weak, tests=100).verdict == "undecided"
    (first, second) = judge_all([CLAIM, CLAIM], numbers(tasks=["RTE", "MRPC"]))
    assert first.tests == second.tests == 4
    models = judge_together({"a": ([CLAIM, CLAIM], numbers()), "b": ([CLAIM], numbers(tasks=["RTE", "MRPC"]))})
    assert {label: judged[0].tests for label, judged in models.items()} == {"a": 4, "b": 4}
    assert "so that all 4 hold together" in describe_tests(models["a"])
    assert f"factor of {simultaneous_factor(4):.2f}" in describe_tests(models["a"])


def test_only_verdicts_that_rest_on_an_interval_are_counted():
    excepted, few = replace(CLAIM, but_on=("RTE",)), numbers(tasks=["MRPC"]).assign(n=("task", [19]))
    made = xr.concat([numbers(tasks=["RTE", "STS-B"]).assign(n=("task", [20, 50])), few], "task")
    judged = judge_all([CLAIM, excepted], made)
    assert {claim.tests for claim in judged} == {3}  # of six
    assert [task.verdict for task in judged[1].tasks] == ["does not apply", "holds", "undecided"]
    refused = judged[0].tasks[2]
    assert (refused.verdict, refused.figures, refused.intervals) == ("undecided", "n = 19, fewer than 20", ())
    assert scale_thresholds(judged[0], 4.0).tasks[2] == refused
    assert describe_factor(judged) == f"{simultaneous_factor(3, 50):.2f} to {simultaneous_factor(3, 20):.2f}"
    assert describe_tests(judge_all([excepted], numbers())) == "No claim could be judged."
    (alone,) = judge_all([CLAIM], few)
    assert (alone.verdict, alone.tests, describe_tests([alone])) == ("undecided", 0, "No claim could be judged.")


def test_fewer_inputs_widen_more():
    by_n = {n: judge(CLAIM, numbers(half=0.1).assign(n=("task", [n])), tests=100).tasks[0] for n in (20, 400)}
    for n, task in by_n.items():
        factor = student.ppf(1 - 0.025 / 100, n - 1) / student.ppf(0.975, n - 1)
        assert task.factor == pytest.approx(factor)
        assert task.interval.high == pytest.approx(-0.2 + 0.1 * factor)
    assert by_n[20].factor > 1.1 * by_n[400].factor


def test_documents_that_were_drawn_again_widen_whatever_the_number_of_words():
    data = numbers(half=0.1).assign(n=("task", [1900]), documents=("task", [16]))
    (task,) = judge(CLAIM, data, tests=260).tasks
    assert task.factor == pytest.approx(student.ppf(1 - 0.025 / 260, 15) / student.ppf(0.975, 15))
    assert task.factor > 1.2 * judge(CLAIM, data.drop_vars("documents"), tests=260).tasks[0].factor
    rare = judge(CLAIM, data.assign(n=("task", [63]), documents=("task", [142])), tests=260).tasks[0]
    assert rare.factor == pytest.approx(student.ppf(1 - 0.025 / 260, 62) / student.ppf(0.975, 62))  # a word in each


def test_a_raw_value_of_zero_has_no_relative_change():
    assert judge(replace(CLAIM, relative=True), numbers(raw=0.0)).verdict == "undecided"


def test_bounds_reach_as_far_as_the_threshold():
    claim = replace(CLAIM, direction="within", bounds=(0.3, 0.6))
    said = {0.2: "yes", 0.35: "yes", 0.7: "yes", 0.85: "no"}
    assert {value: answer(claim, Interval(value, value, value)) for value in said} == said
    assert answer(claim, Interval(0.75, 0.75, 0.75), factor=2.0) == "yes"
    assert answer(claim, Interval(0.65, 0.65, 0.65), factor=0.25) == "no"


def test_no_interval_of_a_share_leaves_the_unit_interval():
    claim = replace(CLAIM, direction="within", bounds=(0.3, 0.6), percent=True, published=())
    (low,), (high,) = (judge(claim, numbers(0.0, raw=raw, half=0.04), tests=100).tasks for raw in (0.05, 0.95))
    assert low.interval.low == 0.0
    assert high.interval.high == 1.0
    assert low.interval.high == pytest.approx(0.05 + 0.04 * simultaneous_factor(100))


def test_scaled_thresholds_judge_the_same_intervals_again():
    judged = judge(CLAIM, numbers(-0.2, -0.2))
    assert [scale_thresholds(judged, factor).verdict for factor in (0.25, 1.0, 4.0)] == [
        "holds",
        "holds",
        "not reproduced",
    ]
    again = scale_thresholds(judged, 1.0)
    assert again == judged


def test_verdicts_that_depend_on_the_version_are_listed():
    claim = replace(CLAIM, where={"several": "max"})
    parts = {"max": numbers(-0.2, several=["max"]), "sum": numbers(0.0, several=["sum"])}
    whole = xr.concat(parts.values(), "several")
    versions = {several: judge_all(replace_where([claim], several=several), whole) for several in parts}
    same = judge_all([CLAIM], numbers())
    frame = compare_verdicts(versions)
    assert frame.reset_index().values.tolist() == [["It falls.", "RTE", "holds", "refuted by exactness"]]
    assert describe_versions({several: [*judged, *same] for several, judged in versions.items()}) == (
        "With the sum instead of the max, 1 of 1 verdicts changes (“It falls” on RTE, holds → refuted by exactness)."
    )
    assert compare_verdicts({"max": versions["max"], "again": versions["max"]}).empty


def test_verdicts_are_counted_in_words():
    counted = [
        JudgedClaim(CLAIM, (TaskVerdict("RTE", verdict, ""),))
        for verdict in ("not reproduced", "holds", "undecided", "holds", "refuted by exactness", "not reproduced")
    ]
    assert count_verdicts(counted) == "2 hold, 1 is refuted by exactness, 2 are not reproduced, 1 is undecided"
    assert conjugate("holds only without padding", 2) == "hold only without padding"


@pytest.mark.parametrize(
    ("verdicts", "overall"),
    [
        (["holds", "holds", "does not apply"], "holds"),
        (["holds", "refuted by exactness"], "differs by task"),
        (["does not apply"], "does not apply"),
    ],
)
def test_tasks_that_agree_have_one_verdict(verdicts, overall):
    tasks = tuple(TaskVerdict("task", verdict, "") for verdict in verdicts)
    assert JudgedClaim(CLAIM, tasks).verdict == overall


@pytest.mark.parametrize(
    ("exact", "published", "why"),
    [
        ([Interval(-0.1, -0.2, 0.0)] * 2, [Interval(-0.3, -0.4, -0.2)] * 2, "exact unclear"),
        ([Interval(-0.3, -0.4, -0.2), Interval(0.0, -0.01, 0.01)], [Interval(-0.3, -0.4, -0.2)] * 2, "seeds differ"),
        ([Interval(-0.3, -0.4, -0.2), Interval(-0.1, -0.2, 0.0)], [Interval(-0.3, -0.4, -0.2)] * 2, "seeds differ"),
        ([Interval(0.0, -0.01, 0.01)] * 2, [Interval(-0.1, -0.2, 0.0)] * 2, "published unclear"),
        ([], [], "exact unclear"),  # too few inputs
    ],
)
def test_what_is_undecided_says_what_is_unclear(exact, published, why):
    task = TaskVerdict("RTE", "undecided", "", (tuple(exact),) * bool(exact), (tuple(published),) * bool(exact))
    assert explain_undecided(CLAIM, task) == why
    assert explain_undecided(CLAIM, replace(task, verdict="holds")) == ""
