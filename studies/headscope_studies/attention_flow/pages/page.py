"""The pages docs/attention_flow.md and docs/tables.md with their pictures."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import format_signed
from headscope.core.provenance import read_provenance
from headscope.experiments.claims import MOOT, JudgedClaim
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, to_grid
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.seeds import combine_seeds
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import fill_template
from headscope.plotting import theme
from headscope.plotting.facets import interval_facets
from headscope.plotting.verdict_grid import verdict_grid
from headscope_studies.attention_flow import paper
from headscope_studies.attention_flow.claims import OF
from headscope_studies.attention_flow.pages import tables
from headscope_studies.attention_flow.pages.facts import (
    NAMES,
    PAPER,
    SCRIPT_END,
    FlowFacts,
    count_inputs_by_task,
    list_changes_if_correct,
    list_moves,
    list_reports,
    list_training_sizes,
    list_tuned_scores,
    measure_attractors,
    read_facts,
)
from headscope_studies.attention_flow.published import STEPS
from headscope_studies.attention_flow.report import draw_three, measure_saturation

FOLDER = Path(__file__).parent
PRINTED = {
    ("blank-out", False): (paper.BLANK_OUT, paper.LAYERS),
    ("gradient", False): (paper.GRADIENT, paper.LAYERS),
    ("gradient", True): (paper.SST_GRADIENT, paper.SST_LAYERS),
}
"""The paper's tables by the kind of importance, and whether they are on SST-2."""

TITLES = {PAPER: "its architecture, trained again", "all-MiniLM-L6-v2": "all-MiniLM-L6-v2, tuned"}
"""How models are called in the first table."""


def page(facts: FlowFacts) -> bytes:
    """Return the page."""
    return fill_template(
        FOLDER / "page.md",
        facts=facts,
        published_accuracy=paper.ACCURACY,
        first_numbers=to_grid(tabulate_first_numbers(facts)),
        input_counts=count_inputs_by_task(facts),
        tuned_scores=list_tuned_scores(facts),
        logged=list(paper.LOGGED.values()),
        printed={lens: means for lens, (means, _) in paper.GRADIENT.items()},
        printed_sst={lens: means[-1] for lens, (means, _) in paper.SST_GRADIENT.items()},
        show_ends=show_ends,
        steps=list(STEPS),
        trained_on=list_training_sizes(facts),
        accuracies={label: results["accuracy"] for label, results in facts.more.items() if "accuracy" in results},
        appendices=[results["appendix"] for results in facts.more.values() if "appendix" in results],
        count_inputs=lambda data: read_provenance(data)["n"],
        measure_attractors=measure_attractors,
        show_step=show_step,
        changes_if_correct=list_changes_if_correct(facts),
        moves=list_moves(facts),
    ).encode()


def show_ends(data: xr.Dataset, score: str, lens: str) -> str:
    """Return the correlations of the first and the last layer, such as 0.67, 0.05."""
    values = data["correlation"].sel(importance=score, lens=lens).isel(layer=[0, -1]).mean("seed").values
    return ", ".join(format_signed(float(value), ".2f") for value in values)


def show_step(data: xr.Dataset, lens: str, step: str) -> str:
    """Return the correlation in the last layer after a step towards the authors' script, the mean over seeds."""
    values = data["step_correlation"].isel(task=0, layer=-1).sel(subset="all", step=step, lens=lens)
    return format_signed(float(values.mean("seed")), ".2f")


def tabulate_first_numbers(facts: FlowFacts) -> pd.DataFrame:
    """Return the numbers of the first screen: of the paper, and of every model."""
    titles = ("verb, blank-out", "verb, gradients", f"{paper.SST}, gradients")
    verb, gradients, sentiment = (f"{title}: raw → flow" for title in titles)
    same = "tokens that get the same flow from every position"
    tables = (paper.BLANK_OUT, paper.GRADIENT, paper.SST_GRADIENT)
    printed = [_show_gain({lens: rows[lens][0][-1] for lens in paper.SHOWN}) for rows in tables]
    columns = {"the paper": dict(zip((verb, gradients, sentiment, same), (*printed, "not measured"), strict=True))}
    for label, data in facts.models.items():
        task = next(task for task in list_tasks(data) if task != paper.SST)  # natural sentences are first
        saturated = measure_saturation(data)["same_for_sources"].sel(task=task)
        columns[TITLES.get(label, label)] = {
            verb: _show_gain(_select_last(data, task, "blank-out")),
            gradients: _show_gain(_select_last(data, task, "gradient")),
            sentiment: _show_sentiment(facts, label),
            same: f"{float(saturated):.0f} %",
        }
    return pd.DataFrame(columns).rename_axis("last layer")


def _show_sentiment(facts: FlowFacts, label: str) -> str:
    """Return raw attention and flow on SST-2 by the authors' script and by their text, as far as they were measured."""
    found = []
    if label in facts.scripts:
        data = combine_seeds(facts.scripts[label])
        found.append(f"{_show_gain(_select_last(data, paper.SCRIPT, 'gradient'))} by their script")
    if paper.SST in list_tasks(facts.models[label]):
        found.append(f"{_show_gain(_select_last(facts.models[label], paper.SST, 'gradient'))} by their text")
    return "; ".join(found) or "–"


def _select_last(data: xr.Dataset, task: str, score: str) -> dict[str, float]:
    """Return the correlations of the last layer by lens."""
    last = data["correlation"].sel(task=task, subset="all", importance=score, lens=list(paper.SHOWN)).isel(layer=-1)
    return dict(zip(paper.SHOWN, map(float, last), strict=True))


