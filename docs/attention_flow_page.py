"""The page docs/attention_flow.md and its pictures, from docs/results/attention_flow_*.nc."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Picture, Section, Table
from headscope.experiments.claims import CODE, HOLDS, MOOT, JudgedClaim, list_kinds
from headscope.experiments.report import THRESHOLDS, describe_learned, describe_origin, describe_unlearned
from headscope.experiments.sentences import describe_tests, describe_verdicts, verdicts_by_task
from headscope.experiments.summary import list_tasks
from headscope.experiments.thresholds import draw_thresholds, threshold_table
from headscope.reporting.frames import Quantity, to_frame
from headscope.reporting.markdown import table_to_markdown, to_markdown
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result
from headscope.studies.attention_flow import report
from headscope.studies.attention_flow.claims import judge_models
from headscope.studies.attention_flow.paper import ACCURACY

DOCS = Path(__file__).parent
STEM = "attention_flow_"
PARTS = ("shown", "maps", "pronouns", "referents", "accuracy")
DRAWN = (
    "correlation_by_layer",
    "inner",
    "focus",
    "words",
    "saturation",
    "figure_1",
    "figure_2",
    "figure_3",
    "figure_4",
)
KINDS = list_kinds(CODE)
SCALED = f"{STEM}scaled_thresholds.svg"
NAMES = {"paper": "the paper's own model, trained from scratch"}
TEXT = """# Do attention rollout and attention flow say which tokens matter?

*Made by `docs/make.py` from `docs/results/attention_flow_*.nc`; no number here is typed by hand.*

Abnar & Zuidema (2020) follow attention through the layers back to the input: rollout multiplies the layers, flow is the
maximum flow through them. They find that both agree better than raw attention with how important tokens are: for the
number of a verb (their Tables 1 and 2) and, slightly, for sentiment (Table 3). This page repeats their tables with
{models}.

## In short

{answer}

{summary}

The paper's claims, judged for {pairs} pairs of a trained model and a task; each seed is one. {tests}

{counts}

```
headscope study attention-flow                                                          # the small default, templates
headscope study attention-flow --dev my.jsonl --train more.jsonl --seeds 3 -o out/      # your own model and data
headscope study attention-flow --data GLUE --tasks sst2 --model bert-base-uncased -o out/    # Table 3
```

{bodies}
## How to read it

{method}

{thresholds}

{scaled}

## Where the paper's code departs from its mathematics

{code}

