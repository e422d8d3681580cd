"""The page docs/what_heads_look_at.md with its pictures, and that of its tables."""

from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from headscope.core.provenance import read_provenance
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import to_grid
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import fill_template, join_lines
from headscope.experiments.thresholds import draw_thresholds
from headscope.plotting.draw import draw
from headscope.plotting.facets import interval_facets
from headscope_studies.what_heads_look_at.networks import MASKED
from headscope_studies.what_heads_look_at.no_op_figures import draw_no_ops
from headscope_studies.what_heads_look_at.pages import coreference, probes, tables
from headscope_studies.what_heads_look_at.pages.facts import (
    BESIDE_RAW,
    SHOWN,
    STEM,
    HeadFacts,
    answer_frame,
    count_answers,
    count_frame,
    count_layers,
    count_verdicts,
    find_equal_layers,
    list_attending,
    list_looking,
    list_networks,
    list_reports,
    read_facts,
    split_measures,
    verdict_frame,
)
from headscope_studies.what_heads_look_at.surface_tables import TITLES, measure_clark

FOLDER = Path(__file__).parent
DEPTH = ("previous", "next", "cls", "sep", "period_comma")


def page(facts: HeadFacts) -> bytes:
    """Return the page."""
    values = {**collect_numbers(facts), **collect_no_ops(facts), **tables.collect_probes(facts)}
    return join_lines(fill_template(FOLDER / "page.md", facts=facts, **values)).encode()


def collect_numbers(facts: HeadFacts) -> dict[str, Any]:
    """Return what the page says of the inputs, of verdicts, and of single heads."""
    data = next(iter(facts.surface.values()))
    return {
        "inputs": int(data["n"].values.ravel()[0]),
        "corpus": list_tasks(data)[0],
        "length": read_provenance(data)["max_length"],
        "tuning": {label: read_provenance(measured)["tuning"] for label, measured in facts.no_op.items()},
        "masked": MASKED,
        "tests": max(claim.tests for claim in facts.every),
        "counts": count_verdicts(facts),
        "parts": to_grid(count_frame(facts)),
        "surface": to_grid(verdict_frame(facts, "surface")),
        "heads": {label: list_looking(measured) for label, measured in facts.surface.items()},
        "clark": max(measure_clark(measured) for measured in facts.surface.values()),
    }


def collect_no_ops(facts: HeadFacts) -> dict[str, Any]:
    """Return by which measures attention to tokens is a no-op, in the mean over layers and in single ones."""
    always, never = split_measures(facts)
    return {
        "always": always,
        "never": never,
        "networks": list_networks(facts),
        "measures": BESIDE_RAW,
        "attending": {group: list_attending(facts, group) for group in SHOWN},
        "count_answers": partial(count_answers, facts),
        "layers": {measure: count_layers(facts, measure) for measure in BESIDE_RAW if measure != "gradient"},
        "equal_layers": find_equal_layers(facts),
        "answers": to_grid(answer_frame(facts)),
    }


def draw_no_op(facts: HeadFacts) -> Figure:
    """Draw what tokens count in every model, and in those that were tuned from it."""
    ratios = []
    for label, data in facts.networks.items():
        ratio = data[["ratio", "ratio_low", "ratio_high"]]
        ratios.append(ratio.assign_coords(task=[f"{label}, {name}" for name in list_tasks(data)]))
    return draw_no_ops(xr.concat(ratios, "task"))


def draw_depth(facts: HeadFacts) -> Figure:
    """Draw shares by layer: a row for each model, a column for each lens."""
    rows: dict[str, dict[str, xr.Dataset]] = {}
    for label, data in facts.surface.items():
        lines = select_interval(data.isel(task=0, drop=True), "share_layer", 100).sel(target=list(DEPTH))
        lines = lines.assign_coords(target=[TITLES[name] for name in DEPTH])
        lenses = map(str, data["lens"].values)
        rows[f"{label} (%)"] = {lens: lines.sel(lens=lens, drop=True).rename(target="lens") for lens in lenses}
    return interval_facets(rows, x="layer", label="layer", lines=True)


def draw_entropy(facts: HeadFacts) -> Figure:
    """Draw the entropy of all rows and of the row of [CLS] by layer, a row for each model."""
    names = {"all tokens": "entropy_layer", "[CLS]": "cls_entropy_layer"}
    rows = {}
    for label, data in facts.surface.items():
        one_task = data.isel(task=0, drop=True)
        rows[f"{label} (nats)"] = {title: select_interval(one_task, name) for title, name in names.items()}
    return interval_facets(rows, x="layer", label="layer", lines=True)


def draw_clusters(facts: HeadFacts) -> Figure:
    """Draw the heads of the deepest model in two dimensions."""
    label = max(facts.clusters, key=lambda name: facts.clusters[name].sizes["layer"])
    return draw(facts.clusters[label], "clusters:colour=layer")


PICTURES = {"no_op": draw_no_op, "depth": draw_depth, "entropy": draw_entropy, "clusters": draw_clusters}


def draw_pictures(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    return {f"{STEM}{name}.svg": draw_picture(facts) for name, draw_picture in PICTURES.items()}


def draw_table_pictures(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return {f"{STEM}scaled_thresholds.svg": draw_thresholds(facts.every), **tables.draw_pictures(facts)}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "what_heads_look_at.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "what_heads_look_at_tables.md", tables.page(facts)


PAGES = StudyPages(
    {"what_heads_look_at": write_page, "probes": probes.write_page, "coreference": coreference.write_page},
    {"what_heads_look_at_tables": write_tables, "probes_tables": probes.write_tables},
    list_reports,
)
