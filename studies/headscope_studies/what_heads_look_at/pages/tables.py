"""The page of every table behind docs/what_heads_look_at.md; and those of probes."""

from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Document, Picture, Section
from headscope.core.provenance import read_provenance
from headscope.experiments.claims import HOLDS, MOOT, judge
from headscope.experiments.pages.tables import to_grid
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.rendering.sentences import describe_tests
from headscope.experiments.template import fill_template, format_interval, join_lines
from headscope.experiments.thresholds import threshold_table
from headscope.plotting import heatmap, scales, theme
from headscope.plotting.facets import interval_facets
from headscope.plotting.panels import new_grid
from headscope.reporting.markdown import to_markdown
from headscope_studies.what_heads_look_at import paper, probe_numbers, report
from headscope_studies.what_heads_look_at.no_op import GROUPS
from headscope_studies.what_heads_look_at.pages.facts import (
    BESIDE_RAW,
    STEM,
    HeadFacts,
    answer_frame,
    count_frame,
    count_layers,
    find_equal_layers,
    verdict_frame,
)
from headscope_studies.what_heads_look_at.surface_tables import TITLES

FOLDER = Path(__file__).parent

DRAWN = ("layers", "depth", "depth_special", "entropy", "clusters", "behaviour")
"""The figures of the study's report that are on this page."""


def page(facts: HeadFacts) -> bytes:
    """Return the page."""
    text = fill_template(
        FOLDER / "tables.md",
        judged=report.TEXTS["judged"],
        tests=describe_tests(facts.every),
        thresholds=to_grid(threshold_table(facts.every)),
        parts=to_grid(count_frame(facts)),
        surface=to_grid(verdict_frame(facts, "surface")),
        no_op=to_grid(verdict_frame(facts, "no-op").T.rename_axis("model")),
        probes=[to_grid(verdict_frame(facts, topic)) for topic in ("trees", "coreference", "syntax")],
        bodies=[to_markdown(_body(facts, label), _pictures(label), level=2) for label in facts.models],
        runs={label: read_provenance(data) for label, data in facts.surface.items()},
        stem=STEM,
        gradients={label: (read_provenance(data), data) for label, data in facts.gradients.items()},
        examples={label: read_provenance(data) for label, data in facts.examples.items()},
        answers=to_grid(answer_frame(facts)),
        layers={measure: count_layers(facts, measure) for measure in BESIDE_RAW if measure != "gradient"},
        equal_layers=find_equal_layers(facts),
        relations=to_grid(relation_frame(facts)),
        variants=to_grid(variant_frame(facts)),
        uas=to_grid(uas_frame(facts)),
        clusters={label: data.sel(lens="raw") for label, data in facts.clusters.items()},
    )
    return join_lines(text).encode()


def _body(facts: HeadFacts, label: str) -> Document:
    """Return the tables of one model: what its tokens count, lists of heads, and the published way to count."""
    results = {"numbers": facts.surface, "no_op": facts.no_op, "clusters": facts.clusters}
    whole = report.document({name: by_model[label] for name, by_model in results.items()})
    sections = [
        Section(section.title, [part for part in section.parts if not isinstance(part, Picture) or part.name in DRAWN])
        for section in whole.sections
        if section.title in report.MEASURED
    ]
    return Document(label, "", sections, ())


def _pictures(label: str) -> dict[str, str]:
    return {name: f"pictures/{STEM}{label}_{name}.svg" for name in DRAWN}


