"""The page docs/effective_attention_tables.md: every table behind docs/effective_attention.md."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd
import xarray as xr
from effective_attention_facts import KINDS, STEM, Facts, count_kinds, read_template

from headscope.core.document import Part, Table
from headscope.experiments.claims import MOOT, format_interval, judge
from headscope.experiments.norms import describe_norms
from headscope.experiments.report import (
    THRESHOLDS,
    describe_origin,
    describe_unlearned,
    sample_inputs,
    score_table,
    time_table,
)
from headscope.experiments.sentences import describe_tests, list_ranges
from headscope.experiments.summary import list_tasks
from headscope.experiments.thresholds import threshold_table
from headscope.patterns import NAMES
from headscope.plotting.verdict_grid import LOOKS
from headscope.reporting.frames import ENDS, Quantity, to_frame
from headscope.reporting.markdown import table_to_markdown
from headscope.results.stamp import read_provenance
from headscope.studies.effective_attention import paper, report
from headscope.studies.effective_attention.claims import LOSES, SEVERAL

LETTERS = dict(zip(KINDS, (look[1] for look in LOOKS), strict=True))
WEIGHTS = {
    "[SEP] from all others": ("weight", {"token": "sep"}),
    "[CLS] from all others": ("weight", {"token": "cls"}),
    **{f"[CLS] to {report.TOKENS.get(kind, kind)}": ("type_weight", {"type": kind})
       for kind in ("cls", "sep", "punctuation", "noun", "pronoun", "verb")},
}  # fmt: skip


def page(facts: Facts) -> bytes:
    """Return the page."""
    method = (report.TEXTS["lenses"], report.JUDGED, *report.TEXTS["method"].split("\n\n"))
    text = read_template("effective_attention_tables").format(
        seeds=f", the widest of {facts.seed_counts}" if facts.seed_counts else "",
        counts=_grid(count_verdicts(facts)),
        tests=describe_tests(facts.every),
        letters=", ".join(f"{letter} {kind}" for kind, letter in LETTERS.items()),
        verdicts=_by_model(facts, lambda label: verdict_intervals(facts, label)),
        thresholds=_grid(threshold_table(facts.every)),
        scaled_caption=THRESHOLDS["scaled_thresholds"].rstrip("."),
        stem=STEM,
        distances=_by_model(facts, lambda label: distance_table(facts.models[label])),
        several=_by_model(facts, lambda label: several_table(facts.tuned[label])),
        published=_by_model(facts, lambda label: published_table(facts.tuned[label])),
        sinks=_by_model(facts, lambda label: sink_table(facts.tuned[label])),
        dispersion=_by_model(facts, lambda label: dispersion_table(facts.tuned[label])),
        lengths=_by_model(facts, lambda label: length_table(facts.models[label])),
        faults=report.TEXTS["faults"],
        patterns=_by_model(facts, lambda label: pattern_table(facts.tuned[label])),
        learned=_paragraphs(facts, describe_unlearned),
        scores=_by_model(facts, lambda label: _scores(facts.models[label])),
        times="Not measured." if facts.times is None else _describe_times(facts.times),
        norms=_paragraphs(facts, partial(describe_norms, text=report.TEXTS["beside norms"])),
        method="\n\n".join(f"- {line}" for line in method),
        differences="\n\n".join(_prefix(label, report.describe_differences(data, facts.seeds[label]))
                                for label, data in facts.models.items()),
        runs="\n\n".join(_run(label, data) for label, data in facts.models.items()),
    )  # fmt: skip
    return text.encode()


def count_verdicts(facts: Facts) -> pd.DataFrame:
    """Return how many pairs of a model and a task have which verdict, claim by claim."""
    rows = []
    for claims in zip(*facts.judged.values(), strict=True):
        counts = count_kinds(claims)
        rows.append({"claim": claims[0].text} | {kind: str(counts[kind] or "") for kind in KINDS})
    if "time" in facts.judged_all:
        (time,) = facts.judged_all["time"]
        rows.append({"claim": time.text} | {kind: str(count_kinds([time])[kind] or "") for kind in KINDS})
    return pd.DataFrame(rows).set_index("claim")


def verdict_intervals(facts: Facts, label: str) -> pd.DataFrame:
    """Return the verdict and its interval, claim by claim and task by task."""
    rows = {}
    for claim in facts.judged[label]:
        cells = {
            task.task: LETTERS[MOOT] if task.verdict == MOOT
            else f"{LETTERS[task.verdict]} {format_interval(claim.claim, task.interval)}"
            for task in claim.tasks
        }  # fmt: skip
        rows[claim.text] = cells
    return pd.DataFrame.from_dict(rows, "index").rename_axis("claim")


def distance_table(numbers: xr.Dataset) -> pd.DataFrame:
    """Return the relative change of attention of every task, and how many inputs have at most d tokens."""
    n = numbers["n"]
    data = numbers.sel(role="tuned", length="all")
    data = data.assign(short=100 * n.sel(length="at most d") / n.sel(length="all"), n=n.sel(length="all"))
    columns = [Quantity("inputs", "n", whole=True), Quantity("of at most d tokens (%)", "short")]
    columns += [Quantity(lens, "distance", {"lens": lens}) for lens in ("effective", "padded", "paper")]
    frame = format_intervals(to_frame(data, {"task": "task"}, columns), ".3f", ("effective", "padded", "paper"))
    return format_intervals(frame, ".0f", ("of at most d tokens (%)",)).rename_axis("task")


def several_table(tuned: xr.Dataset) -> pd.DataFrame:
    """Return changes of weights in per cent, by maximum, mean and sum."""
    rows = {}
    for title, (name, where) in WEIGHTS.items():
        for several in SEVERAL:
            part = tuned.sel(size="signed", several=several, **where)
            raw = abs(part[name].sel(lens="raw"))
            ends = [100 * part[f"{name}_change{end}"].sel(lens="effective") / raw for end in ENDS]
            rows[f"{title}, {several}"] = {
                task: _format(".0f", *(float(end.sel(task=task)) for end in ends)) for task in list_tasks(tuned)
            }
    return pd.DataFrame.from_dict(rows, "index").rename_axis("change (%)")


def published_table(tuned: xr.Dataset) -> pd.DataFrame:
    """Return the weights on [SEP] and [CLS], our average beside the published one."""
    rows = []
    for task in list_tasks(tuned):
        row: dict[str, str] = {"task": task}
        for token, name in (("sep", "[SEP]"), ("cls", "[CLS]")):
            ours = tuned["weight"].sel(task=task, token=token, size="signed", several="max")
            theirs = tuned["published_weight"].sel(task=task, token=token)
            for title, weights in (("ours", ours), ("theirs", theirs)):
                first, second = (float(weights.sel(lens=lens)) for lens in ("raw", "paper"))
                row[f"{name}, {title}: raw → paper"] = f"{first:.3f} → {second:.3f}"
        rows.append(row)
    return pd.DataFrame(rows).set_index("task")


def sink_table(tuned: xr.Dataset) -> pd.DataFrame:
    """Return the weight on the sink with each attention, and which token it is."""
    data = tuned.assign(kinds=100 * tuned["sink_kind"].mean("layer"))
    columns = [Quantity(lens, "sink_mean", {"lens": lens}) for lens in report.SHOWN]
    kinds = [str(kind) for kind in data["sink"].values if float(data["kinds"].sel(sink=kind).max()) > 0]
    columns += [Quantity(f"{report.TOKENS.get(kind, kind)} (%)", "kinds", {"sink": kind}) for kind in kinds]
    frame = format_intervals(to_frame(data, {"task": "task"}, columns), ".3f", report.SHOWN)
    titles = [column.title for column in columns if column.variable == "kinds"]
    return format_intervals(frame, ".0f", titles).rename_axis("task")


def dispersion_table(tuned: xr.Dataset) -> pd.DataFrame:
    """Return the entropy of rows with each attention."""
    columns = [Quantity(lens, "dispersion", {"lens": lens}) for lens in report.SHOWN]
    columns.append(Quantity("change, effective", "dispersion_change", {"lens": "effective"}))
    return format_intervals(to_frame(tuned, {"task": "task"}, columns), ".2f").rename_axis("task")


def length_table(numbers: xr.Dataset) -> pd.DataFrame:
    """Return for each task and length whether the sink, [SEP], [CLS] and punctuation lose weight."""
    lengths = ["at most d", "more than d", *list_ranges(numbers)]
    size = int(numbers["value_size"].values[0])
    lengths = lengths[1:] if f"1–{size}" in lengths else lengths  # the same inputs
    rows: dict[tuple[str, str], dict[str, str]] = {(task, name): {} for task in list_tasks(numbers) for name in LOSES}
    tests = len(LOSES) * len(lengths) * numbers.sizes["task"]
    for length in lengths:
        part = numbers.sel(role="tuned", length=length)
        for name, claim in LOSES.items():
            for task in judge(claim, part, tests).tasks:
                n = int(part["n"].sel(task=task.task))
                word = (LETTERS[task.verdict] if n > 1 else "–") + (f" ({n:,})" if name == next(iter(LOSES)) else "")
                rows[task.task, name][f"{length} tokens" if length[0].isdigit() else length] = word
    return _flat(pd.DataFrame.from_dict(rows, "index"), "task")


def pattern_table(tuned: xr.Dataset) -> pd.DataFrame:
    """Return shares of patterns: corrected with intervals, counted, and the paper's."""
    theirs = paper.table_2(list_tasks(tuned))
    rows = {}
    for task in list_tasks(tuned):
        for lens in report.SHOWN:
            cells = {}
            for name, letter in paper.LETTERS.items():
                part = tuned.sel(task=task, lens=lens, pattern=name)
                share = [100 * float(part[f"share{end}"]) for end in ENDS]
                cell = f"{_format('.1f', *share)}, counted {100 * float(part['counted']):.1f}"
                if theirs is not None and (task, lens) in theirs.index:
                    cell += f", paper {theirs.loc[(task, lens), letter]}"
                cells[f"{letter} ({NAMES[name]})"] = cell
            rows[f"{task}, {lens}"] = cells
    return pd.DataFrame.from_dict(rows, "index").rename_axis("attention")


