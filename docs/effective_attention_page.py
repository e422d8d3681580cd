"""The page docs/effective_attention.md and its pictures, from docs/results/effective_attention_*.nc."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Section, Table
from headscope.experiments.claims import HOLDS, MOOT, NOT_REPRODUCED, REFUTED, UNDECIDED, JudgedClaim, judge, list_kinds
from headscope.experiments.report import describe_origin, describe_unlearned, sample_inputs, time_table
from headscope.experiments.sentences import describe_verdicts
from headscope.experiments.summary import list_tasks
from headscope.reporting.frames import ENDS
from headscope.reporting.markdown import table_to_markdown, to_markdown
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result
from headscope.studies.effective_attention import paper, report
from headscope.studies.effective_attention.claims import ALIKE, LOSES, judge_models

DOCS = Path(__file__).parent
STEM = "effective_attention_"
UNPADDED = list_kinds("padding")[1]
WORDS = {
    HOLDS: "exactly",
    REFUTED: "only with padding",
    UNPADDED: "only without padding",
    NOT_REPRODUCED: "not",
    UNDECIDED: "perhaps",
    MOOT: "–",
}
SIGNS = {HOLDS: "exact", UNPADDED: "exact", REFUTED: "padding", NOT_REPRODUCED: "no", UNDECIDED: "?", MOOT: "–"}
TEXT = """# Does effective attention show something else than attention?

*Made by `docs/make.py` from `docs/results/effective_attention_*.nc`; no number here is typed by hand.*

Sun & Marasović (2021) fine-tune BERT-base on five tasks of GLUE, compare raw with effective attention, and
conclude that effective attention ignores [SEP] and punctuation, but not [CLS], and shows features of the task instead.
Their code pads every input to 128 tokens and lets the padding take part. This page repeats their tables with
{models} ({size} value dimensions a head; BERT-base has 64, and of it only the time was measured, with random
weights). *Effective* is exact, *padded* is exact for the padded input, *paper* is what their code computes.

## In short

{answer}

The number of tasks on which weight is lost: measured exactly, only with the paper's code, or not. [SEP] and
[CLS] are attended to from all other tokens in all layers, punctuation from [CLS] in the last.

{short}

The paper's claims, judged for {pairs} pairs of a model and a task:

{counts}

```
headscope study effective-attention --data GLUE -o out/                      # the paper's tasks, on any --model
headscope study effective-attention --dev my.jsonl --train more.jsonl -o out/    # on data of your own
```

The models were fine-tuned once for each task, with one seed and these settings, which are not all the paper's
(see the end):

```
{commands}
```

{bodies}
## Evaluation time of BERT-base's shape

{shape}

## How to read it

{method}

## What differs from the paper

{differences}