def draw_pictures(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    figures = {f"{STEM}{label}_gradients.svg": draw_gradients(data) for label, data in facts.gradients.items()}
    figures |= {f"{STEM}{label}_examples.svg": draw_examples(data) for label, data in facts.examples.items()}
    for label in facts.models:
        names = _pictures(label)
        for part in [part for section in _body(facts, label).sections for part in section.parts]:
            if isinstance(part, Picture) and part.name in names:
                figures[Path(names[part.name]).name] = part.figure
    return figures


def draw_gradients(data: xr.Dataset) -> Figure:
    """Draw the mean gradient with respect to the attention to one token of each type, by layer."""
    names = {"sep": GROUPS["sep"], "period_comma": GROUPS["period_comma"], "other_text": "other tokens"}
    sizes = select_interval(data, "size_layer", 1e3).sel(type=list(names)).assign_coords(type=list(names.values()))
    panels = {"masked language model": sizes.rename(type="lens")}
    return interval_facets({"|∂L/∂α| × 10³": panels}, x="layer", label="layer", lines=True)


@theme.apply()
def draw_examples(data: xr.Dataset) -> Figure:
    """Draw the maps of single heads on one input."""
    pairs = zip(data["kind"].values.tolist(), data["name"].values.tolist(), strict=True)
    names = [f"{name}: {TITLES.get(kind, kind)}" for kind, name in pairs]
    scale = scales.weight_scale(data["weights"].values, signed=False)
    across = 2
    grid = new_grid((theme.PAGE[0], 3.6 * -(-len(names) // across)), len(names), across)
    for panel, kind in zip(grid.panels, data["kind"].values, strict=True):
        part = data.sel(kind=kind, drop=True)
        heatmap.draw_cells(panel, part["weights"].values, scale)
        heatmap.label_axes(panel, part, 0.12)
    grid.name_panels(names)
    grid.add_color_bar(scale, "weight")
    return grid.figure.figure


def relation_frame(facts: HeadFacts) -> pd.DataFrame:
    """Return for every relation the best head beside the best offset, a column for each model and treebank."""
    rows: dict[str, dict[str, str]] = {}
    for label, treebank in facts.treebanks:
        (judged,) = facts.judged[f"{label}, {treebank}"]["syntax"]
        holds = {task.task: task.verdict == HOLDS for task in judged.tasks}
        numbers = probe_numbers.number_relations(facts.trees(label, treebank)["dependency"])
        for name in map(str, numbers["task"].values):
            row = numbers.sel(task=name)
            text = f"{format_interval(row, 'head', '.0f', 100)} ({100 * float(row['offset']):.0f})"
            cell = f"**{text}**" if holds[name] else text
            rows.setdefault(name, {})[f"{label}, {treebank}"] = f"{cell}, n = {int(row['n']):,}"
    frame = pd.DataFrame.from_dict(rows, "index").rename_axis("relation").fillna("–")
    frame["paper"] = [f"{paper.RELATIONS[name]:.0f}" if name in paper.RELATIONS else "–" for name in frame.index]
    return frame


def uas_frame(facts: HeadFacts) -> pd.DataFrame:
    """Return the UAS of the best head, the trained probes and their baselines, and of the control task."""
    rows: dict[str, dict[str, str]] = {}
    for label, treebank in facts.treebanks:
        for name, data in facts.trees(label, treebank).items():
            whole = data.sel(relation=probe_numbers.ALL)
            for task, predictor in product(map(str, whole["task"].values), map(str, whole["predictor"].values)):
                own = predictor in ("head", "probe", "distances", "random_weights")
                if own or (name == "dependency" and task != "control"):
                    uas = format_interval(whole, "accuracy", ".1f", 100, task=task, predictor=predictor)
                    rows.setdefault(_title_uas(name, task, predictor), {})[f"{label}, {treebank}"] = uas
    frame = pd.DataFrame.from_dict(rows, "index").rename_axis("probe").fillna("–")
    return frame[(frame != "–").any(axis=1)]


def _title_uas(name: str, task: str, predictor: str) -> str:
    own = "one head" if name == "dependency" else name
    titles = {"head": own, "probe": own, "random_weights": f"{own}, random weights"}
    titles["distances"] = "words and distances" if name == "attention_and_words" else "distances"
    title = titles.get(predictor, predictor).replace("_", " ")
    return f"{title}, control" if task == "control" else title


def count_better(facts: HeadFacts) -> list[tuple[str, str, int, int]]:
    """Return by model and treebank for how many relations some head is better than the best offset, and of how many."""
    rows = []
    for label, treebank in facts.treebanks:
        (judged,) = facts.judged[f"{label}, {treebank}"]["syntax"]
        verdicts = [task.verdict for task in judged.tasks if task.verdict != MOOT]
        rows.append((label, treebank, verdicts.count(HOLDS), len(verdicts)))
    return rows


def variant_frame(facts: HeadFacts) -> pd.DataFrame:
    """Return how many relations have a better head, with other halves of the documents and other attention."""
    rows = {}
    for label, treebank in facts.treebanks:
        (judged,) = facts.judged[f"{label}, {treebank}"]["syntax"]
        data, verdicts, row = facts.probes["dependency"], {}, {}
        kinds = [name for name in map(str, data["attention"].values) if name != "raw"]
        divisions = [("raw", int(seed)) for seed in data["seed"].values]
        for attention, seed in [*divisions, *((name, 0) for name in kinds)]:
            parts = facts.trees(label, treebank, attention, seed)
            if "dependency" not in parts:
                continue
            again = judge(judged.claim, probe_numbers.number_relations(parts["dependency"]), judged.tests)
            verdicts[attention, seed] = {task.task: task.verdict for task in again.tasks}
            title = f"raw, halves {seed}" if attention == "raw" else attention
            row[title] = f"{list(verdicts[attention, seed].values()).count(HOLDS)} of {len(again.tasks)}"
        by_division = [verdicts[division] for division in divisions]
        held = [[by_name.get(name) for by_name in by_division].count(HOLDS) for name in by_division[0]]
        row["in all halves"] = str(sum(count == len(divisions) for count in held))
        row["in some, not all"] = str(sum(0 < count < len(divisions) for count in held))
        rows[f"{label}, {treebank}"] = row
    return pd.DataFrame.from_dict(rows, "index").rename_axis("model, treebank").fillna("–")


def list_antecedents(facts: HeadFacts) -> list[dict[str, Any]]:
    """Return how many antecedents the chosen head of each model and the baselines find in every set, in percent."""
    rows = []
    for name in map(str, next(iter(facts.coreference.values()))["data"].values):
        raw = {
            label: data["accuracy"].sel(data=name, kind="all", lens="raw").isel(task=0)
            for label, data in facts.coreference.items()
        }
        heads = {label: 100 * float(accuracy.sel(predictor="head")) for label, accuracy in raw.items()}
        last = list(raw.values())[-1]
        baselines = {key: 100 * float(last.sel(predictor=key)) for key in ("rules", "head_match", "nearest")}
        rows.append({"data": name, "heads": heads, **baselines})
    return rows