def _scores(numbers: xr.Dataset) -> pd.DataFrame:
    frame = format_intervals(score_table(numbers), ".3f", ("score", "change"))
    frame = format_intervals(frame, ".1e", ("largest change of an output", "of these, largest lead"))
    return _flat(format_intervals(frame, ",.0f", ("predictions changed",)), "attention")


def _describe_times(times: xr.Dataset) -> str:
    frame = time_table(times, report.WAYS)
    table = format_intervals(format_intervals(frame, ".2f", list(report.WAYS.values())), ".4f", ("raw (s)",))
    theirs = paper.table_3()["ratio"]
    table["paper"] = [f"{theirs[task]:.2f}" if task in theirs else "" for task, _ in table.index]
    device = times.attrs["device"]
    where = "one thread of a CPU (seconds of CPU time)" if device == "cpu" else device
    text = (
        f"BERT-base's shape on {where}, random weights, one batch of each task padded to "
        f"{int(times.attrs['tokens'])} tokens; ratios to `raw`, median of the turns, least and most in brackets. Only "
        "the full decomposition is what the paper did; the others are ways of ours."
    )
    return f"{text}\n\n{_grid(_flat(table, 'task, inputs in a batch'))}"


def format_intervals(frame: pd.DataFrame, form: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the table with each number and its interval as one text, such as 0.42 [0.39, 0.45].

    >>> frame = pd.DataFrame({"x": [0.4], "x_low": [0.35], "x_high": [0.45]})
    >>> format_intervals(frame, ".2f")["x"].tolist()
    ['0.40 [0.35, 0.45]']
    """
    titles = [title for title in frame.columns if not str(title).endswith(ENDS[1:])]
    chosen = titles if columns is None else [title for title in columns if title in frame]
    result = frame.drop(columns=[f"{title}{end}" for title in chosen for end in ENDS[1:]], errors="ignore").copy()
    for title in chosen:
        ends = [frame[f"{title}{end}"] for end in ENDS if f"{title}{end}" in frame]
        result[title] = [_format(form, *values) for values in zip(*ends, strict=True)]
    return result


def _format(form: str, value: Any, *ends: float) -> str:
    if pd.isna(value):
        return ""
    interval = f" [{', '.join(f'{end:{form}}' for end in ends)}]" if ends else ""
    return f"{value:{form}}{interval}".replace("-", "−") if "e" not in form else f"{value:{form}}{interval}"


def _flat(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the table with the names of its rows in one column."""
    return frame.set_axis(pd.Index([", ".join(map(str, row)) for row in frame.index], name=name))


def _grid(frame: pd.DataFrame) -> str:
    part: Part = Table("table", "", frame, "")
    return table_to_markdown(part)


def _by_model(facts: Facts, make: Callable[[str], pd.DataFrame]) -> str:
    return "\n\n".join(f"**{label}**\n\n{_grid(make(label))}" for label in facts.models)


def _paragraphs(facts: Facts, describe: Callable[[xr.Dataset], str]) -> str:
    return "\n\n".join(filter(None, (_prefix(label, describe(data)) for label, data in facts.models.items())))


def _prefix(label: str, text: str) -> str:
    return f"**{label}.** {text}" if text else ""


def _run(label: str, numbers: xr.Dataset) -> str:
    facts, reduced = read_provenance(numbers), sample_inputs({}, numbers).reduced
    sources = " ".join(
        f"{task}: {describe_origin(numbers, task)}; learned from {int(numbers['train'].sel(task=task)):,}, "
        f"{int(numbers['n'].sel(task=task, length='all')):,} studied."
        for task in list_tasks(numbers)
    )
    note = f" **Reduced**: {reduced}." if reduced else ""
    return (
        f"**{label}** (weights {facts['weights_hash'][:12]}): {facts['command']}, on {facts['device']}. {sources}{note}"
    )
