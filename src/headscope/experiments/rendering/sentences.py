"""Verdicts on claims in sentences and tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import xarray as xr

from headscope.core.prose import count_noun, join_words
from headscope.experiments.claims import (
    HOLDS,
    MOOT,
    NOT_REPRODUCED,
    REFUTED,
    UNDECIDED,
    Claim,
    JudgedClaim,
    answer_seeds,
    judge,
    name_refuted,
    name_without,
)
from headscope.experiments.seeds import combine_seeds
from headscope.experiments.summary import count_inputs, list_tasks


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
        listed = "; ".join(f"“{claim.rstrip('.')}” on {task}, {row[first]} → {row[version]}"
                           for (claim, task), row in changed.iterrows())  # fmt: skip
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
        {"claim": claim.text, "task": task.task, "verdict": task.verdict, "ours": task.figures,
         "paper": claim.claim.theirs.get(task.task, ""), "threshold": claim.claim.threshold.text}
        for claim in judged for task in claim.tasks
    ]  # fmt: skip
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


def list_exact(judged: Sequence[JudgedClaim]) -> str:
    """Return the tasks on which claims hold when they are measured exactly, in words."""
    parts = []
    for claim in judged:
        holds = [task.task for task in claim.tasks if task.exact]
        unclear = [task.task for task in claim.tasks if task.verdict == UNDECIDED]
        where = f"holds on {join_words(holds)}" if holds else "is shown nowhere" if unclear else "holds nowhere"
        also = f" (undecided on {join_words(unclear)})" if unclear else ""
        parts.append(f"“{claim.text.rstrip('.')}” {where}{also}")
    return f"Measured exactly, {'; '.join(parts)}."


def describe_verdicts(judged: JudgedClaim) -> str:
    """Return the tasks of each verdict with their numbers, in one sentence."""
    return _group_tasks("", [(task.verdict, f"{task.task} ({task.figures})") for task in judged.tasks])


def describe_change(subject: str, judged: JudgedClaim, words: Mapping[str, str]) -> str:
    """Return on which tasks a claim on a change holds, with the numbers, in the words of the study.

    `words` has a predicate for "yes" (the claim holds), "no", "unclear", "opposite" (the change goes the other way) and
    "moot" (there is nothing to judge), such as "loses weight".
    """
    claim, pairs = judged.claim, []
    opposite = replace(claim, direction="rises" if claim.direction == "falls" else "falls")
    for task in judged.tasks:
        if task.verdict == NOT_REPRODUCED:
            predicate = words["opposite" if answer_seeds(opposite, task.intervals) == "yes" else "no"]
        elif task.verdict == REFUTED:
            predicate = f"{words['yes']} only with {claim.contrast}"
        else:
            predicate = words[{UNDECIDED: "unclear", MOOT: "moot"}.get(task.verdict, "yes")]
            predicate += task.verdict.removeprefix(HOLDS) if task.exact else ""
        differs = task.verdict == REFUTED or (task.exact and task.verdict != HOLDS)
        figures = task.figures if differs else task.figures.partition(";")[0]
        pairs.append((predicate, task.task if task.verdict == MOOT else f"{task.task} ({figures})"))
    return _group_tasks(subject, pairs)


def describe_lengths(subject: str, claim: Claim, numbers: xr.Dataset, words: Mapping[str, str]) -> str:
    """Return at which lengths of the input a claim holds exactly, only as published, and may hold.

    Intervals are corrected for the number of lengths and tasks, not for verdicts on other claims.
    """
    groups: dict[str, dict[str, list[str]]] = {}
    ranges, counts = list_ranges(numbers), combine_seeds(numbers[["n"]])["n"]
    for length in ranges:
        for task in judge(claim, numbers.sel(length=length), tests=len(ranges) * numbers.sizes["task"]).tasks:
            if int(counts.sel(task=task.task, length=length)):
                kind = HOLDS if task.exact else task.verdict
                groups.setdefault(kind, {}).setdefault(task.task, []).append(length)
    published = f"only with {claim.contrast}"
    predicates = {HOLDS: f"{words['yes']} exactly", REFUTED: f"{words['yes']} {published}", UNDECIDED: words["unclear"]}
    if HOLDS in groups:
        predicates[REFUTED] = published
    parts = []
    for kind, predicate in predicates.items():
        lengths = groups.get(kind, {})
        where = join_words(
            f"{task} with {join_words(lengths[task])}" for task in list_tasks(numbers) if task in lengths
        )
        parts += [f"{predicate} on {where} tokens"] if lengths else []
    return _sentence(subject, "; ".join(parts) or words["never"])


def list_ranges(numbers: xr.Dataset) -> list[str]:
    """Return the ranges of lengths that do not overlap."""
    return [str(length) for length in numbers["length"].values if str(length)[0].isdigit()]


def describe_pairs(table: xr.DataArray, axis: str, labels: Sequence[str], form: str) -> str:
    """Return the values at two labels of an axis, task by task, such as 0.67 → 0.80 on RTE."""
    rows = table.sel({axis: list(labels)}).transpose("task", axis).values
    pairs = zip(table["task"].values, rows, strict=True)
    return join_words(f"{first:{form}} → {second:{form}} on {task}" for task, (first, second) in pairs)


def _group_tasks(subject: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Return a sentence with every predicate once, followed by all of its tasks."""
    groups: dict[str, list[str]] = {}
    for predicate, task in pairs:
        groups.setdefault(predicate, []).append(task)
    return _sentence(subject, "; ".join(f"{word} on {join_words(tasks)}" for word, tasks in groups.items()))


def _sentence(subject: str, predicate: str) -> str:
    text = f"{subject} {predicate}".strip()
    return f"{text[:1].upper()}{text[1:]}."


def describe_sizes(numbers: xr.Dataset, texts: Mapping[str, str]) -> str:
    """Return in how many inputs nothing can differ, and how much of attention is left in the others."""
    tuned = numbers.sel(role="tuned")
    share = tuned["effective_share"].sel(lens="effective", length="more than d")
    names, counts = list_tasks(numbers), {name: count_inputs(numbers, name) for name in ("at most d", "more than d")}
    short = join_words(f"{count_noun(counts['at most d'][task], 'input')} of {task}" for task in names)
    counted = {task: count_noun(count, "longer input") for task, count in counts["more than d"].items() if count}
    longer = [f"{float(share.sel(task=task)):.2f} on the {text} of {task}" for task, text in counted.items()]
    template = texts["sizes"] if longer else texts["sizes, none longer"]
    return template.format(size=int(numbers["value_size"].values[0]), short=short, longer=join_words(longer))
