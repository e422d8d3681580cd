"""The page docs/effective_attention.md and its pictures, from docs/results/effective_attention_*.nc."""

import re
from pathlib import Path
from typing import get_args

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.experiments.verdict import EXACTLY, Verdict
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result
from headscope.studies.effective_attention import paper, pictures, remarks, tables, words
from headscope.studies.effective_attention.claims import Claim, claims
from headscope.studies.effective_attention.document import lengths_shown
from headscope.studies.effective_attention.names import ATTENTIONS
from headscope.studies.effective_attention.remarks import THINGS
from headscope.studies.effective_attention.scale import reduced

DOCS = Path(__file__).parent
STEM = "effective_attention_"
KINDS = {
    "holds": "exactly",
    "only with padding": "only with padding",
    "only without padding": "only without padding",
    "does not hold": "not",
    "cannot be said": "perhaps",
}
SHOWN = [ATTENTIONS[lens] for lens in ("standard", "visible", "paper")]
TEXT = """# Does effective attention show something else than attention?

*Made by `docs/make.py` from `docs/results/effective_attention_*.nc`; no number here is typed by hand.*

Sun & Marasović (2021) fine-tune BERT-base on five tasks of GLUE, compare standard with effective attention, and
conclude that effective attention ignores [SEP] and punctuation, but not [CLS], and shows features of the task instead.
Their code pads every input to 128 tokens and lets the padding take part. This page repeats their tables with
{models} ({size} value dimensions a head; BERT-base has 64, and of it only the time was measured, with random
weights). *Effective* is exact, *padded* is exact for the padded input, *published* is what their code does.

## In short

{answer}

On how many of the tasks weight is lost: measured exactly, only in what the published code gives, or not. [SEP] and
[CLS] are attended to from all other tokens in all layers, punctuation from [CLS] in the last.

{short}

The paper's claims, judged for {many} pairs of a model and a task:

{counts}

```
headscope study effective-attention --data GLUE -o out/                      # the paper's tasks, on any --model
headscope study effective-attention --dev my.jsonl --train more.jsonl -o out/    # on data of your own
```

The runs behind this page were tuned once for each task, with one seed and these settings, which are not all the paper's
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

BODY = """## {model}

{answers}

{plain}

### What holds

{verdicts}

{sentences}

### By length

{by_length}

Whether weight is lost exactly (*exact*), only in what the published code gives (*padding*), or not (*no*; *?* where the
interval is too wide; – where fewer than two inputs are that long). In brackets, once for each task, how many inputs it
is.

{lengths}

![Weights by length]({picture})

### What of Table 2 survives

{survivors}

Share of maps of each pattern class in per cent, tuned model, with 95 % intervals in square brackets; after “paper”,
what the paper prints.

{patterns}

{faults}

### Beside the norm-based analysis

{norms}

### Scores with effective attention in place

{scores}

### Evaluation time

{times}

Seconds are of one batch on {device}, filled up to {tokens} tokens, with the weights before tuning: median of
the turns, least and most in brackets. A model this small is done before the GPU has been told all of it, so what is
counted here is mostly launches: it differs from task to task and from machine to machine by chance, by a third and
more.
"""


def results(folder: Path = DOCS / "results") -> dict[str, dict[str, xr.Dataset]]:
    """What was found, by model: numbers and times."""
    found = {}
    for path in sorted(folder.glob(f"{STEM}*.nc")):
        label = path.stem.removeprefix(STEM)
        if not label.endswith(("_times", "_maps")):
            times = path.with_name(f"{path.stem}_times.nc")
            found[label] = {"numbers": open_result(path), "times": open_result(times)}
    return found


def page(found: dict[str, dict[str, xr.Dataset]], folder: Path = DOCS / "results") -> bytes:
    """The page; times of BERT-base's shape are taken from the folder."""
    sizes = sorted({int(each["numbers"]["value_size"].values[0]) for each in found.values()})
    judged = {label: claims(each["numbers"], each["times"]) for label, each in found.items()}
    numbers = {label: each["numbers"] for label, each in found.items()}
    values = {
        "answer": _answer(numbers, list(judged.values())),
        "commands": "\n".join(_commands(numbers)),
        "shape": "\n\n".join(_shape(path) for path in sorted(folder.glob(f"{STEM}bert-base-shape_*_times.nc"))),
        "models": " and ".join(found),
        "short": _markdown(_in_short(numbers)),
        "many": sum(len(each[0].judged) for each in judged.values()),
        "counts": _markdown(_counts(list(judged.values()))),
        "size": " or ".join(map(str, sizes)),
        "bodies": "\n".join(_body(label, each["numbers"], each["times"]) for label, each in found.items()),
        "method": "\n\n".join(f"- {each}" for each in (words.LENSES, words.JUDGED, *words.METHOD)),
        "differences": "\n\n".join(f"**{label}.** {remarks.differences(each)}" for label, each in numbers.items()),
        "runs": "\n\n".join(_run(label, each["numbers"]) for label, each in found.items()),
    }
    return TEXT.format(**values).encode()