{runs}
"""
ANSWER = (
    "Yes, but not what was published. Measured exactly on all inputs, [SEP] loses weight for {sep} pairs of a "
    "model and a task, punctuation for {punctuation}, and [CLS], which was said to keep its weight, for {cls} "
    "({alike} of them by so little that it is still called alike). An input that has no more tokens than a head has "
    "value dimensions has nothing to lose, unless its values are linearly dependent: {short} of our inputs are so "
    "short, and what the paper's code shows there is padding."
)
BY_LENGTH = """Whether weight is lost exactly (*exact*), only with the paper's code (*padding*), or not (*no*; *?* where
the interval is too wide; – where fewer than two inputs are that long). In brackets, once for each task, the number of
inputs."""
PATTERNS = """Share of maps of each pattern class in per cent, tuned model, with 95 % intervals in square brackets;
after “paper”, what the paper prints."""
TIMES = """Seconds are of one batch on {device}, padded to {tokens} tokens, with the weights before tuning: median of
the turns, least and most in brackets. For a model this small, mostly kernel launches are timed, not computation: the
ratio differs between tasks and machines by chance, by a third and more."""


def results(folder: Path = DOCS / "results") -> dict[str, dict[str, xr.Dataset]]:
    """Return numbers and times by model."""
    models = {}
    for path in sorted(folder.glob(f"{STEM}*.nc")):
        if not path.stem.endswith(("_times", "_maps")):
            times = open_result(path.with_name(f"{path.stem}_times.nc"))
            models[path.stem.removeprefix(STEM)] = {"numbers": open_result(path), "times": times}
    return models


def page(models: Mapping[str, Mapping[str, xr.Dataset]], folder: Path = DOCS / "results") -> bytes:
    """Return the page; times of BERT-base's shape are read from the folder."""
    numbers = {label: data["numbers"] for label, data in models.items()}
    judged = judge_models(numbers)
    shapes = sorted(folder.glob(f"{STEM}bert-base-shape_*_times.nc"))
    method = (report.TEXTS["lenses"], report.JUDGED, *report.TEXTS["method"].split("\n\n"))
    text = TEXT.format(
        answer=_answer(numbers),
        commands="\n".join(_commands(numbers)),
        shape="\n\n".join(map(_shape, shapes)),
        models=" and ".join(models),
        short=_grid(_in_short(numbers)),
        pairs=sum(len(claims[0].tasks) for claims in judged.values()),
        counts=_grid(_counts(list(judged.values()))),
        size=" or ".join(map(str, sorted({_size(data) for data in numbers.values()}))),
        bodies="\n".join(to_markdown(_body(label, data, judged[label]), _pictures(label), level=2, captions=False)
                         for label, data in models.items()),
        method="\n\n".join(f"- {text}" for text in method),
        differences="\n\n".join(f"**{label}.** {report.describe_differences(data)}" for label, data in numbers.items()),
        runs="\n\n".join(_run(label, data) for label, data in numbers.items()),
    )  # fmt: skip
    return text.encode()


def drawn(models: Mapping[str, Mapping[str, xr.Dataset]]) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    return {
        Path(_pictures(label)["by_length"]).name: report.draw_lengths(data["numbers"]) for label, data in models.items()
    }


def made() -> list[tuple[Path, bytes]]:
    """Return the page and its path, where there are results."""
    known = results()
    return [(DOCS / "effective_attention.md", page(known))] if known else []


def _pictures(label: str) -> dict[str, str]:
    return {"by_length": f"pictures/{STEM}{label}_by_length.svg"}


def _body(label: str, data: Mapping[str, xr.Dataset], judged: list[JudgedClaim]) -> Document:
    """Return the part of the page on one model, from the parts of the study's own report."""
    numbers, times = data["numbers"], data["times"]
    whole = report.document(data)
    parts = {part.name: part for section in whole.sections for part in section.parts if not isinstance(part, Paragraph)}
    text = "\n\n".join(filter(None, (report.describe_losses(numbers, judged), _describe_short(numbers),
                                     describe_unlearned(numbers), report.describe_twins(numbers))))  # fmt: skip
    sentences = "\n".join(f"- {claim.text} {describe_verdicts(claim)}" for claim in judged)
    verdicts = parts.get("verdicts_by_task", parts["verdicts"])
    device = TIMES.format(**times.attrs)
    sections: dict[str, list[Part | str | pd.DataFrame]] = {
        "What holds": [verdicts, sentences],
        "By length": [report.describe_lengths(numbers), BY_LENGTH, by_length(numbers), parts["by_length"]],
        "What of Table 2 survives": [report.describe_patterns(judged), PATTERNS, _patterns(parts["table_2"]),
                                     report.TEXTS["faults"]],
        "Beside the norm-based analysis": [report.describe_norms(numbers)],
        "Scores with effective attention in place": [_scores(parts["scores"])],
        "Evaluation time": [_times(times), device],
    }  # fmt: skip
    named = enumerate(sections.items())
    return Document(
        label, text, [Section(title, [_part(item, f"t{at}") for item in items]) for at, (title, items) in named]
    )


def _part(item: Part | str | pd.DataFrame, name: str = "table") -> Part:
    if isinstance(item, pd.DataFrame):
        return Table(name, "", item, "")
    return Paragraph(item) if isinstance(item, str) else item


def _grid(frame: pd.DataFrame) -> str:
    return table_to_markdown(_part(frame))


