"""Claims are judged by intervals."""

from itertools import product

import pytest

from headscope.experiments.claims import (
    Claim,
    Interval,
    JudgedClaim,
    TaskVerdict,
    combine,
    decide,
    falls,
    mostly,
    negate,
    rises,
    within,
)


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


def test_draws_that_disagree_are_inconclusive():
    assert [mostly(each) for each in (1.0, 0.98, 0.5, 0.01, float("nan"))] == ["yes", "yes", "unclear", "no", "unclear"]
    assert negate("yes") == "no"
    assert combine(["yes", "yes"]) == "yes"


def test_a_verdict_names_the_contrast_where_only_one_measurement_shows_the_effect():
    verdicts = {pair: decide(*pair, "padding") for pair in product(("yes", "no", "unclear"), repeat=2)}
    assert verdicts["yes", "yes"] == verdicts["yes", "unclear"] == "holds"
    assert verdicts["yes", "no"] == "only without padding"
    assert verdicts["no", "yes"] == "only with padding"
    assert verdicts["no", "unclear"] == verdicts["no", "no"] == "does not hold"
    assert verdicts["unclear", "yes"] == "cannot be said"


@pytest.mark.parametrize(
    ("verdicts", "overall"),
    [
        (["holds", "holds", "does not apply"], "holds"),
        (["holds", "only with padding"], "differs by task"),
        (["does not apply"], "does not apply"),
    ],
)
def test_tasks_that_agree_have_one_verdict(verdicts, overall):
    tasks = tuple(TaskVerdict("task", verdict, "") for verdict in verdicts)
    assert JudgedClaim(Claim("It falls.", "x"), tasks).verdict == overall
