"""Claims judged together: several claims, tasks, seeds and models, corrected for the number of all their verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import xarray as xr

from headscope.experiments.claims import Claim, JudgedClaim, judge
from headscope.experiments.seeds import combine_seeds


def judge_all(claims: Sequence[Claim], numbers: xr.Dataset, tests: int | None = None) -> list[JudgedClaim]:
    """Judge claims on every task, corrected for all of these verdicts, or for a number of tests.

    Of several seeds the combined numbers are judged, so that a verdict needs each of them.
    """
    combined = combine_seeds(numbers)
    count = len(claims) * combined.sizes["task"] if tests is None else tests
    return [judge(claim, combined, count) for claim in claims]


def judge_together(groups: Mapping[str, tuple[Sequence[Claim], xr.Dataset]]) -> dict[str, list[JudgedClaim]]:
    """Judge the claims of every group, such as a model, on its numbers, corrected for the verdicts of all groups."""
    tests = sum(len(claims) * numbers.sizes["task"] for claims, numbers in groups.values())
    return {label: judge_all(claims, numbers, tests) for label, (claims, numbers) in groups.items()}


def replace_where(claims: Sequence[Claim], **where: str) -> list[Claim]:
    """Return the claims with other labels where they select by these dimensions."""
    return [
        replace(claim, where={dim: where.get(dim, label) for dim, label in claim.where.items()}) for claim in claims
    ]