def _answer(numbers: Mapping[str, xr.Dataset]) -> str:
    """Return for how many pairs of a model and a task weight is lost, and for how many inputs nothing can be."""

    def count(claim: object) -> tuple[int, int]:
        tasks = [task for data in numbers.values() for task in judge(claim, data.sel(role="tuned", length="all")).tasks]
        return sum(task.exact for task in tasks), len(tasks)

    lost = {name: "{} of {}".format(*count(claim)) for name, claim in LOSES.items()}
    short = [100 * float(_count(data, "at most d") / _count(data, "all")) for data in numbers.values()]
    _, sep, cls, punctuation = lost.values()
    return ANSWER.format(
        sep=sep, punctuation=punctuation, cls=cls, alike=count(ALIKE[1])[0], short=_range(min(short), max(short))
    )


def _commands(numbers: Mapping[str, xr.Dataset]) -> list[str]:
    """Return the commands that fine-tune and study as was done here, one line for tasks with the same settings."""
    groups: dict[str, dict[str, None]] = {}
    for data in numbers.values():
        for task in list_tasks(data):
            groups.setdefault(str(data["tuning"].sel(task=task).values), {})[task.lower().replace("-", "")] = None
    lines = []
    for tuning, tasks in groups.items():
        match = re.fullmatch(r"(\d+) epochs?, batch (\d+), learning rate ([\d.e-]+)(?:, warm-up ([\d.]+))?", tuning)
        assert match is not None, tuning
        options = zip(("epochs", "batch_size", "learning_rate", "warmup"), match.groups(), strict=True)
        asked = ",".join(f"{name}={value}" for name, value in options if value)
        chosen = " ".join(f"--tasks {task}" for task in tasks)
        lines.append(f"headscope study effective-attention:{asked} --data GLUE {chosen} --model MODEL -o out/")
    return lines


def _shape(path: Path) -> str:
    times = open_result(path)
    where = times.attrs["device"] if times.attrs["device"] != "cpu" else "one thread of a CPU (seconds of CPU time)"
    return f"On {where}, random weights, the same texts:\n\n{_grid(_times(times))}"


def _in_short(numbers: Mapping[str, xr.Dataset]) -> pd.DataFrame:
    """Return on how many tasks [SEP], punctuation and [CLS] lose weight, by model and length."""
    rows = []
    for label, data in numbers.items():
        names = {"all": "all inputs", "at most d": f"at most {_size(data)} tokens", "more than d": "longer"}
        for length, name in names.items():
            part = data.sel(role="tuned", length=length)
            part = part.sel(task=part["n"] > 1)
            verdicts = {thing: [task.verdict for task in judge(claim, part).tasks] for thing, claim in LOSES.items()}
            cells = {thing: ", ".join(f"{word} {kinds.count(kind)}" for kind, word in WORDS.items() if kind in kinds)
                     for thing, kinds in verdicts.items()}  # fmt: skip
            rows.append({"tuned model": f"{label}, {name}", **cells})
    return pd.DataFrame(rows).set_index("tuned model")


def _counts(judged: list[list[JudgedClaim]]) -> pd.DataFrame:
    """Return how many pairs of a model and a task have which verdict, claim by claim."""
    rows = []
    for claims in zip(*judged, strict=True):
        verdicts = [task.verdict for claim in claims for task in claim.tasks]
        kinds = list_kinds("padding")
        rows.append({"claim": claims[0].text} | {kind: str(verdicts.count(kind) or "") for kind in kinds})
    return pd.DataFrame(rows).set_index("claim")


def _describe_short(numbers: xr.Dataset) -> str:
    """Return how long inputs must be for anything to differ, and what padding makes of shorter ones."""
    size, count = _size(numbers), int(_count(numbers, "at most d"))
    if not count:
        return (
            f"No input has at most {size} tokens, so exact effective attention differs from attention in all of them."
        )
    part = numbers.sel(role="tuned", length="at most d", size="signed", token="sep")
    weight = part["weight"].sel(task=part["n"] > 0)
    moved = [100 * (weight.sel(lens=lens) / weight.sel(lens="raw") - 1) for lens in ("effective", "paper")]
    exact, padded = (_range(float(change.min()), float(change.max())) for change in moved)
    return (
        f"{count:,} of the inputs have at most {size} tokens. There the mean weight on [SEP] changes by {exact} "
        f"exactly, and by {padded} with the paper's code: all of the latter is padding."
    )


