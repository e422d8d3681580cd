"""The page docs/which_lens.md with its pictures, and that of its tables."""

import json
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import join_words
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, draw_verdicts
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import fill_template, format_range, join_lines
from headscope.plotting.facets import interval_facets
from headscope_studies.which_lens.claims import CLAIMS, HEADS, HIDDEN, LAYERS, SCORE
from headscope_studies.which_lens.pages import tables
from headscope_studies.which_lens.pages.facts import LensFacts, list_reports, read_facts
from headscope_studies.which_lens.report import JUDGES

FOLDER = Path(__file__).parent
ONE_ROW = ["logit"]
"""Lenses that are 0 outside the row that the prediction reads, so that their numbers are of other rows."""


def page(facts: LensFacts, costs: str = "") -> bytes:
    """Return the page; `costs` are those of the lenses in words."""
    names = {"HEADS": HEADS, "LAYERS": LAYERS, "HIDDEN": HIDDEN, "SCORE": SCORE}
    text = fill_template(
        FOLDER / "page.md",
        facts=facts,
        **names,
        inputs=format_range((int(data["n"]) for _, data in facts.by_task), unit=""),
        fewest=max(claim.fewest for claim in CLAIMS),
        tasks=join_words(dict.fromkeys(task for data in facts.models.values() for task in list_tasks(data))),
        long_pairs=describe_long(facts),
        unlearned=describe_unlearned(facts),
        learned=[name for name, _ in facts.learned],
        costs=costs,
        models=join_words(SAID.get(name, name) for name in dict.fromkeys(facts.names.values())),
        pictures={name: f"pictures/{facts.stem}{name}.svg" for name in PICTURES},
    )
    return join_lines(text).encode()


SAID = {"decoder": "a small decoder"}
"""Models whose name is no name."""


def describe_long(facts: LensFacts) -> str:
    """Return the agreement of effective and raw attention where most inputs are longer than the values of a head."""
    parts = []
    for name, data in facts.long:
        agreement = data["agreement"].sel(judge=HEADS, effect=HIDDEN)
        effective, raw = (float(agreement.sel(lens=lens)) for lens in ("effective", "raw"))
        parts.append(f"{effective:.2f} against {raw:.2f} ({name})")
    return join_words(parts)


def describe_unlearned(facts: LensFacts) -> str:
    """Return which models are not shown to have learned their task, in a sentence, or nothing."""
    if not facts.unlearned:
        return ""
    pairs = join_words(
        f"{name} ({score:.0f} % right, most common label {most:.0f} %)" for name, score, most in facts.unlearned
    )
    return f"Not shown to have learned their task: {pairs}."


def describe_costs(path: Path) -> str:
    """Return what lenses with their captures cost, in words, from what benchmarks/contributions.py wrote."""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    ratio = {(row["model"], row["what"]): row["median"] for row in rows}
    bert = {what: value for (model, what), value in ratio.items() if model == SHAPE}
    shown = ", ".join(f"{name} {bert[what]:.1f}" for name, what in COSTS.items())
    tokens = next(row["tokens"] for row in rows if row["what"] == ZEROING)
    return f"{shown}, each with its capture; value zeroing {bert[ZEROING]:.0f} for a text of {tokens} tokens ({SHAPE})"


SHAPE, ZEROING = "BERT-base shape", "value_zeroing"
COSTS = {
    "norms of summed heads": "norm:merge=true",
    "with the residual connection": "norm:residual=true",
    "ALTI": "alti",
    "relevance": "relevance",
}
"""Lenses on the page, by their names in the benchmark."""


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


def draw_grid(facts: LensFacts) -> Figure:
    """Draw the verdict on every claim for every model and task."""
    return draw_verdicts(facts, names=list(facts.names.values()))


PICTURES = {"verdicts": draw_grid, "agreement": draw_agreement, "removed": draw_removed}


def write_page(docs: Path) -> Generated:
    """Yield the page with its pictures."""
    facts = read_facts()
    yield from write_pictures({f"{facts.stem}{name}.svg": draw(facts) for name, draw in PICTURES.items()})
    yield "which_lens.md", page(facts, describe_costs(docs / "results" / "performance_contributions_cpu.json"))


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_scaled(facts))
    yield "which_lens_tables.md", tables.page(facts)


PAGES = StudyPages({"which_lens": write_page}, {"which_lens_tables": write_tables}, list_reports)
