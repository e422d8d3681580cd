"""The pages docs/attention_flow.md and docs/tables.md with their pictures."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, draw_verdicts
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.template import fill_template
from headscope.plotting import theme
from headscope.plotting.draw import draw
from headscope.plotting.facets import interval_facets
from headscope_studies.attention_flow import paper
from headscope_studies.attention_flow.claims import OF
from headscope_studies.attention_flow.pages import tables
from headscope_studies.attention_flow.pages.facts import (
    NAMES,
    FlowFacts,
    count_formula,
    count_holding,
    count_never,
    count_true,
    group_attractors,
    list_changes_if_correct,
    list_everywhere,
    list_gains,
    list_growth,
    list_moves,
    list_reports,
    list_saturated,
    list_training_sizes,
    read_facts,
)
from headscope_studies.attention_flow.report import measure_saturation

FOLDER = Path(__file__).parent
PRINTED = {
    ("blank-out", False): (paper.BLANK_OUT, paper.LAYERS),
    ("gradient", False): (paper.GRADIENT, paper.LAYERS),
    ("gradient", True): (paper.SST_GRADIENT, paper.SST_LAYERS),
}
"""The paper's tables by the kind of importance, and whether they are on SST-2."""


def page(facts: FlowFacts) -> bytes:
    """Return the page."""
    return fill_template(
        FOLDER / "page.md",
        facts=facts,
        published_accuracy=paper.ACCURACY,
        printed={
            "last": {score: list_printed(score, -1) for score in OF},
            "first": {score: list_printed(score, 0) for score in OF},
        },
        trained_on=list_training_sizes(facts),
        attractors={
            label: group_attractors(results["accuracy"])
            for label, results in facts.more.items()
            if "accuracy" in results
        },
        everywhere=list_everywhere(facts),
        never=count_never(facts),
        list_gains=list_gains,
        count_true=partial(count_true, facts),
        measure_saturation=measure_saturation,
        saturated=list_saturated(facts),
        list_growth=partial(list_growth, facts),
        changes_if_correct=list_changes_if_correct(facts),
        moves=list_moves(facts),
        formula=count_formula(facts),
        scaled={factor: count_holding(facts, factor) for factor in (0.5, 1.0, 2.0)},
    ).encode()


def list_printed(score: str, layer: int) -> list[float]:
    """Return the paper's numbers on the verb for raw attention, rollout and flow in one layer."""
    rows, _ = PRINTED[score, False]
    return [rows[lens][0][layer] for lens in paper.SHOWN]


def draw_grid(facts: FlowFacts, width: float = 6.9) -> Figure:
    """Draw the verdict on every claim for every model and task."""
    return draw_verdicts(facts, width, [NAMES.get(label, label) for label in facts.models])


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
        rows[OF[score]] = row
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
        panel.text(0.5, 0.5, "not\nprinted", transform=panel.transAxes, **style)
    return figure


def _printed(score: str, *, sst: bool) -> xr.Dataset:
    """Return a table of the paper as it is drawn; all NaN where it prints none."""
    rows, layers = PRINTED.get((score, sst), ({}, paper.SST_LAYERS))
    nothing = np.full(len(layers), np.nan)
    values = [rows[lens][0] if lens in rows else nothing for lens in paper.SHOWN]
    value = xr.DataArray(values, {"lens": list(paper.SHOWN), "layer": list(layers)}, ("lens", "layer"))
    return xr.Dataset({"value": value, "low": value, "high": value})


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


def draw_layers(facts: FlowFacts) -> Figure:
    """Draw the graph of layers behind a flow."""
    maps = next(results["maps"] for results in facts.more.values() if "maps" in results)  # the paper's model is first
    tokens = [str(token) for token in maps["query_token"].values]
    return draw(maps, "layered", **({"query": tokens.index("[CLS]")} if "[CLS]" in tokens else {}))


PICTURES = {
    "verdicts": draw_grid,
    "correlations": draw_correlations,
    "saturated": draw_saturation,
    "layered": draw_layers,
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
