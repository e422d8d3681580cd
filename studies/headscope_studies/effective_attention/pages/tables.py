"""The page docs/tables.md: every table behind docs/effective_attention.md."""

import pandas as pd
import xarray as xr

from headscope.experiments.pages.tables import (
    by_model,
    find_letters,
    flatten_rows,
    format_cell,
    format_intervals,
    to_grid,
    verdict_values,
)
from headscope.experiments.rendering.report import score_table, time_table
from headscope.experiments.rendering.sentences import list_ranges
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import format_range
from headscope.experiments.verdicts import count_tests, judge_all
from headscope.patterns import NAMES
from headscope.reporting.frames import ENDS, TableColumn, to_frame
from headscope_studies.effective_attention import paper, report
from headscope_studies.effective_attention.claims import FEWEST, LOSES, SEVERAL
from headscope_studies.effective_attention.norms import compare_norms
from headscope_studies.effective_attention.pages import note
from headscope_studies.effective_attention.pages.facts import Facts
from headscope_studies.effective_attention.pages.pad_positions import read_pad_positions

WEIGHTS = {
    "[SEP] from all others": ("weight", {"token": "sep"}),
    "[CLS] from all others": ("weight", {"token": "cls"}),
    **{
        f"[CLS] to {report.TOKENS.get(kind, kind)}": ("type_weight", {"type": kind})
        for kind in ("cls", "sep", "punctuation", "noun", "pronoun", "verb")
    },
}


def page(facts: Facts) -> bytes:
    """Return the page."""
    method = (report.fill_text("lenses"), report.JUDGED, *report.fill_text("method").split("\n\n"))
    return note.fill_page(
        "tables.md",
        facts,
        **verdict_values(facts),
        distances=by_model(facts, lambda label: distance_table(facts.models[label])),
        several=by_model(facts, lambda label: several_table(facts, label)),
        published=by_model(facts, lambda label: published_table(facts.tuned[label])),
        sinks=by_model(facts, lambda label: sink_table(facts.tuned[label])),
        dispersion=by_model(facts, lambda label: dispersion_table(facts.tuned[label])),
        pad_verdicts=to_grid(read_pad_positions().tabulate_verdicts()),
        lengths=by_model(facts, lambda label: length_table(facts, label)),
        length_tests=format_range([count_length_tests(data) for data in facts.models.values()], ".0f", ""),
        fewest=FEWEST,
        faults=report.fill_text("faults"),
        patterns=by_model(facts, lambda label: pattern_table(facts.tuned[label])),
        scores=by_model(facts, lambda label: _scores(facts.models[label])),
        times=to_grid(_times(facts)),
        norms={label: report.fill_text("beside norms", **compare_norms(data)) for label, data in facts.models.items()},
        method="\n\n".join(f"- {paragraph}" for paragraph in method),
        differences={
            label: report.fill_text("differences", **report.find_differences(data, facts.seeds[label]))
            for label, data in facts.models.items()
        },
    )


def distance_table(numbers: xr.Dataset) -> pd.DataFrame:
    """Return the relative change of attention of every task, and how many inputs have at most d tokens."""
    n = numbers["n"]
    data = numbers.sel(role="tuned", length="all")
    data = data.assign(short=100 * n.sel(length="at most d") / n.sel(length="all"), n=n.sel(length="all"))
    columns = [TableColumn("inputs", "n", whole=True), TableColumn("of at most d tokens (%)", "short")]
    columns += [TableColumn(lens, "distance", {"lens": lens}) for lens in ("effective", "padded", "paper")]
    frame = format_intervals(to_frame(data, {"task": "task"}, columns), ".3f", ("effective", "padded", "paper"))
    return format_intervals(frame, ".0f", ("of at most d tokens (%)",)).rename_axis("task")


