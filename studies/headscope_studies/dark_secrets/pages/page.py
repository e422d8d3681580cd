"""The pages docs/dark_secrets.md and docs/tables.md with their pictures."""

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.estimate import interval_names
from headscope.core.provenance import read_provenance
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, draw_verdicts
from headscope.experiments.relation_heads import ENCODED
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.template import fill_template, join_lines
from headscope.plotting import canvas, series, theme
from headscope.plotting.facets import interval_facets
from headscope.results.store import open_result
from headscope_studies.dark_secrets import paper
from headscope_studies.dark_secrets.measure import SIMPLY
from headscope_studies.dark_secrets.pages import tables
from headscope_studies.dark_secrets.pages.facts import (
    DarkFacts,
    average_raw,
    compare_starts,
    count_changes,
    count_seeds,
    find_worst_layer,
    list_fewer,
    list_fewer_heads,
    list_margins,
    list_random,
    list_raw,
    list_reduced,
    list_reports,
    list_same_words,
    list_special,
    read_facts,
    summarize_related,
)

FOLDER = Path(__file__).parent

BAG = FOLDER.parent / "results" / "bag_of_words.nc"
"""What runs/bag_of_words.py measured."""

SHOWN = "MRPC"
"""The task whose scores are on the first screen: of classes, in full, and learned by every model."""


def page(facts: DarkFacts) -> bytes:
    """Return the page."""
    trained, by_task = {task: data for _, task, data in facts.by_task}, list_special(facts)
    stored = dict.fromkeys(task for data in facts.measured.values() for task in read_provenance(data).get("stored", ()))
    text = fill_template(
        FOLDER / "page.md",
        facts=facts,
        list_random=list_random,
        bag=open_result(BAG),
        models=list(dict.fromkeys(facts.names.values())),
        paper=paper,
        special=facts.average(lambda data: data["special_share"]),
        special_by_task=by_task,
        below_third=list_fewer_heads(facts),
        seeds_of=count_seeds(facts),
        vertical=facts.average(lambda data: data["share"].sel(pattern="vertical", lens="raw")),
        heterogeneous=facts.average(lambda data: data["share"].sel(pattern="heterogeneous", lens="raw")),
        worst=find_worst_layer(facts),
        starts_on=compare_starts(facts, SHOWN),
        shown=SHOWN,
        counts=count_changes(facts),
        raw=average_raw(facts),
        raw_tasks=list(dict.fromkeys(list_raw(facts))),
        reduced=list_reduced(facts),
        special_tasks=[task for task in facts.shared if all(task in known for known in by_task.values())],
        fewer=list_fewer(facts),
        qnli_models=[facts.names[label] for label, task, _ in facts.by_task if task == "QNLI"],
        trained=trained,
        stored=list(stored),
        starts=tables.starts_grid(facts),
        related={kind: summarize_related(facts, kind) for kind in facts.related},
        same_words=list_same_words(facts),
        encoded=ENCODED,
        margins=list_margins(facts),
    )
    return join_lines(text).encode()


def draw_named(facts: DarkFacts) -> Figure:
    """Draw the verdicts; tasks with fewer seeds stand with the others of their model."""
    return draw_verdicts(facts, names=list(facts.names.values()))


@theme.apply()
def draw_special(facts: DarkFacts) -> Figure:
    """Draw the weight of every head on [CLS] and [SEP], mean over tuned models, layer by layer."""
    weights: dict[str, list[xr.DataArray]] = {}
    for label, data in facts.measured.items():
        stacked = data["special_weight"].stack(tuned=("task", "seed")).dropna("tuned", how="all")
        weights.setdefault(facts.names[label], []).append(stacked.drop_vars(("tuned", "task", "seed")))
    figure = canvas.new_figure((theme.PAGE[0], 2.6))
    panels = figure.subplots(1, len(weights), sharey=True, squeeze=False)[0]
    for panel, (name, parts) in zip(panels, weights.items(), strict=True):
        weight = 100 * xr.concat(parts, "tuned").mean("tuned").transpose("layer", "head").values
        layers = np.repeat(np.arange(len(weight)), weight.shape[1])
        panel.plot(layers, weight.ravel(), ".", color=theme.ink, alpha=0.6, markersize=5)
        panel.axhline(100 * SIMPLY, color=theme.quiet, linewidth=0.6)
        panel.set(ylim=(0, 100), xticks=range(len(weight)))
        panel.set_title(name, fontsize=theme.text_size("note"))
        panel.set_xlabel("layer", fontsize=theme.text_size("note"))
        series.style_axes(panel)
    panels[0].set_ylabel("weight on [CLS] and [SEP] (%)", fontsize=theme.text_size("note"))
    return figure


def draw_layers(facts: DarkFacts) -> Figure:
    """Draw the change of the score without each layer, and the cosine before and after tuning, task by task."""
    rows: dict[str, dict[str, xr.Dataset]] = {}
    for title, name, scale in (
        ("cosine before and after", "similarity_layer", 1),
        ("score without (points)", "layer_change", 100),
    ):
        columns: dict[str, list[xr.Dataset]] = {}
        for label, task, data in facts.by_task:
            layers = data.sel(lens="raw", drop=True) if name == "similarity_layer" else data
            intervals = select_interval(layers, name, scale).reset_coords(drop=True)
            columns.setdefault(task, []).append(intervals.expand_dims(lens=[facts.names[label]]))
        rows[title] = {task: xr.concat(lines, "lens", join="outer") for task, lines in columns.items()}
    return interval_facets(rows, x="layer", label="layer", lines=True)


def draw_relations(facts: DarkFacts) -> Figure:
    """Draw the weight of the best head above that at the same distance, for syntactic and for semantic links."""
    names = {"relations": "syntactic", "semantic": "semantic"}
    panels: dict[str, xr.Dataset] = {}
    for kind, results in facts.related.items():
        order = next(iter(results.values())).sortby("best_gain_change", ascending=False)["task"].values
        tables = [data[interval_names("best_gain_change")].sel(task=order) for data in results.values()]
        best = xr.concat([table.drop_attrs() for table in tables], "lens").assign_coords(lens=list(results))
        panels[names[kind]] = select_interval(best, "best_gain_change").rename(task="relation")
    figure = interval_facets({"weight above distance": panels}, x="relation")
    for panel in figure.axes:
        panel.axhline(ENCODED, color=theme.quiet, linewidth=0.6, zorder=0)
        panel.set_ylim(bottom=0)
    return figure


PICTURES = {"verdicts": draw_named, "special": draw_special, "layers": draw_layers, "relations": draw_relations}


def draw_pictures(facts: DarkFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    return {f"{facts.stem}{name}.svg": draw(facts) for name, draw in PICTURES.items()}


def draw_table_pictures(facts: DarkFacts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return {**draw_scaled(facts), **tables.draw_pictures(facts)}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "dark_secrets.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "dark_secrets_tables.md", tables.page(facts)


PAGES = StudyPages({"dark_secrets": write_page}, {"dark_secrets_tables": write_tables}, list_reports)
