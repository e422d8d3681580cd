"""The page docs/sixteen_heads.md with its pictures, and that of its tables."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.estimate import estimate
from headscope.core.prose import format_signed
from headscope.core.provenance import read_provenance
from headscope.experiments.claims import MOOT
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.seeds import combine_seeds
from headscope.experiments.template import fill_template, join_lines
from headscope.plotting.facets import interval_facets
from headscope.plotting.verdict_grid import verdict_grid
from headscope_studies.sixteen_heads import report
from headscope_studies.sixteen_heads.claims import ALL, CLAIMS, COLLAPSE, CROSS, NOTABLE, TRANSLATION_CLAIMS, left_alone
from headscope_studies.sixteen_heads.pages import tables
from headscope_studies.sixteen_heads.pages.facts import (
    TRANSLATION,
    HeadFacts,
    average_during,
    average_shares,
    average_sites,
    find_unlearned,
    list_fewer,
    list_margins,
    list_reduced,
    list_reports,
    read_facts,
)
from headscope_studies.sixteen_heads.translation import SITES

FOLDER = Path(__file__).parent
SITE_NAMES = {ALL: "all", "encoder": "encoder", "decoder": "decoder", CROSS: "encoder–decoder"}
"""Names of the sites of the model that translates, in the order of figures."""

SHOWN = "STS-B"
"""The task that is drawn: of classes, a model that always answers the same keeps most of the score."""


def page(facts: HeadFacts) -> bytes:
    """Return the page."""
    return join_lines(fill_template(FOLDER / "page.md", facts=facts, **collect_numbers(facts))).encode()


def collect_numbers(facts: HeadFacts) -> dict[str, Any]:
    """Return the numbers on the page; shares of heads are taken for each trained model, and then averaged."""
    run, models = read_provenance(facts.sites), facts.measured
    stored = dict.fromkeys(task for data in models.values() for task in read_provenance(data).get("stored", ()))
    return {
        "collapse": COLLAPSE,
        "notable": 100 * NOTABLE,
        "pairs": run["train"],
        "old_sites": [SITE_NAMES[site] for site in run.get("stored", ())],
        "old_n": int(facts.sites["n"].min()),
        "old_tasks": list(stored),
        "sites": combine_seeds(facts.sites),
        "left": partial(show_left, facts),
        "pruned_left": partial(average_sites, facts, "kept", order="importance", pruned=COLLAPSE),
        "no_encoder": average_sites(facts, "kept", "encoder", order="importance", pruned=100),
        "gain": float(facts.sites["gain"].sel(task=ALL).mean()),
        "site_share": partial(average_sites, facts),
        "share": partial(average_shares, facts),
        "during": partial(average_during, facts),
        "layers": facts.sites.sizes["layer"],
        "reduced": list_reduced(facts),
        "fewer": list_fewer(facts),
        "unlearned": find_unlearned(facts),
        "margin": float(np.median(list_margins(facts.models.values()))),
        "trained": {task: data for _, task, data in facts.by_task},
    }


def show_left(facts: HeadFacts, name: str, site: str) -> str:
    """Return a share of the score, mean of seeds with the widest ends of their intervals, such as 15 % [6, 23]."""
    mean, low, high = (100 * end.sel(task=site) for end in estimate(facts.sites, name).ends)
    ends = ", ".join(format_signed(float(end), ".0f") for end in (low.min(), high.max()))
    return f"{format_signed(float(mean.mean()), '.0f')} % [{ends}]"


def select_shown(facts: HeadFacts) -> dict[str, xr.Dataset]:
    """Return the numbers of every model on the task that is drawn."""
    return {facts.names[label]: data for label, task, data in facts.by_task if task == SHOWN}


def draw_verdicts(facts: HeadFacts) -> Figure:
    """Draw the verdict on every claim: the sites of the model that translates, then every model and task.

    Where a group of columns has no such claim, cells are empty; tasks on which nothing is judged are left out.
    """
    rows = dict.fromkeys(claim.text for claim in (*TRANSLATION_CLAIMS, *CLAIMS))
    cells: dict[tuple[str, str], dict[str, str]] = {(TRANSLATION, name): {} for name in SITE_NAMES.values()}
    for label in (TRANSLATION, *facts.models):
        for claim in facts.judged_all[label]:
            for task in claim.tasks:
                name = SITE_NAMES[task.task] if label == TRANSLATION else task.task
                cells.setdefault((facts.names.get(label, label), name), {})[claim.text] = task.verdict
    columns = {
        column: [verdicts.get(text, "") for text in rows]
        for column, verdicts in cells.items()
        if set(verdicts.values()) - {MOOT}
    }
    return verdict_grid(pd.DataFrame(columns, index=[text.rstrip(".") for text in rows]), facts.kinds, width=6.9)


def draw_layers(facts: HeadFacts) -> Figure:
    """Draw the score of translation that is left with the best head of one layer alone, a panel for each site."""
    alone = combine_seeds(xr.Dataset(left_alone(facts.sites, "alone")))
    alone = alone.assign_coords(layer=[f"layer {layer}" for layer in alone["layer"].values])
    left = select_interval(alone, "alone", 100).expand_dims(lens=["best head alone"])
    panels = {SITE_NAMES[site]: left.sel(task=site) for site in SITES}
    return interval_facets({"BLEU left (%)": panels}, x="layer")


def draw_pruning(facts: HeadFacts) -> Figure:
    """Draw the share of the score left by heads pruned, of translation and of a task of numbers."""
    kept = report.select_kept(combine_seeds(facts.sites))
    panels = {f"translation, {SITE_NAMES[site]}": kept.sel(task=site) for site in (ALL, CROSS)}
    panels |= {f"{SHOWN}, {label}": report.select_kept(data) for label, data in select_shown(facts).items()}
    return interval_facets({"score left (%)": panels}, x="pruned", label="heads pruned (%)", lines=True)


def draw_training(facts: HeadFacts) -> Figure:
    """Draw the rank correlation of importance during training with that at the end, from scratch and in fine-tuning."""
    sites = combine_seeds(facts.sites)
    tasks = {f"translation, {SITE_NAMES[site]}": sites.sel(task=site) for site in ("encoder", CROSS)}
    tasks |= {f"{SHOWN}, {label}": data for label, data in select_shown(facts).items()}
    panels = {}
    for title, data in tasks.items():
        known = select_interval(data, "determined").dropna("trained", how="all")
        panels[title] = known.expand_dims(lens=["correlation of importance with that at the end"])
    return interval_facets({"Spearman": panels}, x="trained", label="part of training (%)", lines=True)


PICTURES = {"verdicts": draw_verdicts, "layers": draw_layers, "pruning": draw_pruning, "training": draw_training}


def draw_pictures(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    return {f"{facts.stem}{name}.svg": draw(facts) for name, draw in PICTURES.items()}


def draw_table_pictures(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return {**draw_scaled(facts), **tables.draw_pictures(facts)}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "sixteen_heads.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "sixteen_heads_tables.md", tables.page(facts)


PAGES = StudyPages({"sixteen_heads": write_page}, {"sixteen_heads_tables": write_tables}, list_reports)
