"""The page docs/what_heads_look_at.md with its pictures, and that of its tables."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headscope.core.estimate import estimate
from headscope.core.provenance import read_provenance
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import fill_template, join_lines
from headscope.experiments.thresholds import draw_thresholds
from headscope.plotting import series, theme
from headscope.plotting.facets import interval_facets
from headscope.plotting.panels import new_grid
from headscope_studies.what_heads_look_at import paper, probe_numbers, report
from headscope_studies.what_heads_look_at.claims import BRANCHING
from headscope_studies.what_heads_look_at.networks import MASKED
from headscope_studies.what_heads_look_at.no_op_figures import draw_no_ops
from headscope_studies.what_heads_look_at.pages import coreference, probes, tables
from headscope_studies.what_heads_look_at.pages.facts import (
    PROBES,
    STEM,
    HeadFacts,
    count_special,
    list_looking,
    list_reports,
    read_facts,
)
from headscope_studies.what_heads_look_at.surface_tables import TITLES

FOLDER = Path(__file__).parent
COLUMNS = (("previous", "next"), ("cls", "sep", "period_comma"))
PREDICTORS = (
    "right-branching",
    "best head",
    "all heads, no words",
    "words and distances",
    "words and all heads",
)


def page(facts: HeadFacts) -> bytes:
    """Return the page."""
    return join_lines(fill_template(FOLDER / "page.md", facts=facts, **collect_numbers(facts))).encode()


def collect_numbers(facts: HeadFacts) -> dict[str, Any]:
    """Return what the page says."""
    data = next(iter(facts.surface.values()))
    trees = {pair: facts.judged_numbers[pair[0]]["trees"].sel(task=pair[1]) for pair in facts.treebanks}
    runs = [run for probe in facts.probes.values() for run in read_provenance(probe)["runs"]]
    fewest = min(runs, key=lambda run: run["documents"])
    return {
        "inputs": int(data["n"].values.ravel()[0]),
        "corpus": list_tasks(data)[0],
        "tests": max(claim.tests for claim in facts.every),
        "masked": MASKED,
        "networks": {label: measured.sel(task=MASKED) for label, measured in facts.networks.items()},
        "deepest": max(facts.surface, key=lambda label: facts.surface[label].sizes["layer"]),
        "surface": {label: measured.isel(task=0).sel(lens="raw") for label, measured in facts.surface.items()},
        "heads": {label: list_looking(measured) for label, measured in facts.surface.items()},
        "special": {label: count_special(measured) for label, measured in facts.surface.items()},
        "strict": {label: count_special(measured, ("cls", "sep"))[0] for label, measured in facts.surface.items()},
        "trees": trees,
        "words": {pair: select_whole(facts, *pair) for pair in facts.treebanks},
        "list_added": partial(list_added, facts),
        "added": [100 * float(tree["distance_gain_change"]) for tree in trees.values()],
        "better_relations": tables.count_better(facts),
        "better": [better for _, _, better, _ in tables.count_better(facts)],
        "antecedents": tables.list_antecedents(facts)[0],
        "paper": paper,
        "threshold": BRANCHING,
        "fewest": fewest,
        "most_documents": max(run["documents"] for run in runs if run["treebank"] == fewest["treebank"]),
    }


def list_added(facts: HeadFacts, label: str) -> list[float]:
    """Return the points that attention adds to words and distances, for all treebanks and divisions into halves."""
    data = facts.probes["attention_and_words"].sel(task="dependency", relation=probe_numbers.ALL, attention="raw")
    accuracy = data["accuracy"].sel(model=label)
    gains = accuracy.sel(predictor="probe") - accuracy.sel(predictor="distances")
    return [100 * float(gain) for gain in np.ravel(gains.values) if np.isfinite(gain)]


def select_whole(facts: HeadFacts, label: str, treebank: str) -> dict[str, xr.Dataset]:
    """Return the accuracies of each trained probe on all words of a treebank."""
    runs = facts.trees(label, treebank)
    return {name: runs[name].sel(relation=probe_numbers.ALL).isel(task=0) for name in PROBES[1:] if name in runs}


def draw_verdicts(facts: HeadFacts) -> Figure:
    """Draw the verdict on every claim of the paper for each model."""
    return report.draw_grid({label: facts.judged[label] for label in facts.models})


def draw_no_op(facts: HeadFacts) -> Figure:
    """Draw what tokens count in every model, and in those that were tuned from it."""
    ratios = []
    for label, data in facts.networks.items():
        ratio = data[["ratio", "ratio_low", "ratio_high"]]
        ratios.append(ratio.assign_coords(task=[f"{label}, {name}" for name in list_tasks(data)]))
    return draw_no_ops(xr.concat(ratios, "task"))


@theme.apply()
def draw_heads(facts: HeadFacts) -> Figure:
    """Draw a point for every head: its share of attention on each target, and its entropy, by layer."""
    size = (theme.PAGE[0], 0.6 + 1.9 * len(facts.surface))
    grid = new_grid(size, 3 * len(facts.surface), 3)
    for panels, (label, data) in zip(grid.rows, facts.surface.items(), strict=True):
        raw = data.isel(task=0).sel(lens="raw")
        for panel, names in zip(panels, COLUMNS, strict=False):
            shares = {TITLES[name]: 100 * raw["share"].sel(target=name) for name in names}
            _draw_points(panel, shares)
            panel.set_ylim(-4, 104)
        _draw_points(panels[2], {"from all tokens": raw["entropy"], "from [CLS]": raw["cls_entropy"]})
        panels[0].set_ylabel(label, fontsize=theme.text_size("note"))
        panels[2].set_ylim(-0.3, 1.4 * float(max(raw["entropy"].max(), raw["cls_entropy"].max())))  # room for a legend
    grid.name_panels(["neighbors (%)", "special tokens (%)", "entropy (nats)"])
    for panel in grid.rows[0]:
        panel.legend(fontsize=theme.text_size("note"), loc="upper right", handletextpad=0.1, borderpad=0.2)
    grid.figure.supxlabel("layer", fontsize=theme.text_size("note"), color=theme.quiet)
    return grid.figure.figure


def _draw_points(panel: Axes, values: Mapping[str, xr.DataArray]) -> None:
    """Draw the values of all heads, `layer head`, those of different names beside each other."""
    shifts = series.spread_series(len(values), 0.24)
    for (name, table), style, shift in zip(values.items(), series.styles(values, "targets"), shifts, strict=True):
        cells = table.transpose("layer", "head")
        x = np.broadcast_to(cells["layer"].values[:, None] + shift, cells.shape)
        look: dict[str, Any] = {"color": style.colour, "marker": style.mark, "markersize": 2.6, "linestyle": "none"}
        panel.plot(x.ravel(), cells.values.ravel(), markeredgewidth=0, alpha=0.75, label=name, **look)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    series.style_axes(panel)


def draw_uas(facts: HeadFacts) -> Figure:
    """Draw the UAS of the best head, of trained probes, and of their baselines: a panel for each treebank."""
    panels = {}
    for treebank in dict.fromkeys(bank for _, bank in facts.treebanks):
        labels = [label for label, bank in facts.treebanks if bank == treebank]
        values = np.moveaxis(100 * np.array([_list_uas(facts, label, treebank) for label in labels]), -1, 0)
        named = zip(("value", "low", "high"), values, strict=True)  # end model predictor
        coords = {"lens": labels, "predictor": list(PREDICTORS)}
        panels[treebank] = xr.Dataset({name: (("lens", "predictor"), table) for name, table in named}, coords)
    return interval_facets({"heads found (%)": panels}, x="predictor")


def _list_uas(facts: HeadFacts, label: str, treebank: str) -> list[tuple[float, ...]]:
    """Return the UAS of PREDICTORS with their intervals."""
    one = facts.trees(label, treebank)["dependency"].sel(task="dependency", relation=probe_numbers.ALL)
    whole = select_whole(facts, label, treebank)
    plain, words = (whole[name] for name in PROBES[1:])
    pairs = ((one, "right_branching"), (one, "head"), (plain, "probe"), (words, "distances"), (words, "probe"))
    return [_select_ends(data, predictor) for data, predictor in pairs]


def _select_ends(data: xr.Dataset, predictor: str) -> tuple[float, ...]:
    """Return the accuracy of a predictor with its interval; NaN where it was not measured."""
    if predictor not in data["predictor"]:
        return (np.nan,) * 3
    return tuple(map(float, estimate(data, "accuracy").sel(predictor=predictor).ends))


PICTURES = {"verdicts": draw_verdicts, "no_op": draw_no_op, "heads": draw_heads, "uas": draw_uas}


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