def _show_gain(values: Mapping[str, float]) -> str:
    return " → ".join(format_signed(values[lens], ".2f") for lens in ("raw", "flow"))


def draw_grid(facts: FlowFacts, width: float = 6.9) -> Figure:
    """Draw the verdict on every claim for every model and task, and by the authors' script."""
    columns: dict[tuple[str, str], list[str]] = {}
    for label, data in facts.models.items():
        found = [(label, task) for task in list_tasks(data)] + [(f"{label}{SCRIPT_END}", paper.SCRIPT)]
        for name, task in found:
            verdicts = {claim.text: claim for claim in facts.judged_all.get(name, ())}
            cells = [_find_verdict(verdicts.get(claim.text), task) for claim in facts.claims]
            if name in facts.judged_all:
                columns[NAMES.get(label, label), task] = cells
    texts = [claim.text.rstrip(".") for claim in facts.claims]
    return verdict_grid(pd.DataFrame(columns, index=texts), facts.kinds, width=width)


def _find_verdict(claim: JudgedClaim | None, task: str) -> str:
    """Return the verdict on a claim for a task; it does not apply where it was not judged."""
    found = [] if claim is None else [judged.verdict for judged in claim.tasks if judged.task == task]
    return found[0] if found else MOOT


def draw_correlations(facts: FlowFacts) -> Figure:
    """Draw the correlations of raw attention, rollout and flow by layer, beside those that the paper prints."""
    pairs = {name: data.sel(lens=list(paper.SHOWN)) for name, data in facts.every_pair.items()}
    sentiment = {name: paper.SST in name for name in pairs}
    rows = {}
    for score in ("blank-out", "gradient"):
        row = {}
        for sst in (False, True):
            own = [name for name in pairs if sentiment[name] == sst]
            if own:
                row[f"printed, {paper.SST if sst else 'verb'}"] = _printed(score, sst=sst)
                row |= {name: select_interval(pairs[name].sel(importance=score), "correlation") for name in own}
            if sst:
                row |= {
                    f"{NAMES.get(label, label)}, {paper.SCRIPT}": _script(data, score)
                    for label, data in facts.scripts.items()
                }
        rows[OF[score]] = row
    rows = {score: {_shorten(name): data for name, data in row.items()} for score, row in rows.items()}
    figure = interval_facets(rows, x="layer", label="layer", lines=True)
    empty = [at for at, data in enumerate(rows[OF["blank-out"]].values()) if bool(data["value"].isnull().all())]
    for at in empty:
        panel = figure.axes[at]
        style: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "fontsize": theme.text_size("note"),
            "color": theme.quiet,
        }
        panel.text(0.5, 0.5, "none", transform=panel.transAxes, **style)
    return figure


def _printed(score: str, *, sst: bool) -> xr.Dataset:
    """Return a table of the paper as it is drawn; all NaN where it prints none."""
    rows, layers = PRINTED.get((score, sst), ({}, paper.SST_LAYERS))
    nothing = np.full(len(layers), np.nan)
    values = [rows[lens][0] if lens in rows else nothing for lens in paper.SHOWN]
    value = xr.DataArray(values, {"lens": list(paper.SHOWN), "layer": list(layers)}, ("lens", "layer"))
    return xr.Dataset({"value": value, "low": value, "high": value})


def _shorten(name: str) -> str:
    """Return the name of a pair of a model and a task as a title of a narrow panel."""
    return name.replace("all-MiniLM-L6-v2", "MiniLM").replace(", their script", ", script")


def _script(data: xr.Dataset, score: str) -> xr.Dataset:
    """Return the correlations of the authors' script as they are drawn; all NaN for blank-out, which it has not."""
    whole = combine_seeds(data).isel(task=0).sel(subset="all", lens=list(paper.SHOWN), importance="gradient")
    drawn = select_interval(whole, "correlation")
    return drawn if score == "gradient" else drawn * np.nan


def draw_saturation(facts: FlowFacts) -> Figure:
    """Draw how far flow is saturated by layer, a line for each pair of a model and a task."""
    pairs = facts.every_pair
    titles = {"pairs at the bound": "at_bound", "same from every position": "same_for_sources"}
    columns = {}
    for title, name in titles.items():
        flows = [data.sel(lens="flow", drop=True) for data in pairs.values()]
        lines = [select_interval(flow, name).reset_coords(drop=True) for flow in flows]
        columns[title] = xr.concat(lines, "lens").assign_coords(lens=list(pairs))
    return interval_facets({"share": columns}, x="layer", label="layer", lines=True)


def draw_maps(facts: FlowFacts) -> Figure:
    """Draw raw attention, rollout and flow of one sentence in the first and the last layer."""
    maps = next(results["maps"] for results in facts.more.values() if "maps" in results)  # the paper's model is first
    return draw_three(maps, layers=(0, maps.sizes["layer"] - 1))


PICTURES = {
    "verdicts": draw_grid,
    "correlations": draw_correlations,
    "saturated": draw_saturation,
    "maps": draw_maps,
}


def draw_pictures(facts: FlowFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    return {f"{facts.stem}{name}.svg": draw_picture(facts) for name, draw_picture in PICTURES.items()}


def draw_table_pictures(facts: FlowFacts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return {**draw_scaled(facts), **tables.draw_pictures(facts)}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "attention_flow.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "attention_flow_tables.md", tables.page(facts)


PAGES = StudyPages({"attention_flow": write_page}, {"attention_flow_tables": write_tables}, list_reports)
