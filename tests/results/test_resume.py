"""Facts of a stored run against those of the run that would resume it."""

from pathlib import Path

import pytest

from headscope.core.errors import InputError
from headscope.results.resume import Difference, check_resumable, find_difference, shorten

PATH, REMEDY = Path("run"), "Measure as before."


def test_equal_facts_can_be_resumed():
    check_resumable(PATH, {"seed": 0, "shard": [1, 2]}, {"shard": (1, 2), "seed": 0}, remedy=REMEDY)


def test_the_first_differing_fact_is_named_with_both_values():
    with pytest.raises(InputError, match=r"run cannot be resumed: its seed is 0, but this run's is 1\. Measure as"):
        check_resumable(PATH, {"seed": 0, "n": 10}, {"seed": 1, "n": 20}, remedy=REMEDY)


def test_a_missing_fact_differs():
    assert find_difference({"seed": 0}, {}) == Difference("seed", 0, None)
    assert find_difference({}, {"seed": 0}) == Difference("seed", None, 0)
    assert find_difference({"seed": None}, {}) is None


def test_ignored_facts_may_differ():
    check_resumable(PATH, {"device": "cpu"}, {"device": "cuda"}, ignore={"device"}, remedy=REMEDY)


def test_a_hash_is_named_without_its_value():
    with pytest.raises(InputError, match=r"cannot be resumed: the inputs changed since it was started\. Measure as"):
        check_resumable(PATH, {"inputs_hash": "53aa" * 4}, {"inputs_hash": "77bb" * 4}, remedy=REMEDY)


def test_a_fact_within_a_fact_is_named():
    stored, current = ({"config": {"size": 8, "text": {"act": act}}} for act in ("gelu", "relu"))
    with pytest.raises(InputError, match=r"its config\.text\.act is 'gelu', but this run's is 'relu'\. Measure"):
        check_resumable(PATH, stored, current, remedy=REMEDY)


def test_facts_within_a_fact_that_only_one_has_are_not_compared():
    check_resumable(PATH, {"config": {"size": 8}}, {"config": {"size": 8, "new": 1}}, remedy=REMEDY)


def test_long_values_are_cut():
    assert len(shorten("a" * 100)) == 61