{runs}
"""
ANSWER = (
    "In the last layer rollout correlates better than raw attention with blank-out for {rollout} and flow for {flow} "
    "of {pairs} models and tasks on which that is claimed; with input gradients for {rollout_gradient} and "
    "{flow_gradient}. Flow, which the paper calls more reliable than rollout, is better than it for {over} (blank-out) "
    "and {over_gradient} (gradients). {saturation}"
)
SATURATED = "In the last layer of {label} {bound} of flow's pairs are at their bound."
REFERENTS = "In {share:.0f} % of the texts of {name} the form of the pronoun that was masked is the more probable one."
MASCULINE = "In Winogender the masculine form was masked; without it the text is the same for all genders."
CAPTION = "Share of texts in which the masked pronoun gives its referent more weight than the other name, last layer."
COUNTED = {
    "rollout": "Rollout correlates better with blank-out than raw",
    "flow": "Flow correlates better with blank-out than raw",
    "rollout_gradient": "Rollout correlates better with input gradients than raw",
    "flow_gradient": "Flow correlates better with input gradients than raw",
    "over": "Flow correlates better with blank-out than rollout",
    "over_gradient": "Flow correlates better with input gradients than rollout",
}


def results(folder: Path = DOCS / "results") -> dict[str, dict[str, xr.Dataset]]:
    """Return the results by model."""
    models = {}
    for path in sorted(folder.glob(f"{STEM}*.nc")):
        if not path.stem.endswith(tuple(f"_{part}" for part in PARTS)):
            files = {part: path.with_name(f"{path.stem}_{part}.nc") for part in PARTS}
            more = {part: open_result(file) for part, file in files.items() if file.is_file()}
            models[path.stem.removeprefix(STEM)] = {"numbers": open_result(path), **more}
    return models


def page(models: Mapping[str, Mapping[str, xr.Dataset]]) -> bytes:
    """Return the page."""
    numbers = {label: data["numbers"] for label, data in models.items()}
    judged = judge_models(numbers)
    every = [claim for claims in judged.values() for claim in claims]
    text = TEXT.format(
        models=" and ".join(NAMES.get(label, label) for label in models),
        answer=_answer(numbers, judged),
        summary=_summarise(judged),
        pairs=sum(len(list_tasks(data)) for data in numbers.values()),
        tests=describe_tests(every),
        counts=_grid(_count(judged)),
        thresholds=_grid(threshold_table(every)),
        scaled=f"![{THRESHOLDS['scaled_thresholds'].rstrip('.')}](pictures/{SCALED})",
        bodies="\n".join(to_markdown(_body(label, data, judged[label]), _pictures(label), level=2)
                         for label, data in models.items()),
        method="\n\n".join(f"- {text}" for text in (report.JUDGED, report.TEXTS["saturation"],
                                                    *report.TEXTS["method"].split("\n\n"))),
        code=report.TEXTS["code"],
        runs="\n\n".join(_run(label, data) for label, data in numbers.items()),
    )  # fmt: skip
    return text.encode()


def drawn(models: Mapping[str, Mapping[str, xr.Dataset]]) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    judged = judge_models({label: data["numbers"] for label, data in models.items()})
    figures = {SCALED: draw_thresholds([claim for claims in judged.values() for claim in claims])} if judged else {}
    for label, data in models.items():
        names = _pictures(label)
        figures |= {Path(names[part.name]).name: part.figure for part in _parts(data).values()
                    if isinstance(part, Picture) and part.name in names}  # fmt: skip
    return figures


def made() -> list[tuple[Path, bytes]]:
    """Return the page and its path, where there are results."""
    known = results()
    return [(DOCS / "attention_flow.md", page(known))] if known else []


def _pictures(label: str) -> dict[str, str]:
    return {name: f"pictures/{STEM}{label}_{name}.svg" for name in DRAWN}


def _parts(data: Mapping[str, xr.Dataset]) -> dict[str, Part]:
    whole = report.document(data)
    return {part.name: part for section in whole.sections for part in section.parts if not isinstance(part, Paragraph)}


def _body(label: str, data: Mapping[str, xr.Dataset], judged: list[JudgedClaim]) -> Document:
    """Return the part of the page on one model, from the parts of the study's own report."""
    numbers, parts = data["numbers"], _parts(data)
    by_task = parts.get("verdicts_by_task", parts["verdicts"])  # corrected for this model alone
    lead = " ".join(filter(None, (describe_learned(numbers), describe_unlearned(numbers))))
    sentences = "\n".join(f"- {claim.text} {describe_verdicts(claim)}" for claim in judged)
    pronouns = [*report.report_pronouns(data.get("pronouns")), *_report_referents(data.get("referents"))]
    tables = [parts[name] for name in ("table_1", "table_2", "table_3") if name in parts]
    replaced = [part for section in report.document(data).sections if section.title == "Examples"
                for part in section.parts]  # fmt: skip
    sections: dict[str, list[Part]] = {
        "What holds": [replace(by_task, frame=verdicts_by_task(judged)), Paragraph(sentences)],
        "Accuracy": [
            *(parts[name] for name in ("accuracy", "accuracy_by_attractors") if name in parts),
            *_report_accuracy(data.get("accuracy")),
        ],
        "Correlation with importances": [*tables, parts["correlation_by_layer"]],
        "Only inputs predicted correctly": [parts[name] for name in parts if name.endswith("_correct")],
        "Graphs of other weights": [parts["inner"], parts["scores"], parts["formulas"]],
        "Examples": replaced,
        "A masked pronoun": pronouns,
        "Where the weight is": [parts[name] for name in ("focus", "words", "lift") if name in parts],
        "Saturation of flow": [Paragraph(report.describe_saturation(numbers)), parts["saturation"], parts["at_bound"]],
    }
    return Document(NAMES.get(label, label), lead, [Section(*section) for section in sections.items() if section[1]])


def _report_accuracy(scores: xr.Dataset | None) -> list[Part]:
    """Return the accuracy on all test sentences by seed and attractors, beside the most common label."""
    if scores is None:
        return []
    columns = [
        Quantity("accuracy", "accuracy"),
        Quantity("most common label", "majority"),
        Quantity("sentences", "n", whole=True),
    ]
    frame = to_frame(scores, {"seed": "seed", "attractors": "attractors"}, columns)
    caption = "Accuracy on all test sentences of agreement, beside the most common label; the paper's is {:.2f}."
    n = f"{int(scores['n'].sel(attractors='all')[0]):,} sentences"
    return [Table("accuracy_all", caption.format(ACCURACY), frame, n)]


