"""The pages docs/argument_cues.md and docs/tables.md with their pictures."""

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.template import fill_template, join_lines
from headscope.plotting.facets import interval_facets
from headscope.plotting.verdict_grid import verdict_grid
from headscope_studies.argument_cues import paper, report
from headscope_studies.argument_cues.claims import LEARNED
from headscope_studies.argument_cues.cue import MIN_COUNT
from headscope_studies.argument_cues.data import ARCT
from headscope_studies.argument_cues.pages import tables
from headscope_studies.argument_cues.pages.facts import CueFacts, list_reports, read_facts
from headscope_studies.argument_cues.parts import ALL

FOLDER = Path(__file__).parent
SETS = ("dev", "test", "adversarial")


def page(facts: CueFacts) -> bytes:
    """Return the page."""
    text = fill_template(
        FOLDER / "page.md",
        facts=facts,
        paper=paper,
        cue=facts.first["cue_text"].item(),
        whole=list_rates(facts, paper.NOT),
        apart=list_rates(facts, paper.NOT_APART),
        printed="{:.2f} and {:.2f}".format(*paper.PRINTED["all"]),
        learned=LEARNED,
        fewest=MIN_COUNT,
        pictures={name: f"pictures/{facts.stem}{name}.svg" for name in PICTURES},
    )
    return join_lines(text).encode()


def list_rates(facts: CueFacts, pattern: str) -> dict[str, str]:
    """Return productivity and coverage of a pattern in exactly one warrant, by split."""
    return {split: f"{first:.2f} and {second:.2f}" for split, first, second in report.list_not(facts.cues, pattern)}


def draw_verdicts(facts: CueFacts) -> Figure:
    """Draw the verdict on every claim for every model; there is one dataset, so that models are its columns."""
    cells = [facts.cells(claim) for claim in facts.claims]
    columns = {(ARCT, label): [row[label, ARCT].verdict for row in cells] for label in facts.measured}
    texts = [claim.text.rstrip(".") for claim in facts.claims]
    return verdict_grid(pd.DataFrame(columns, index=texts), facts.kinds)


def draw_accuracy(facts: CueFacts) -> Figure:
    """Draw the accuracy by part of the input: a row for each model, a panel for each set."""
    rows = {}
    for label, data in facts.results.items():
        accuracy = select_interval(data, "accuracy", 100).rename(network="lens").reset_coords(drop=True)
        panels = {name: accuracy.sel(set=name, drop=True) for name in SETS if name in data["set"]}
        rows[f"{label}: accuracy (%)"] = panels
    return interval_facets(rows, x="part")


def draw_follow(facts: CueFacts) -> Figure:
    """Draw the accuracy by where the cue points: a row for each model, a panel for each set."""
    rows = {}
    for label, data in facts.results.items():
        accuracy = select_interval(data.sel(part=ALL), "where", 100).rename(network="lens").reset_coords(drop=True)
        rows[f"{label}: accuracy (%)"] = {name: accuracy.sel(set=name, drop=True) for name in SETS[:2]}
    return interval_facets(rows, x="case", label="the cue points")


def draw_pairs(facts: CueFacts) -> Figure:
    """Draw the accuracy on the adversarial set by where the strongest pair of words and its cue are."""
    cases = {"claim and warrant": True, "warrant alone": False, "elsewhere": None}
    rows = [[facts.find_accuracy(label, pair=pair) for pair in cases.values()] for label in facts.results]
    values = np.moveaxis(np.array(rows), -1, 0)  # end model case
    names = zip(("value", "low", "high"), values, strict=True)
    coords = {"lens": list(facts.results), "case": list(cases)}
    data = xr.Dataset({name: (("lens", "case"), table) for name, table in names}, coords)
    cue = facts.first["cue_text"].item()
    return interval_facets({"accuracy (%)": {"adversarial": data}}, x="case", label=f"“{cue}” is in")


PICTURES = {"verdicts": draw_verdicts, "accuracy": draw_accuracy, "follow": draw_follow, "pairs": draw_pairs}


def draw_pictures(facts: CueFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    return {f"{facts.stem}{name}.svg": draw(facts) for name, draw in PICTURES.items()}


def draw_table_pictures(facts: CueFacts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return {**draw_scaled(facts), **tables.draw_pictures(facts)}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "argument_cues.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "argument_cues_tables.md", tables.page(facts)


PAGES = StudyPages({"argument_cues": write_page}, {"argument_cues_tables": write_tables}, list_reports)