def drawn(found: dict[str, dict[str, xr.Dataset]]) -> dict[str, Figure]:
    """The pictures of the page, by their file's name."""
    return {
        f"{STEM}{label}_by_length.svg": pictures.by_length(lengths_shown(each["numbers"]), "tokens of the input")
        for label, each in found.items()
    }


def _body(label: str, numbers: xr.Dataset, times: xr.Dataset) -> str:
    judged = claims(numbers, times)
    by_task = tables.verdicts_by_task(judged)
    values = {
        "model": label,
        "answers": words.answers(numbers),
        "plain": "\n\n".join(filter(None, (_plain(numbers), words.unlearned(numbers), words.twins(numbers)))),
        "verdicts": _markdown(by_task),
        "sentences": "\n".join(f"- {each.text} {each.sentence}" for each in judged),
        "lengths": _markdown(by_length(numbers)),
        "picture": f"pictures/{STEM}{label}_by_length.svg",
        "survivors": remarks.survivors(judged),
        "norms": remarks.beside_norms(numbers),
        "by_length": remarks.by_length(numbers),
        "patterns": _markdown(_patterns(numbers)),
        "faults": paper.FAULTS,
        "scores": _markdown(_scores(numbers)),
        "times": _markdown(_times(times)),
        "device": times.attrs["device"],
        "tokens": times.attrs["tokens"],
    }
    return BODY.format(**values)


def _answer(numbers: dict[str, xr.Dataset], judged: list[list[Claim]]) -> str:
    """For how many pairs of a model and a task each thing loses weight, and for how many inputs nothing can."""
    lost = {}
    for thing, variable, place in THINGS:
        every = [each.sel(role="tuned", size="signed", length="all", **place) for each in numbers.values()]
        tasks = [one.sel(task=task) for one in every for task in one["task"].values]
        exactly = [words.shrinking(each, variable) in EXACTLY for each in tasks]
        lost[thing] = f"{sum(exactly)} of {len(exactly)}"
    every = [one.verdict for each in judged for claim in each if "alike" in claim.text for one in claim.judged]
    alike = sum(each in EXACTLY for each in every)
    few = [each["n"].sel(length="at most d").sum() / each["n"].sel(length="all").sum() for each in numbers.values()]
    return (
        f"Yes, but not what was published. Measured exactly on all inputs, [SEP] loses weight for {lost['[SEP]']} "
        f"pairs of a model and a task, punctuation for {lost['punctuation']}, and [CLS], which was said to keep its "
        f"weight, for {lost['[CLS]']} ({alike} of them by so little that it is still called alike). An input that has "
        "no more tokens than a head has value dimensions has nothing "
        "to lose, unless its values depend on each other: "
        f"{_range(100 * min(map(float, few)), 100 * max(map(float, few)))} of our inputs are so short, and what the "
        "published code shows there is padding."
    )