def _report_referents(counts: xr.Dataset | None) -> list[Part]:
    """Return in how many texts the masked pronoun attends more to its referent than to the other name."""
    if counts is None:
        return []
    last = counts.isel(layer=-1)
    frame = to_frame(last, {"set": "texts", "lens": "attention"}, [Quantity("share of texts", "referent")])
    parts = [f"{name} {int(last['n'].sel(set=name)):,}" for name in map(str, last["set"].values)]
    filled = [REFERENTS.format(name=name, share=100 * float(last["filled"].sel(set=name)))
              for name in map(str, last["set"].values)]  # fmt: skip
    return [Table("referents", CAPTION, frame, f"{', '.join(parts)} texts"), Paragraph(" ".join([*filled, MASCULINE]))]


def _grid(frame: pd.DataFrame) -> str:
    return table_to_markdown(Table("table", "", frame, ""))


def _answer(numbers: Mapping[str, xr.Dataset], judged: Mapping[str, list[JudgedClaim]]) -> str:
    """Return how often the main claims hold, and how far flow saturates."""
    every = [claim for claims in judged.values() for claim in claims]
    values, pairs = {}, 0
    for name, text in COUNTED.items():
        tasks = [task for claim in every if claim.text.startswith(text) for task in claim.tasks if task.verdict != MOOT]
        values[name], pairs = sum(task.exact for task in tasks), len(tasks)
    shares = {
        label: 100 * data["at_bound"].sel(subset="all", lens="flow").isel(layer=-1) for label, data in numbers.items()
    }
    saturated = [
        SATURATED.format(label=NAMES.get(label, label), bound=_range(share)) for label, share in shares.items()
    ]
    return ANSWER.format(**values, pairs=pairs, saturation=" ".join(saturated))


def _range(share: xr.DataArray) -> str:
    low, high = (f"{float(end):.0f}" for end in (share.min(), share.max()))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _summarise(judged: Mapping[str, list[JudgedClaim]]) -> str:
    """Return which claims hold wherever they apply, which hold nowhere, and which depend on the model or the seed."""
    kinds: dict[str, list[str]] = {"holds everywhere": [], "differs": [], "holds nowhere": []}
    for text, verdicts in _list_verdicts(judged).items():
        found = {verdict == HOLDS for verdict in verdicts if verdict != MOOT}
        kinds["differs" if len(found) == 2 else "holds everywhere" if True in found else "holds nowhere"].append(text)
    titles = {
        "holds everywhere": "**Holds for every model, task and seed it is judged on:**",
        "differs": "**Depends on the model, the task or the seed:**",
        "holds nowhere": "**Holds nowhere:**",
    }
    return "\n\n".join(f"{title} {' '.join(kinds[kind])}" for kind, title in titles.items() if kinds[kind])


def _list_verdicts(judged: Mapping[str, list[JudgedClaim]]) -> dict[str, list[str]]:
    """Return the verdicts on every claim, of all models and tasks."""
    verdicts: dict[str, list[str]] = {}
    for claims in judged.values():
        for claim in claims:
            verdicts.setdefault(claim.text, []).extend(task.verdict for task in claim.tasks)
    return verdicts


def _count(judged: Mapping[str, list[JudgedClaim]]) -> pd.DataFrame:
    """Return how many pairs of a model and a task have which verdict, claim by claim."""
    verdicts = _list_verdicts(judged)
    rows = [{"claim": text} | {kind: str(each.count(kind) or "") for kind in KINDS} for text, each in verdicts.items()]
    return pd.DataFrame(rows).set_index("claim")


def _run(label: str, numbers: xr.Dataset) -> str:
    facts = read_provenance(numbers)
    sources = " ".join(
        f"{task}: {describe_origin(numbers, task)}; learned from {int(numbers['train'].sel(task=task)):,}, "
        f"{int(numbers['n'].sel(task=task)):,} of {int(numbers['whole_dev'].sel(task=task)):,} studied."
        for task in list_tasks(numbers)
    )
    return f"**{label}** (weights {facts['weights_hash'][:12]}): {facts['command']}, on {facts['device']}. {sources}"
