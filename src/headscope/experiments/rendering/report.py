"""Pieces of every study's report: captions with their n, reduced notes, and prose from templates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Paragraph, Part, Picture, Section, Table
from headscope.core.prose import count_noun, join_words
from headscope.core.provenance import read_provenance
from headscope.experiments.claims import CODE, MOOT, Claim, JudgedClaim, list_verdict_names
from headscope.experiments.rendering.sentences import (
    compare_verdicts,
    count_verdicts,
    describe_tests,
    describe_versions,
    list_ranges,
    verdict_table,
    verdicts_by_task,
)
from headscope.experiments.summary import count_inputs, list_tasks, time_ratios
from headscope.experiments.template import fill_template
from headscope.experiments.thresholds import draw_thresholds, threshold_table
from headscope.plotting.facets import interval_facets
from headscope.plotting.verdict_grid import verdict_grid
from headscope.reporting.frames import TableColumn, to_frame

THRESHOLDS = {
    "thresholds": "How large an effect must be to count, for how many claims, why, and since when.",
    "scaled_thresholds": "The number of each verdict if all thresholds are multiplied by the same factor.",
}
"""Captions of what every study says about its thresholds."""

GRID = {"verdict_grid": "The verdict on each claim; what each verdict means is said below."}
"""The caption of the first figure of a report."""

SCORE = "{} ({:.3f}, 95 % {:.3f} to {:.3f}; most common label {:.3f})"
"""How a row of `list_scores` is shown."""


@dataclass(frozen=True)
class Captioner:
    """The inputs or maps behind tables and figures: their number, and why it is smaller than the paper's.

    Captions are templates by the name of the table or figure; table_3 is Table 3 of the paper.
    """

    captions: Mapping[str, str]
    n: str
    reduced: str | None = None

    def table(self, name: str, frame: pd.DataFrame, theirs: pd.DataFrame | None = None, **values: Any) -> Table:
        """Return a table over this sample, its caption filled with values."""
        caption = fill_template(self.captions[name], **values)
        return Table(name, caption, frame, self.n, theirs, self.reduced, _number(name))

    def picture(self, name: str, figure: Figure, **values: Any) -> Picture:
        """Return a figure over this sample, its caption filled with values."""
        caption = fill_template(self.captions[name], **values)
        return Picture(name, caption, figure, self.n, self.reduced, _number(name))


def sample_inputs(captions: Mapping[str, str], numbers: xr.Dataset, length: str = "all") -> Captioner:
    """Return the inputs of each task; reduced where not all of its dev set was studied."""
    whole = dict(zip(list_tasks(numbers), numbers["whole_dev"].values.tolist(), strict=True))
    studied = count_inputs(numbers)
    fewer = [f"{n:,} of {whole[task]:,} inputs of {task}" for task, n in studied.items() if n < whole[task]]
    counts = _list_counts(count_inputs(numbers, length))
    noun = "input" if counts.endswith(" 1") else "inputs"
    return Captioner(captions, f"{counts} {noun}", f"{', '.join(fewer)} were studied" if fewer else None)


def sample_maps(captions: Mapping[str, str], numbers: xr.Dataset, theirs: int, length: str = "all") -> Captioner:
    """Return the maps of all heads of each task; reduced where they are fewer than the paper's."""
    heads = numbers.sizes["layer"] * numbers.sizes["head"]
    counts = {task: heads * n for task, n in count_inputs(numbers, length).items()}
    fewer = [f"{n:,} maps of {task}" for task, n in counts.items() if n < theirs]
    reduced = f"{', '.join(fewer)}, where the paper has {theirs:,} of each task" if fewer else None
    return Captioner(captions, f"{_list_counts(counts)} maps", reduced)


