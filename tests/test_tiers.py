"""Quick tests are a sample of all, and no test of `make soak` is the only one that guards something."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.tiers import COLLECTED, GUARDS, QUICK_FOLDERS, QUICK_MODELS, folder_of, is_quick, spread

ROOT = Path(__file__).parents[1]


@pytest.fixture
def items(request):
    """All tests, of every tier."""
    items = request.config.stash[COLLECTED]
    if not set(QUICK_FOLDERS) <= {folder_of(item) for item in items}:
        pytest.skip("part of the tests were collected; all are by: pytest")
    return items


def group_cases(items):
    """Return the cases of each test function, those of `make test` and those of `make soak`."""
    cases = defaultdict(lambda: ([], []))
    for item in items:
        cases[item.nodeid.partition("[")[0]][item.get_closest_marker("soak") is not None].append(item)
    return cases


def list_values(items):
    """Return the values of each parameter in some cases of a test."""
    return {(name, repr(value)) for item in items for name, value in item.callspec.params.items()}


def test_quick_tests_are_of_each_of_their_folders_and_models(items):
    quick = [item for item in items if is_quick(item)]
    assert {folder_of(item) for item in quick} == set(QUICK_FOLDERS)
    for law in ("lenses", "statistics", "edits", "families"):
        cases = [item for item in quick if item.path.name == f"test_{law}.py"]
        assert set(QUICK_MODELS) <= {item.callspec.params.get("kind") for item in cases if hasattr(item, "callspec")}
    assert not [item for item in quick if item.get_closest_marker("soak")]


def test_make_quick_runs_the_folders_of_quick_tests():
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^QUICK_TESTS := (.*)$", makefile, re.MULTILINE)[1].split() == list(QUICK_FOLDERS)
    assert re.search(r"^quick:.*?-m quick \$\(QUICK_TESTS\)\n\n", makefile, re.DOTALL | re.MULTILINE)


def test_of_a_test_with_cases_in_soak_every_value_of_every_parameter_is_tested_before(items):
    split = {name: parts for name, parts in group_cases(items).items() if all(parts)}
    assert split
    missing = {name: list_values(soak) - list_values(plain) for name, (plain, soak) in split.items()}
    assert not {name: values for name, values in missing.items() if values}


def test_for_every_test_that_only_soak_runs_another_guards_the_same_before(items):
    cases = group_cases(items)
    assert {name for name, (plain, soak) in cases.items() if soak and not plain} == set(GUARDS)
    assert all(cases[guard][0] for guard in GUARDS.values())


def test_values_take_turns_and_the_other_combinations_are_left_to_soak():
    cases = spread(["a", "b", "c"], [1, 2])
    assert [case.values for case in cases if not case.marks] == [("a", 1), ("b", 2), ("c", 1)]
    assert len(cases) == 6


def test_combinations_that_do_not_fit_are_left_out_and_every_other_value_is_kept():
    cases = spread(["a", "b", "c", "d"], [1, 2, 3], where=lambda letter, number: letter == "a" or number < 3)
    assert [case.values for case in cases if not case.marks] == [("a", 1), ("a", 3), ("b", 2), ("c", 1), ("d", 1)]
    assert len(cases) == 9