def _commands(numbers: dict[str, xr.Dataset]) -> list[str]:
    """What a user would type to tune and study as was done here, one line for tasks that were tuned alike."""
    groups: dict[str, list[str]] = {}
    for whole in numbers.values():
        for task in map(str, whole["task"].values):
            tuned = groups.setdefault(str(whole["tuning"].sel(task=task).values), [])
            tuned.extend([task] if task not in tuned else [])
    lines = []
    for tuning, tasks in groups.items():
        found = re.fullmatch(r"(\d+) epochs?, batch (\d+), learning rate ([\d.e-]+)(?:, warm-up ([\d.]+))?", tuning)
        assert found is not None, tuning
        names = ("epochs", "batch_size", "learning_rate", "warmup")
        asked = ",".join(f"{name}={each}" for name, each in zip(names, found.groups(), strict=True) if each)
        chosen = " ".join(f"--task {task.lower().replace('-', '')}" for task in tasks)
        lines.append(f"headscope study effective-attention:{asked} --data GLUE {chosen} --model MODEL -o out/")
    return lines


def _shape(path: Path) -> str:
    times = open_result(path)
    where = times.attrs["device"] if times.attrs["device"] != "cpu" else "one thread of a CPU (seconds of CPU time)"
    return f"On {where}, random weights, the same texts:\n\n{_markdown(_times(times))}"


def _in_short(numbers: dict[str, xr.Dataset]) -> pd.DataFrame:
    """On how many tasks [SEP], punctuation and [CLS] lose weight, by model and length."""
    lines = []
    for label, whole in numbers.items():
        size = int(whole["value_size"].values[0])
        for length, name in (("all", "all inputs"), ("at most d", f"at most {size} tokens"), ("more than d", "longer")):
            line = {"tuned model": f"{label}, {name}"}
            for thing, variable, place in THINGS:
                here = whole.sel(role="tuned", size="signed", length=length, **place)
                tasks = [here.sel(task=task) for task in whole["task"].values]
                found = [words.shrinking(each, variable) for each in tasks if int(each["n"]) > 1]
                counts = {kind: found.count(kind) for kind in KINDS if kind in found}
                line[thing] = ", ".join(f"{KINDS[kind]} {many}" for kind, many in counts.items())
            lines.append(line)
    return pd.DataFrame(lines).set_index("tuned model")


def _counts(judged: list[list[Claim]]) -> pd.DataFrame:
    """How many pairs of a model and a task each verdict has, claim by claim."""
    lines = []
    for same in zip(*judged, strict=True):
        verdicts = [one.verdict for each in same for one in each.judged]
        counts = {kind: verdicts.count(kind) or "" for kind in get_args(Verdict)}
        lines.append({"claim": same[0].text, **counts})
    return pd.DataFrame(lines).set_index("claim")


def _plain(numbers: xr.Dataset) -> str:
    """How long inputs must be for anything to differ, and what padding makes of shorter ones."""
    tuned = numbers.sel(role="tuned")
    size, many = int(numbers["value_size"].values[0]), int(numbers["n"].sel(length="at most d").sum())
    short = f"{many:,} of the inputs have at most {size} tokens" if many else f"No input has at most {size} tokens"
    if not many:
        return f"{short}, so that exact effective attention differs from attention in all of them."
    with_some = [
        task for task in map(str, numbers["task"].values) if int(numbers["n"].sel(task=task, length="at most d"))
    ]
    rows = tuned.sel(length="at most d", task=with_some, size="signed", token="sep")["weight"]
    moved = [100 * (rows.sel(lens=lens) / rows.sel(lens="standard") - 1) for lens in ("visible", "paper")]
    exact, published = (_range(float(each.min()), float(each.max())) for each in moved)
    return (
        f"{short}. There the mean weight on [SEP] changes by {exact} exactly, and by {published} in what the published "
        "code gives: all of the latter is padding."
    )


def _range(low: float, high: float) -> str:
    one, other = (f"{round(each)}".replace("-", "−") for each in (low, high))
    return f"{one} %" if one == other else f"{one} to {other} %"


def by_length(numbers: xr.Dataset) -> pd.DataFrame:
    """For each task and class of lengths whether [SEP], punctuation and [CLS] lose weight."""
    lines = []
    for task in map(str, numbers["task"].values):
        for thing, name, place in THINGS:
            line = {"task": f"{task}, {thing}"}
            for length in _distinct(numbers):
                here = numbers.sel(task=task, role="tuned", size="signed", length=length, **place)
                word = _lost(here, name)
                many = f" ({int(here['n']):,})" if thing == THINGS[0][0] else ""
                line[f"{length} tokens" if length[0].isdigit() else length] = word + many
            lines.append(line)
    return pd.DataFrame(lines).set_index("task")