def report_tasks(numbers: xr.Dataset, theirs: pd.DataFrame | None, number: int | None = None) -> Section:
    """Return the section on the data: sizes of every task beside the paper's, and where its examples come from."""
    size = int(numbers["value_size"].values[0])
    data = numbers.assign(train=numbers["train"].where(numbers["train"] > 0))
    lengths = "length" in numbers["n"].dims
    longer = [TableColumn("with more than d tokens", "n", {"length": "more than d"}, whole=True)] if lengths else []
    frame = to_frame(
        data,
        {"task": "task"},
        [
            TableColumn("type", "kind"),
            TableColumn("learned from", "train", whole=True),
            TableColumn("studied", "n", {"length": "all"} if lengths else {}, whole=True),
            TableColumn("of", "whole_dev", whole=True),
            TableColumn("tokens, mean", "mean_tokens"),
            TableColumn("cut", "cut", whole=True),
            *longer,
        ],
    )
    paper = f" (the paper's Table {number})" if number else ""
    caption = f"The data in use{paper}. d, the value dimensions of a head of this model, is {size}."
    missing = read_provenance(numbers).get("missing") or []
    sources = " ".join(f"**{task}**: {describe_origin(numbers, task)}." for task in list_tasks(numbers))
    also = f" Not in the folder: {', '.join(missing)}." if missing else ""
    name = f"table_{number}" if number else "tasks"
    table = sample_inputs({name: caption}, numbers).table(name, frame, theirs)
    return Section("The data", [table, Paragraph(sources + also)])


def report_verdicts(sample: Captioner, judged: Sequence[JudgedClaim], before: Sequence[str], how: str) -> Section:
    """Return the section with the verdicts, overall and by task, after `before` and with how they are judged."""
    parts: list[Part] = [
        picture_verdicts(sample, draw_verdict_grid(judged)),
        *paragraphs(*before),
        sample.table("verdicts", verdict_table(judged)),
    ]
    parts += paragraphs(how, describe_tests(judged))
    if len(judged[0].tasks) > 1:
        parts.append(sample.table("verdicts_by_task", verdicts_by_task(judged)))
    return Section("What holds", parts)


def picture_verdicts(sample: Captioner, grid: Figure) -> Picture:
    """Return the grid of verdicts with its caption: what a report begins with."""
    return replace(sample, captions=GRID).picture("verdict_grid", grid)


def draw_verdict_grid(judged: Sequence[JudgedClaim]) -> Figure:
    """Draw the verdict on every claim by task; tasks on which only some claims are judged are left out."""
    tasks = [task.task for task in judged[0].tasks]
    published = [claim.claim.contrast for claim in judged if claim.claim.published]
    kinds = list_verdict_names(published[0] if published else CODE)
    rows = {
        claim.text.rstrip("."): {("", task.task): task.verdict for task in claim.tasks if task.task in tasks}
        for claim in judged
    }
    frame = pd.DataFrame.from_dict(rows, "index").dropna(how="all").fillna(MOOT)
    return verdict_grid(frame, kinds if published else (kinds[0], *kinds[3:]))


def report_thresholds(sample: Captioner, judged: Sequence[JudgedClaim]) -> Section:
    """Return the section with every threshold, its reason and its date, and how verdicts change with them."""
    claims = replace(
        sample, captions=THRESHOLDS | dict(sample.captions), n=count_noun(len(judged), "claim"), reduced=None
    )
    figure = claims.picture("scaled_thresholds", draw_thresholds(judged))
    return Section("Thresholds", [claims.table("thresholds", threshold_table(judged)), figure])


def report_versions(sample: Captioner, judged: Mapping[str, Sequence[JudgedClaim]]) -> list[Part]:
    """Return which verdicts depend on the version of the claims, such as the mean in place of the maximum."""
    frame = compare_verdicts(judged)
    table = [] if frame.empty else [sample.table("versions", frame)]
    return [Paragraph(describe_versions(judged)), *table]