def several_table(facts: Facts, label: str) -> pd.DataFrame:
    """Return changes of weights in per cent, by maximum, mean and sum."""
    rows = {}
    for title, (name, where) in WEIGHTS.items():
        for several in SEVERAL:
            change = facts.relative(label, name, size="signed", several=several, **where).sel(lens="effective")
            rows[f"{title}, {several}"] = {
                task: format_cell(".0f", *(float(change[end].sel(task=task)) for end in ("value", "low", "high")))
                for task in list_tasks(change)
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
    columns = [TableColumn(lens, "sink_mean", {"lens": lens}) for lens in report.SHOWN]
    kinds = [str(kind) for kind in data["sink"].values if float(data["kinds"].sel(sink=kind).max()) > 0]
    columns += [TableColumn(f"{report.TOKENS.get(kind, kind)} (%)", "kinds", {"sink": kind}) for kind in kinds]
    frame = format_intervals(to_frame(data, {"task": "task"}, columns), ".3f", report.SHOWN)
    titles = [column.title for column in columns if column.variable == "kinds"]
    return format_intervals(frame, ".0f", titles).rename_axis("task")


def dispersion_table(tuned: xr.Dataset) -> pd.DataFrame:
    """Return the entropy of rows with each attention."""
    columns = [TableColumn(lens, "dispersion", {"lens": lens}) for lens in report.SHOWN]
    columns.append(TableColumn("change, effective", "dispersion_change", {"lens": "effective"}))
    return format_intervals(to_frame(tuned, {"task": "task"}, columns), ".2f").rename_axis("task")


def list_lengths(numbers: xr.Dataset) -> list[str]:
    """Return the classes of lengths that are judged apart."""
    lengths = ["at most d", "more than d", *list_ranges(numbers)]
    size = int(numbers["value_size"].values[0])
    return lengths[1:] if f"1–{size}" in lengths else lengths  # the same inputs


def count_length_tests(numbers: xr.Dataset) -> int:
    """Return how many verdicts by length rest on an interval."""
    claims, tuned = list(LOSES.values()), numbers.sel(role="tuned")
    return sum(count_tests(claims, tuned.sel(length=length)) for length in list_lengths(numbers))


def length_table(facts: Facts, label: str) -> pd.DataFrame:
    """Return for each task and length whether the sink, [SEP], [CLS] and punctuation lose weight."""
    numbers, letters = facts.models[label], find_letters(facts)
    rows: dict[tuple[str, str], dict[str, str]] = {(task, name): {} for task in list_tasks(numbers) for name in LOSES}
    tests = count_length_tests(numbers)
    for length in list_lengths(numbers):
        measured = facts.measured[label].sel(role="tuned", length=length)
        for name, judged in zip(LOSES, judge_all(list(LOSES.values()), measured, tests), strict=True):
            for task in judged.tasks:
                n = int(numbers["n"].sel(task=task.task, length=length))
                word = (letters[task.verdict] if n else "–") + (f" ({n:,})" if name == next(iter(LOSES)) else "")
                rows[task.task, name][f"{length} tokens" if length[0].isdigit() else length] = word
    return flatten_rows(pd.DataFrame.from_dict(rows, "index"), "task")


def pattern_table(tuned: xr.Dataset) -> pd.DataFrame:
    """Return shares of patterns: corrected with intervals, counted, and the paper's."""
    theirs = paper.table_2(list_tasks(tuned))
    rows = {}
    for task in list_tasks(tuned):
        for lens in report.SHOWN:
            cells = {}
            for name, letter in paper.LETTERS.items():
                row = tuned.sel(task=task, lens=lens, pattern=name)
                share = [100 * float(row[f"share{end}"]) for end in ENDS]
                cell = f"{format_cell('.1f', *share)}, counted {100 * float(row['counted']):.1f}"
                if theirs is not None and (task, lens) in theirs.index:
                    cell += f", paper {theirs.loc[(task, lens), letter]}"
                cells[f"{letter} ({NAMES[name]})"] = cell
            rows[f"{task}, {lens}"] = cells
    return pd.DataFrame.from_dict(rows, "index").rename_axis("attention")


def _scores(numbers: xr.Dataset) -> pd.DataFrame:
    frame = format_intervals(score_table(numbers), ".3f", ("score", "change"))
    frame = format_intervals(frame, ".1e", ("largest change of an output", "of these, largest lead"))
    return flatten_rows(format_intervals(frame, ",.0f", ("predictions changed",)), "attention")


def _times(facts: Facts) -> pd.DataFrame:
    """Return evaluation times beside the paper's ratios."""
    assert facts.times is not None
    frame = time_table(facts.times, report.WAYS)
    table = format_intervals(format_intervals(frame, ".2f", list(report.WAYS.values())), ".4f", ("raw (s)",))
    theirs = paper.table_3()["ratio"]
    table["paper"] = [f"{theirs[task]:.2f}" if task in theirs else "" for task, _ in table.index]
    return flatten_rows(table, "task, inputs in a batch")
