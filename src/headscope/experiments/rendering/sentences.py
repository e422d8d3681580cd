"""Verdicts on claims in sentences and tables."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd
import xarray as xr

from headscope.core.prose import join_words
from headscope.experiments.claims import (
    HOLDS,
    MOOT,
    NOT_REPRODUCED,
    REFUTED,
    UNDECIDED,
    JudgedClaim,
    name_refuted,
    name_without,
)


def conjugate(verdict: str, count: int = 1) -> str:
    """Return a verdict as a predicate of `count` claims.

    >>> conjugate("refuted by exactness"), conjugate("holds", 4), conjugate("does not apply", 2)
    ('is refuted by exactness', 'hold', 'do not apply')
    """
    verb, space, rest = verdict.partition(" ")
    plural = {"holds": "hold", "does": "do", "differs": "differ"}
    if verb not in plural:
        return f"{'is' if count == 1 else 'are'} {verdict}"
    return verdict if count == 1 else f"{plural[verb]}{space}{rest}"


def verdict_table(judged: Sequence[JudgedClaim]) -> pd.DataFrame:
    """Return one row for each claim."""
    rows = [{"claim": claim.text, "verdict": claim.verdict, "in words": describe_verdicts(claim)} for claim in judged]
    return pd.DataFrame(rows).set_index("claim")


def verdicts_by_task(judged: Sequence[JudgedClaim]) -> pd.DataFrame:
    """Return the verdict on every claim for every task."""
    rows = [{"claim": claim.text} | {task.task: task.verdict for task in claim.tasks} for claim in judged]
    return pd.DataFrame(rows).set_index("claim").fillna("")


def compare_verdicts(judged: Mapping[str, Sequence[JudgedClaim]]) -> pd.DataFrame:
    """Return the verdicts that are not the same in all versions of the same claims; a column for each version."""
    rows = []
    for claims in zip(*judged.values(), strict=True):
        for tasks in zip(*(claim.tasks for claim in claims), strict=True):
            verdicts = dict(zip(judged, (task.verdict for task in tasks), strict=True))
            rows += (
                [{"claim": claims[0].text, "task": tasks[0].task, **verdicts}]
                if len(set(verdicts.values())) > 1
                else []
            )
    return pd.DataFrame(rows, columns=["claim", "task", *judged]).set_index(["claim", "task"])


def describe_versions(judged: Mapping[str, Sequence[JudgedClaim]]) -> str:
    """Return how many verdicts change from the first version of the claims to each of the others, and which.

    Claims that are the same in all versions are not counted.
    """
    first, *others = judged
    same = [all(claim.claim == claims[0].claim for claim in claims) for claims in zip(*judged.values(), strict=True)]
    total = sum(len(claim.tasks) for claim, equal in zip(judged[first], same, strict=True) if not equal)
    frame = compare_verdicts(judged)
    parts = []
    for version in others:
        changed = frame[frame[first] != frame[version]]
        listed = "; ".join(
            f"“{claim.rstrip('.')}” on {task}, {row[first]} → {row[version]}"
            for (claim, task), row in changed.iterrows()
        )
        count = f"{len(changed)} of {total} verdicts" + (" changes" if len(changed) == 1 else " change")
        parts.append(f"With the {version} instead of the {first}, {count}{f' ({listed})' if listed else ''}.")
    return " ".join(parts)


def describe_tests(judged: Sequence[JudgedClaim]) -> str:
    """Return how intervals are corrected for the number of verdicts."""
    tests = max(claim.tests for claim in judged)
    if not tests:
        return "No claim could be judged."
    return (
        f"Verdicts are judged by simultaneous intervals (Bonferroni): so that all {tests:,} hold "
        "together with 95 % confidence, each 95 % interval is widened about its value by a factor of "
        f"{describe_factor(judged)} (Student's t). "
        "Verdicts show these intervals; all other tables show plain 95 % intervals."
    )


def describe_factor(judged: Sequence[JudgedClaim]) -> str:
    """Return by how much intervals are widened, such as 1.86; the least and the most where inputs differ in number."""
    factors = [task.factor for claim in judged for task in claim.tasks if task.intervals]
    low, high = (f"{end(factors, default=1.0):.2f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def verdict_numbers(judged: Sequence[JudgedClaim]) -> pd.DataFrame:
    """Return the numbers behind every verdict beside the paper's own, and the threshold."""
    rows = [
        {
            "claim": claim.text,
            "task": task.task,
            "verdict": task.verdict,
            "ours": task.figures,
            "paper": claim.claim.theirs.get(task.task, ""),
            "threshold": claim.claim.threshold.text,
        }
        for claim in judged
        for task in claim.tasks
    ]
    return pd.DataFrame(rows).set_index(["claim", "task"])


def count_verdicts(judged: Sequence[JudgedClaim]) -> str:
    """Return how many claims have which verdict, in words, from those that hold to those that do not apply."""
    contrasts = dict.fromkeys(claim.claim.contrast for claim in judged)
    order = [
        HOLDS,
        REFUTED,
        *(name(contrast) for name in (name_refuted, name_without) for contrast in contrasts),
        NOT_REPRODUCED,
    ]
    counts = Counter(claim.verdict for claim in judged)
    kinds = [kind for kind in dict.fromkeys([*order, "differs by task", UNDECIDED, MOOT]) if kind in counts]
    return ", ".join(f"{counts[kind]} {conjugate(kind, counts[kind])}" for kind in kinds)


def describe_verdicts(judged: JudgedClaim) -> str:
    """Return the tasks of each verdict with their numbers, in one sentence."""
    return _group_tasks("", [(task.verdict, f"{task.task} ({task.figures})") for task in judged.tasks])


def list_ranges(numbers: xr.Dataset) -> list[str]:
    """Return the ranges of lengths that do not overlap."""
    return [str(length) for length in numbers["length"].values if str(length)[0].isdigit()]


def _group_tasks(subject: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Return a sentence with every predicate once, followed by all of its tasks."""
    groups: dict[str, list[str]] = {}
    for predicate, task in pairs:
        groups.setdefault(predicate, []).append(task)
    return _sentence(subject, "; ".join(f"{word} on {join_words(tasks)}" for word, tasks in groups.items()))


def _sentence(subject: str, predicate: str) -> str:
    text = f"{subject} {predicate}".strip()
    return f"{text[:1].upper()}{text[1:]}."