def report_times(
    captions: Mapping[str, str], times: xr.Dataset, names: Mapping[str, str], theirs: pd.DataFrame
) -> Section:
    """Return the section on evaluation time, whose caption takes tokens, device and turns of the slowest variant."""
    turns = int(times["seconds"].count("turn").min("way").max())
    values = {"tokens": int(times.attrs["tokens"]), "device": times.attrs["device"], "turns": turns}
    sample = Captioner(captions, f"{times.sizes['turn']} turns")
    table = sample.table("table_3", time_table(times, names), theirs, **values)
    return Section("Evaluation time", [table])


def report_scores(sample: Captioner, numbers: xr.Dataset, text: str) -> Section:
    """Return the section on predictions with each attention in place, and in how many inputs none can change."""
    n = numbers["n"]
    same = numbers.sel(length="all").assign(short=n.sel(length="at most d") / n.sel(length="all"))
    columns = [TableColumn("inputs of at most d tokens (%)", "short", scale=100)]
    for role in ("base", "tuned"):
        for name, title in (("same_inputs", "inputs with all heads the same"), ("same_heads", "heads the same")):
            columns.append(TableColumn(f"{title}, {role} (%)", name, {"role": role}, scale=100))
    return Section(
        "Predictions with effective attention in place",
        [
            *paragraphs(describe_learned(numbers), text),
            sample.table("scores", score_table(numbers)),
            sample.table("same", to_frame(same, {"task": "task"}, columns)),
        ],
    )


def score_table(numbers: xr.Dataset) -> pd.DataFrame:
    """Return the scores of `score_edits`, and how far the outputs move."""
    data = numbers.assign(changed_margin=numbers["changed_margin"].where(numbers["changed"] > 0))
    return to_frame(
        data,
        {"task": "task", "lens": "attention"},
        [
            TableColumn("metric", "metric"),
            TableColumn("score", "score"),
            TableColumn("change", "score_change"),
            TableColumn("largest change of an output", "output_change"),
            TableColumn("predictions changed", "changed", whole=True),
            TableColumn("of these, largest lead", "changed_margin"),
        ],
    )


def time_table(times: xr.Dataset, names: Mapping[str, str]) -> pd.DataFrame:
    """Return evaluation times over that with raw attention; `names` are the titles of the other variants."""
    data = time_ratios(times).assign(seconds=times["seconds"].sel(way="raw").median("turn"))
    ratios = [TableColumn(title, "ratio", {"way": way}) for way, title in names.items()]
    rows = {"task": "task", "batch": "inputs in a batch"}
    return to_frame(data, rows, [TableColumn("raw (s)", "seconds"), *ratios])


def length_table(numbers: xr.Dataset) -> pd.DataFrame:
    """Return the number of inputs of each task by their tokens."""
    ranges = list_ranges(numbers)
    columns = [TableColumn(f"{length} tokens", "n", {"length": length}, whole=True) for length in ranges]
    return to_frame(numbers, {"task": "task"}, columns)


def draw_by_length(numbers: xr.Dataset, claims: Mapping[str, Claim]) -> Figure:
    """Draw the quantities of claims, by title, over the length of the input: a row for each, a panel for each task."""
    data = numbers.sel(length=list_ranges(numbers))
    parts = {title: select_interval(data.sel(claim.where), claim.quantity) for title, claim in claims.items()}
    table = {title: {task: part.sel(task=task) for task in list_tasks(data)} for title, part in parts.items()}
    return interval_facets(table, x="length", label="tokens of the input", lines=True)


def study_values(numbers: xr.Dataset, judged: Sequence[JudgedClaim] = ()) -> dict[str, Any]:
    """Return what templates of every study may use: the model, the tasks, their sizes, and the count of verdicts."""
    return {
        "model": str(read_provenance(numbers).get("model", "a model")).rstrip("/").rpartition("/")[2],
        "tasks": ", ".join(list_tasks(numbers)),
        "inputs": count_noun(sum(count_inputs(numbers).values()), "input"),
        "layers": numbers.sizes["layer"],
        "heads": numbers.sizes.get("head", 1),  # one where they are averaged
        "size": int(numbers["value_size"].values[0]),
        "tuning": "; ".join(dict.fromkeys(str(text) for text in numbers["tuning"].values if str(text))),
        "claims": len(judged),
        "counts": count_verdicts(judged),
    }