def _distinct(numbers: xr.Dataset) -> list[str]:
    """The classes of lengths, without "at most d" where that is the first of the others."""
    every = [str(each) for each in numbers["length"].values]
    first = next(each for each in every if each[0].isdigit())
    same = first.endswith(f"–{int(numbers['value_size'].values[0])}")
    return [each for each in every if not (same and each == "at most d")]


def _lost(here: xr.Dataset, name: str) -> str:
    if int(here["n"]) < 2:
        return "–"
    short = {"only with padding": "padding", "does not hold": "no", "cannot be said": "?"}
    return short.get(words.shrinking(here, name), "exact")


def _patterns(numbers: xr.Dataset) -> pd.DataFrame:
    lines = []
    frame = tables.patterns(numbers, "tuned")
    theirs = tables.their_patterns([str(each) for each in numbers["task"].values])
    for name in frame.index:
        if name[1] not in SHOWN:
            continue
        line = {"attention": ", ".join(name)}
        for letter in paper.LETTERS:
            ours = "{:.1f} [{:.1f}, {:.1f}]".format(*(frame.loc[name, f"{letter}{end}"] for end in tables.ENDS))
            beside = f" paper {theirs.loc[name, letter]}" if theirs is not None and name in theirs.index else ""
            line[letter] = ours + beside
        lines.append(line)
    return pd.DataFrame(lines).set_index("attention")


def _scores(numbers: xr.Dataset) -> pd.DataFrame:
    frame = tables.scores(numbers)
    for name in ("score", "change"):
        frame[name] = [_three(frame, place, name) for place in range(len(frame))]
    for name in frame.columns.intersection(["largest change of an output", "of these, largest lead"]):
        frame[name] = [f"{each:.1e}" if each == each else "" for each in frame[name]]
    for name in frame.columns.intersection(["predictions changed"]):
        frame[name] = ["" if pd.isna(each) else f"{each:,}" for each in frame[name]]
    kept = [name for name in frame.columns if not name.endswith(("_low", "_high"))]
    return _flat(frame[kept], "attention")


def _times(times: xr.Dataset) -> pd.DataFrame:
    frame = tables.times(times)
    names = [name for name in frame.columns if not name.endswith(("_low", "_high"))]
    for name in names[1:]:
        frame[name] = [_three(frame, place, name, ".2f") for place in range(len(frame))]
    frame[names[0]] = [f"{each:.4f}" for each in frame[names[0]]]
    theirs = paper.table_3()["ratio"]
    frame["paper"] = [f"{theirs[task]:.2f}" if task in theirs else "" for task, _ in frame.index]
    return _flat(frame[[*names, "paper"]], "task, inputs at a time")


def _flat(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """What names a row in one column."""
    return frame.set_axis(pd.Index([", ".join(map(str, each)) for each in frame.index], name=name))


def _three(frame: pd.DataFrame, place: int, name: str, form: str = ".3f") -> str:
    value, low, high = (float(frame[f"{name}{end}"].iloc[place]) for end in tables.ENDS)
    return f"{value:{form}} [{low:{form}}, {high:{form}}]" if value == value else ""


def _run(label: str, numbers: xr.Dataset) -> str:
    facts, few = read_provenance(numbers), reduced(numbers)
    sources = " ".join(
        f"{task}: {words.origin(numbers, task)}; learned from {int(numbers['train'].sel(task=task)):,}, "
        f"{int(numbers['n'].sel(task=task, length='all')):,} studied."
        for task in map(str, numbers["task"].values)
    )
    said = f" **Reduced**: {few}." if few else ""
    return (
        f"**{label}** (weights {facts['weights_hash'][:12]}): {facts['command']}, on {facts['device']}. {sources}{said}"
    )


def _markdown(frame: pd.DataFrame) -> str:
    heads = [str(frame.index.name), *map(str, frame.columns)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lines += [
        f"| {' | '.join([str(name), *map(str, row)])} |" for name, row in zip(frame.index, frame.values, strict=True)
    ]
    return "\n".join(lines)


def made() -> list[tuple[Path, bytes]]:
    """The page and its place, where there are results."""
    known = results()
    return [(DOCS / "effective_attention.md", page(known))] if known else []
