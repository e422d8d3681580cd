"""The page docs/which_lens.md with its pictures, and that of its tables."""

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import join_words
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, draw_verdicts
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.template import fill_template, join_lines
from headscope.plotting.facets import interval_facets
from headscope_studies.which_lens.claims import HEADS, HIDDEN, LAYERS, SCORE
from headscope_studies.which_lens.pages import tables
from headscope_studies.which_lens.pages.facts import LensFacts, list_reports, read_facts
from headscope_studies.which_lens.report import JUDGES

FOLDER = Path(__file__).parent
ONE_ROW = ["logit"]
"""Lenses that are 0 outside the row that the prediction reads, so that their numbers are of other rows."""


def page(facts: LensFacts) -> bytes:
    """Return the page."""
    names = {"HEADS": HEADS, "LAYERS": LAYERS, "HIDDEN": HIDDEN, "SCORE": SCORE}
    text = fill_template(
        FOLDER / "page.md",
        facts=facts,
        **names,
        inputs=int(facts.by_task[0][1]["n"]),
        seeds=f", the widest of {facts.seed_counts}" if facts.seed_counts else "",
        models=join_words(facts.models),
        pictures={name: f"pictures/{facts.stem}{name}.svg" for name in PICTURES},
    )
    return join_lines(text).encode()


def draw_agreement(facts: LensFacts) -> Figure:
    """Draw how every lens orders edges: a row for each kind of edge, a series for each model and task."""
    rows = {}
    for judge, title in JUDGES.items():
        panels = {
            effect: join_runs(facts, "agreement", judge=judge, effect=effect).drop_sel(of=ONE_ROW, errors="ignore")
            for effect in (HIDDEN, SCORE)
        }
        rows[f"{title}: rank correlation"] = panels
    return interval_facets(rows, x="of")


def draw_removed(facts: LensFacts) -> Figure:
    """Draw the probability that goes with the tokens of every lens, a series for each model and task."""
    return interval_facets({"probability lost (points)": {"": join_runs(facts, "removed", 100)}}, x="of")


def join_runs(facts: LensFacts, name: str, scale: int = 1, **where: str) -> xr.Dataset:
    """Return a quantity by lens, here `of`, and by pair of a model and a task, as figures take it."""
    runs = {title: select_interval(data, name, scale).sel(where, drop=True) for title, data in facts.by_task}
    parts = [part.rename(lens="of").expand_dims(lens=[title]) for title, part in runs.items()]
    joined = xr.concat([part.reset_coords(drop=True) for part in parts], "lens", join="outer")
    known = np.isfinite(joined["value"]).any("lens")
    order = [str(name) for name in parts[0]["of"].values if bool(known.sel(of=name))]
    return joined.sel(of=order)


PICTURES = {"verdicts": draw_verdicts, "agreement": draw_agreement, "removed": draw_removed}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = read_facts()
    yield from write_pictures({f"{facts.stem}{name}.svg": draw(facts) for name, draw in PICTURES.items()})
    yield "which_lens.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_scaled(facts))
    yield "which_lens_tables.md", tables.page(facts)


PAGES = StudyPages({"which_lens": write_page}, {"which_lens_tables": write_tables}, list_reports)