def describe_origin(numbers: xr.Dataset, task: str) -> str:
    """Return where a task's examples come from, and how its model was tuned."""
    source, tuning = (str(numbers[name].sel(task=task).values) for name in ("source", "tuning"))
    return f"{source}; {f'tuned with {tuning}' if tuning else 'the model was fine-tuned already'}"


def describe_unlearned(numbers: xr.Dataset) -> str:
    """Return on which tasks the tuned model is no better than the most common label, or nothing."""
    parts = [SCORE.format(*row) for row in list_scores(numbers, learned=False)]
    if not parts:
        return ""
    return (
        f"The tuned model is not shown to have learned {join_words(parts)}: results on tuning there may describe a "
        "model that learned little."
    )


def describe_learned(numbers: xr.Dataset) -> str:
    """Return on which tasks the tuned model is better than the most common label, or nothing."""
    parts = [SCORE.format(*row) for row in list_scores(numbers, learned=True)]
    return f"The tuned model has learned {join_words(parts)}." if parts else ""


def list_scores(numbers: xr.Dataset, *, learned: bool) -> list[tuple[str, float, float, float, float]]:
    """Return the scores whose interval is above the share of the most common label, or the others; not regression.

    Each is the task, the score, both ends of its interval, and the share of the most common label.
    """
    scores = []
    for task in list_tasks(numbers):
        row = numbers.sel(task=task)
        row = row.sel(lens="raw") if "lens" in row["score"].dims else row
        score, low, high, most = (float(row[name]) for name in ("score", "score_low", "score_high", "majority"))
        if most == most and (low > most) == learned:
            scores.append((task, score, low, high, most))
    return scores


def select_interval(data: xr.Dataset, name: str, scale: int | float = 1) -> xr.Dataset:
    """Return a variable and its interval as `value`, `low` and `high`, as faceted figures take them."""
    return scale * xr.Dataset({"value": data[name], "low": data[f"{name}_low"], "high": data[f"{name}_high"]})


def read_prose(package: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of a study's prose.md by their headings, and captions by name, all of them Jinja templates."""
    text = (files(package or "") / "prose.md").read_text(encoding="utf-8")
    sections = (section.partition("\n") for section in text.split("\n## ")[1:])
    texts = {title.strip(): body.strip() for title, _, body in sections}
    lines = (line.removeprefix("- ").partition(": ") for line in texts.pop("captions", "").splitlines())
    return texts, {name: caption for name, _, caption in lines}


def paragraphs(*texts: str) -> list[Paragraph]:
    """Return Paragraphs of the texts that are not empty."""
    return [Paragraph(text) for text in texts if text]


def _number(name: str) -> int | None:
    """Return the number of the paper's own table or figure.

    >>> _number("figure_4"), _number("table_2_base")
    (4, None)
    """
    kind, _, number = name.partition("_")
    return int(number) if kind in ("table", "figure") and number.isdigit() else None


def _list_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{task} {count:,}" for task, count in counts.items())


def same_table(numbers: xr.Dataset) -> pd.DataFrame:
    """Return in which inputs and heads effective attention equals attention, and its norm, by length."""
    sizes = numbers["n"].where(numbers["n"] > 0)  # a range without inputs has no row
    data = numbers.sel(role="tuned", lens="effective").assign(n=sizes)
    data = data.sel(length=["at most d", "more than d"])
    return to_frame(
        data,
        {"task": "task", "length": "tokens"},
        [
            TableColumn("inputs", "n", whole=True),
            TableColumn("inputs with all heads the same (%)", "same_inputs", scale=100),
            TableColumn("heads the same (%)", "same_heads", scale=100),
            TableColumn("norm over that of attention", "effective_share"),
        ],
    )
