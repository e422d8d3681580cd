"""The pages docs/attention_flow.md and docs/tables.md with their pictures."""

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import format_signed
from headscope.experiments.pages import facts as study_facts
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, draw_verdicts
from headscope.experiments.rendering.report import select_interval
from headscope.plotting import theme
from headscope.plotting.draw import draw
from headscope.plotting.facets import interval_facets
from headscope_studies.attention_flow import paper
from headscope_studies.attention_flow.claims import OF
from headscope_studies.attention_flow.pages import facts as said
from headscope_studies.attention_flow.pages import tables
from headscope_studies.attention_flow.pages.facts import NAMES, PAPER, FlowFacts, count_true

FOLDER = Path(__file__).parent
PRINTED = {("blank-out", False): (paper.BLANK_OUT, paper.LAYERS), ("gradient", False): (paper.GRADIENT, paper.LAYERS),
           ("gradient", True): (paper.SST_GRADIENT, paper.SST_LAYERS)}  # fmt: skip
"""The paper's tables by the kind of importance, and whether they are on SST-2."""

COUNTED = {
    "rollout": "Rollout correlates better with blank-out than raw",
    "flow": "Flow correlates better with blank-out than raw",
    "rollout_gradient": "Rollout correlates better with input gradients than raw",
    "flow_gradient": "Flow correlates better with input gradients than raw",
    "over": "Flow correlates better with blank-out than rollout",
    "over_gradient": "Flow correlates better with input gradients than rollout",
}


def page(facts: FlowFacts) -> bytes:
    """Return the page."""
    seeds, _, spread = study_facts.describe_seeds(facts, "trained").partition("; ")
    values = {
        "train": said.find_training(facts),
        "learned": said.describe_learned(facts),
        "seeds": seeds.rstrip(".") + ".",
        "counts": study_facts.describe_counts(facts),
        "everywhere": said.describe_everywhere(facts),
        "nowhere": said.describe_nowhere(facts),
        "tests": facts.tests,
        "over_seeds": ", the widest of all seeds" if facts.seed_counts else "",
        "gains": said.describe_gains(facts),
        "print_blank_out": _print(paper.BLANK_OUT),
        "print_gradient": _print(paper.GRADIENT),
        "first": _print(paper.BLANK_OUT, 0),
        "saturation": said.describe_saturation(facts),
        "growth": said.describe_growth(facts),
        "formula": said.count_formula(facts),
        "correct": said.describe_correct(facts),
        "sizes": said.describe_sizes(facts),
        "scaled": said.describe_scaled(facts),
        "spread": spread.capitalize() or "One seed was trained.",
        **{name: count_true(facts, text) for name, text in COUNTED.items()},
        **{name: f"pictures/{facts.stem}{name}.svg" for name in PICTURES},
    }
    return (FOLDER / "page.md").read_text(encoding="utf-8").format(**values).encode()


def _print(rows: paper.Rows, layer: int = -1) -> str:
    """Return the paper's numbers for raw attention, rollout and flow in one layer."""
    return ", ".join(format_signed(rows[lens][0][layer], ".2f") for lens in paper.SHOWN)


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
        figure.axes[at].text(0.5, 0.5, "not\nprinted", transform=figure.axes[at].transAxes, ha="center", va="center",
                             fontsize=theme.text_size("note"), color=theme.quiet)  # fmt: skip
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
        parts = [
            select_interval(data.sel(lens="flow", drop=True), name).reset_coords(drop=True) for data in pairs.values()
        ]
        columns[title] = xr.concat(parts, "lens").assign_coords(lens=list(pairs))
    return interval_facets({"share": columns}, x="layer", label="layer", lines=True)


def draw_layers(facts: FlowFacts) -> Figure:
    """Draw the graph of layers behind a flow."""
    label = (
        PAPER
        if "maps" in facts.more.get(PAPER, {})
        else next(name for name in facts.more if "maps" in facts.more[name])
    )
    maps = facts.more[label]["maps"]
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
    return {f"{facts.stem}{name}.svg": make(facts) for name, make in PICTURES.items()}


def draw_table_pictures(facts: FlowFacts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return {**draw_scaled(facts), **tables.draw_pictures(facts)}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = said.read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "attention_flow.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = said.read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "attention_flow_tables.md", tables.page(facts)


PAGES = StudyPages({"attention_flow": write_page}, {"attention_flow_tables": write_tables}, said.list_reports)
