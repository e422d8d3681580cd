"""Verdicts on claims in sentences and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import xarray as xr

from headscope.core.prose import join_words
from headscope.experiments.claims import HOLDS, MOOT, UNCLEAR, Claim, JudgedClaim, answer, format_figures, judge
from headscope.experiments.summary import count_inputs, list_tasks


def conjugate(verdict: str, count: int = 1) -> str:
    """Return a verdict as a predicate of `count` claims.

    >>> conjugate("only with padding"), conjugate("holds", 4), conjugate("does not apply", 2)
    ('holds only with padding', 'hold', 'do not apply')
    """
    text = f"holds {verdict}" if verdict.startswith("only") else verdict
    verb, space, rest = text.partition(" ")
    plural = {"holds": "hold", "does": "do", "differs": "differ"}.get(verb, verb)
    return text if count == 1 else f"{plural}{space}{rest}"


def verdict_table(judged: Sequence[JudgedClaim]) -> pd.DataFrame:
    """Return one row for each claim."""
    rows = [{"claim": claim.text, "verdict": claim.verdict, "in words": describe_verdicts(claim)} for claim in judged]
    return pd.DataFrame(rows).set_index("claim")


def verdicts_by_task(judged: Sequence[JudgedClaim]) -> pd.DataFrame:
    """Return the verdict on every claim for every task."""
    rows = [{"claim": claim.text} | {task.task: task.verdict for task in claim.tasks} for claim in judged]
    return pd.DataFrame(rows).set_index("claim").fillna("")


def verdict_numbers(judged: Sequence[JudgedClaim]) -> pd.DataFrame:
    """Return the numbers behind every verdict beside the paper's own, and the threshold with its reason."""
    rows = [
        {"claim": claim.text, "task": task.task, "verdict": task.verdict, "ours": task.figures,
         "paper": claim.claim.theirs.get(task.task, ""), "threshold": claim.claim.reason}
        for claim in judged for task in claim.tasks
    ]  # fmt: skip
    return pd.DataFrame(rows).set_index(["claim", "task"])


def count_verdicts(judged: Sequence[JudgedClaim]) -> str:
    """Return how many claims have which verdict, in words."""
    verdicts = [claim.verdict for claim in judged]
    counts = {verdict: verdicts.count(verdict) for verdict in verdicts}
    return ", ".join(f"{count} {conjugate(verdict, count)}" for verdict, count in counts.items())


def list_exact(judged: Sequence[JudgedClaim]) -> str:
    """Return the tasks on which claims hold when they are measured exactly, in words."""
    parts = []
    for claim in judged:
        holds = [task.task for task in claim.tasks if task.exact]
        unclear = [task.task for task in claim.tasks if task.verdict == UNCLEAR]
        where = f"holds on {join_words(holds)}" if holds else "is shown nowhere" if unclear else "holds nowhere"
        also = f" (it cannot be said on {join_words(unclear)})" if unclear else ""
        parts.append(f"“{claim.text.rstrip('.')}” {where}{also}")
    return f"Measured exactly, {'; '.join(parts)}."


def describe_verdicts(judged: JudgedClaim) -> str:
    """Return the tasks of each verdict with their numbers, in one sentence."""
    return _group_tasks("", [(conjugate(task.verdict), f"{task.task} ({task.figures})") for task in judged.tasks])


def describe_change(subject: str, claim: Claim, numbers: xr.Dataset, words: Mapping[str, str]) -> str:
    """Return on which tasks a claim on a change holds, with the numbers, in the words of the study.

    `words` has a predicate for "yes" (the claim holds), "no", "unclear", "opposite" (the change goes the other way) and
    "moot" (there is nothing to judge), such as "loses weight".
    """
    pairs = []
    opposite = replace(claim, direction="rises" if claim.direction == "falls" else "falls")
    for task in judge(claim, numbers).tasks:
        part, verdict = numbers.sel(task=task.task), task.verdict
        if verdict == "does not hold":
            predicate = words["opposite" if answer(opposite, part, claim.exact[0]) == "yes" else "no"]
        else:
            kind = {UNCLEAR: "unclear", MOOT: "moot"}.get(verdict, "yes")
            predicate = words[kind] + (f" {verdict}" if verdict.startswith("only") else "")
        figures = format_figures(claim, part)
        figures = figures if verdict.startswith("only") else figures.partition(";")[0]
        pairs.append((predicate, task.task if verdict == MOOT else f"{task.task} ({figures})"))
    return _group_tasks(subject, pairs)


def describe_lengths(subject: str, claim: Claim, numbers: xr.Dataset, words: Mapping[str, str]) -> str:
    """Return at which lengths of the input a claim holds exactly, only as published, and may hold."""
    groups: dict[str, dict[str, list[str]]] = {}
    for length in list_ranges(numbers):
        for task in judge(claim, numbers.sel(length=length)).tasks:
            if int(numbers["n"].sel(task=task.task, length=length)):
                kind = HOLDS if task.exact else task.verdict
                groups.setdefault(kind, {}).setdefault(task.task, []).append(length)
    published = f"only with {claim.contrast}"
    predicates = {HOLDS: f"{words['yes']} exactly", published: f"{words['yes']} {published}", UNCLEAR: words["unclear"]}
    if HOLDS in groups:
        predicates[published] = published
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
    short = join_words(f"{counts['at most d'][task]:,} inputs of {task}" for task in names)
    longer = [f"{float(share.sel(task=task)):.2f} on the {counts['more than d'][task]:,} longer inputs of {task}"
              for task in names if counts["more than d"][task]]  # fmt: skip
    template = texts["sizes"] if longer else texts["sizes, none longer"]
    return template.format(size=int(numbers["value_size"].values[0]), short=short, longer=join_words(longer))
