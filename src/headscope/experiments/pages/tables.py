"""Tables and the grid of verdicts of pages on a study with several models."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Table
from headscope.core.prose import format_signed
from headscope.core.provenance import read_provenance
from headscope.experiments.claims import MOOT, JudgedClaim, format_interval
from headscope.experiments.pages.facts import StudyFacts, count_kinds
from headscope.experiments.rendering.report import THRESHOLDS, describe_origin, sample_inputs
from headscope.experiments.rendering.sentences import describe_tests
from headscope.experiments.summary import count_inputs, list_tasks
from headscope.experiments.thresholds import draw_thresholds, threshold_table
from headscope.plotting.verdict_grid import find_looks, verdict_grid
from headscope.reporting.frames import ENDS
from headscope.reporting.markdown import table_to_markdown


def draw_verdicts(facts: StudyFacts, width: float = 6.9, names: Sequence[str] | None = None) -> Figure:
    """Draw the verdict on every claim for every model and task; `names` are those of the models."""
    pairs = [(label, task) for label, data in facts.models.items() for task in list_tasks(data)]
    cells = [facts.cells(claim) for claim in facts.claims]
    shown = dict(zip(facts.models, names or facts.models, strict=True))
    columns = {
        (shown[label], task): [row[label, task].verdict if (label, task) in row else MOOT for row in cells]
        for label, task in pairs
    }
    texts = [claim.text.rstrip(".") for claim in facts.claims]
    return verdict_grid(pd.DataFrame(columns, index=texts), facts.kinds, width=width)


def draw_scaled(facts: StudyFacts) -> dict[str, Figure]:
    """Return the picture of verdicts against thresholds by its file name."""
    return {f"{facts.stem}scaled_thresholds.svg": draw_thresholds(facts.every)}


def verdict_values(facts: StudyFacts) -> dict[str, str]:
    """Return what the pages of tables of every study say of verdicts and thresholds."""
    scaled = f"![{THRESHOLDS['scaled_thresholds'].rstrip('.')}](pictures/{facts.stem}scaled_thresholds.svg)"
    return {
        "seeds": f", the widest of {facts.seed_counts}" if facts.seed_counts else "",
        "counts": to_grid(count_verdicts(facts)),
        "tests": describe_tests(facts.every),
        "letters": ", ".join(f"{letter} {kind}" for kind, letter in find_letters(facts).items()),
        "verdicts": by_model(facts, lambda label: verdict_intervals(facts, label)),
        "thresholds": f"{to_grid(threshold_table(facts.every))}\n\n{scaled}",
        "runs": "\n\n".join(describe_run(label, data) for label, data in facts.models.items()),
    }


def find_letters(facts: StudyFacts) -> dict[str, str]:
    """Return the letter of each kind of verdict."""
    return {kind: look[1] for kind, look in find_looks(facts.kinds).items()}


def count_verdicts(facts: StudyFacts) -> pd.DataFrame:
    """Return how many pairs of a model and a task have which verdict, claim by claim."""

    def count(text: str, claims: Sequence[JudgedClaim], pairs: int) -> dict[str, str]:
        counts = count_kinds(claims)
        counts[MOOT] += max(0, pairs - sum(counts.values()))  # models without a task that the claim is on
        return {"claim": text} | {kind: str(counts[kind] or "") for kind in facts.kinds}

    judged = [claim for claims in facts.judged.values() for claim in claims]
    texts = [claim.text for claim in facts.claims]
    rows = [count(text, [claim for claim in judged if claim.text == text], facts.pairs) for text in texts]
    others: dict[str, list[JudgedClaim]] = {}  # those on several models are counted together
    for claim in (claim for claims in facts.others.values() for claim in claims):
        others.setdefault(claim.text, []).append(claim)
    return pd.DataFrame([*rows, *(count(text, claims, 0) for text, claims in others.items())]).set_index("claim")


def verdict_intervals(facts: StudyFacts, label: str) -> pd.DataFrame:
    """Return the verdict and its interval, claim by claim and task by task."""
    letters, rows = find_letters(facts), {}
    for claim in facts.judged[label]:
        rows[claim.text] = {
            task.task: f"{letters[task.verdict]} {format_interval(claim.claim, task.interval)}"
            if task.verdict != MOOT
            else letters[MOOT]
            for task in claim.tasks
        }
    return pd.DataFrame.from_dict(rows, "index").rename_axis("claim")


def describe_run(label: str, numbers: xr.Dataset) -> str:
    """Return what was run on one model: its weights, the command, and the data of every task."""
    facts, reduced = read_provenance(numbers), sample_inputs({}, numbers).reduced
    counts = count_inputs(numbers)
    sources = " ".join(
        f"{task}: {describe_origin(numbers, task)}; "
        f"{_describe_training(int(numbers['train'].sel(task=task)))}{counts[task]:,} studied."
        for task in list_tasks(numbers)
    )
    note = f" **Reduced**: {reduced}." if reduced else ""
    return (
        f"**{label}** (weights {facts['weights_hash'][:12]}): {facts['command']}, on {facts['device']}. {sources}{note}"
    )


def _describe_training(count: int) -> str:
    return f"learned from {count:,}, " if count else ""  # unknown where the model was fine-tuned already


def format_intervals(frame: pd.DataFrame, form: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the table with each number and its interval as one text, such as 0.42 [0.39, 0.45].

    >>> frame = pd.DataFrame({"x": [0.4], "x_low": [0.35], "x_high": [0.45]})
    >>> format_intervals(frame, ".2f")["x"].tolist()
    ['0.40 [0.35, 0.45]']
    """
    titles = [title for title in frame.columns if not str(title).endswith(ENDS[1:])]
    formatted = titles if columns is None else [title for title in columns if title in frame]
    result = frame.drop(columns=[f"{title}{end}" for title in formatted for end in ENDS[1:]], errors="ignore").copy()
    for title in formatted:
        ends = [frame[f"{title}{end}"] for end in ENDS if f"{title}{end}" in frame]
        result[title] = [format_cell(form, *values) for values in zip(*ends, strict=True)]
    return result


def format_cell(form: str, value: Any, *ends: float) -> str:
    """Return a number with its interval where it has one; nothing for NaN."""
    if pd.isna(value):
        return ""
    interval = f" [{', '.join(format_signed(end, form) for end in ends)}]" if ends else ""
    return f"{format_signed(value, form)}{interval}"


def flatten_rows(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the table with the names of its rows in one column."""
    return frame.set_axis(pd.Index([", ".join(map(str, row)) for row in frame.index], name=name))


def to_grid(frame: pd.DataFrame) -> str:
    """Return a table as Markdown."""
    return table_to_markdown(Table("table", "", frame, ""))


def by_model(facts: StudyFacts, tabulate: Callable[[str], pd.DataFrame]) -> str:
    """Return a table for each model below its name."""
    return "\n\n".join(f"**{label}**\n\n{to_grid(tabulate(label))}" for label in facts.models)
