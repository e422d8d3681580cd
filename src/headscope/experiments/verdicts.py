"""Claims judged together: several claims, tasks, seeds and models, corrected for the number of all their verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import xarray as xr

from headscope.experiments.claims import Claim, JudgedClaim, judge_tasks, reason_not_judged, split_tasks
from headscope.experiments.summary import list_tasks


def judge_all(claims: Sequence[Claim], numbers: xr.Dataset, tests: int | None = None) -> list[JudgedClaim]:
    """Judge claims on every task, corrected for all of these verdicts, or for a number of tests.

    Numbers may have a dimension `seed`: each is judged by itself, and a verdict needs all of them to agree.
    """
    tasks = split_tasks(numbers)
    count = _count_tests(claims, [whole for _, whole in tasks]) if tests is None else tests
    return [judge_tasks(claim, tasks, count) for claim in claims]


def judge_together(groups: Mapping[str, tuple[Sequence[Claim], xr.Dataset]]) -> dict[str, list[JudgedClaim]]:
    """Judge the claims of every group, such as a model, on its numbers, corrected for the verdicts of all groups."""
    split = {label: (claims, split_tasks(numbers)) for label, (claims, numbers) in groups.items()}
    tests = sum(_count_tests(claims, [whole for _, whole in tasks]) for claims, tasks in split.values())
    return {label: [judge_tasks(claim, tasks, tests) for claim in claims] for label, (claims, tasks) in split.items()}


def count_tests(claims: Sequence[Claim], numbers: xr.Dataset) -> int:
    """Return how many verdicts rest on an interval: those of claims that apply, on tasks with enough inputs."""
    return _count_tests(claims, [numbers.sel(task=task) for task in list_tasks(numbers)])


def _count_tests(claims: Sequence[Claim], tasks: Sequence[xr.Dataset]) -> int:
    return sum(reason_not_judged(claim, task) is None for claim in claims for task in tasks)


def replace_where(claims: Sequence[Claim], **where: str) -> list[Claim]:
    """Return the claims with other labels where they select by these dimensions."""
    return [
        replace(claim, where={dim: where.get(dim, label) for dim, label in claim.where.items()}) for claim in claims
    ]
