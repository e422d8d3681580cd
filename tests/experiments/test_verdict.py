"""Claims are judged by intervals, and by nothing else."""

import pytest

from headscope.experiments.verdict import Interval, alike, both, falls, mostly, opposite, overall, rises, verdict


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
def test_a_fall_is_sure_and_notable(change, answer):
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
def test_alike_is_an_interval_within_what_is_notable(change, answer):
    assert alike(Interval(*change), 0.1) == answer


def test_draws_that_disagree_leave_it_open():
    assert [mostly(each) for each in (1.0, 0.98, 0.5, 0.01, float("nan"))] == ["yes", "yes", "unclear", "no", "unclear"]
    assert opposite("yes") == "no"
    assert both(["yes", "yes"]) == "yes"


def test_padding_is_named_where_only_the_published_code_shows_the_effect():
    assert verdict("yes", "yes") == verdict("yes", "unclear") == "holds"
    assert verdict("yes", "no") == "only without padding"
    assert verdict("no", "yes") == "only with padding"
    assert verdict("no", "unclear") == verdict("no", "no") == "does not hold"
    assert verdict("unclear", "yes") == "cannot be said"


def test_tasks_that_agree_have_one_verdict():
    assert overall(["holds", "holds", "does not apply"]) == "holds"
    assert overall(["holds", "only with padding"]) == "differs by task"
    assert overall(["does not apply"]) == "does not apply"