def by_length(numbers: xr.Dataset) -> pd.DataFrame:
    """Return for each task and length whether [SEP], punctuation and [CLS] lose weight."""
    lengths = [str(length) for length in numbers["length"].values]
    if any(length.endswith(f"–{_size(numbers)}") and length.startswith("1–") for length in lengths):
        lengths.remove("at most d")  # the same inputs
    rows = {(task, thing): {} for task in list_tasks(numbers) for thing in LOSES}
    for length in lengths:
        part = numbers.sel(role="tuned", length=length)
        for thing, claim in LOSES.items():
            for task in judge(claim, part).tasks:
                n = int(part["n"].sel(task=task.task))
                word = (SIGNS[task.verdict] if n > 1 else "–") + (f" ({n:,})" if thing == "[SEP]" else "")
                rows[task.task, thing][f"{length} tokens" if length[0].isdigit() else length] = word
    return _flat(pd.DataFrame.from_dict(rows, "index"), "task")


def _patterns(table: Part) -> pd.DataFrame:
    """Return Table 2 without padded attention, the paper's shares after ours."""
    assert isinstance(table, Table)
    ours = format_intervals(table.frame.drop("padded", level="attention"), ".1f")
    for row, letter in ((row, letter) for row in ours.index for letter in ours.columns):
        if table.theirs is not None and row in table.theirs.index:
            ours.loc[row, letter] += f" paper {table.theirs.loc[row, letter]}"
    return _flat(ours, "attention")


def _scores(table: Part) -> pd.DataFrame:
    assert isinstance(table, Table)
    frame = format_intervals(table.frame, ".3f", ("score", "change"))
    frame = format_intervals(frame, ".1e", ("largest change of an output", "of these, largest lead"))
    return _flat(format_intervals(frame, ",", ("predictions changed",)), "attention")


def _times(times: xr.Dataset) -> pd.DataFrame:
    frame = time_table(times, report.WAYS)
    table = format_intervals(format_intervals(frame, ".2f", list(report.WAYS.values())), ".4f", ("raw (s)",))
    theirs = paper.table_3()["ratio"]
    table["paper"] = [f"{theirs[task]:.2f}" if task in theirs else "" for task, _ in table.index]
    return _flat(table, "task, inputs in a batch")


def format_intervals(frame: pd.DataFrame, form: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the table with each number and its interval as one text, such as 0.42 [0.39, 0.45].

    >>> frame = pd.DataFrame({"x": [0.4], "x_low": [0.35], "x_high": [0.45]})
    >>> format_intervals(frame, ".2f")["x"].tolist()
    ['0.40 [0.35, 0.45]']
    """
    titles = [title for title in frame.columns if not str(title).endswith(ENDS[1:])]
    result = frame[titles].copy()
    for title in titles if columns is None else columns:
        if title not in frame:
            continue
        ends = [frame[f"{title}{end}"] for end in ENDS if f"{title}{end}" in frame]
        result[title] = [_format(form, *values) for values in zip(*ends, strict=True)]
    return result


def _format(form: str, value: Any, *ends: float) -> str:
    if pd.isna(value):
        return ""
    interval = f" [{', '.join(f'{end:{form}}' for end in ends)}]" if ends else ""
    return f"{value:{form}}{interval}"


def _flat(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the table with the names of its rows in one column."""
    return frame.set_axis(pd.Index([", ".join(map(str, row)) for row in frame.index], name=name))


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


def _size(numbers: xr.Dataset) -> int:
    return int(numbers["value_size"].values[0])


def _count(numbers: xr.Dataset, length: str) -> xr.DataArray:
    return numbers["n"].sel(length=length).sum()


def _range(low: float, high: float) -> str:
    first, last = (f"{round(value)}".replace("-", "−") for value in (low, high))
    return f"{first} %" if first == last else f"{first} to {last} %"
