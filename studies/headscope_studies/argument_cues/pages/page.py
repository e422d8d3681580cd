"""The pages docs/argument_cues.md and docs/tables.md with their pictures."""

from pathlib import Path

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, to_grid
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.template import fill_template, join_lines
from headscope.plotting.facets import interval_facets
from headscope.plotting.verdict_grid import verdict_grid
from headscope.reporting.frames import TableColumn, to_frame
from headscope_studies.argument_cues import paper, report
from headscope_studies.argument_cues.answers import TUNED
from headscope_studies.argument_cues.cue import MIN_COUNT
from headscope_studies.argument_cues.data import ARCT
from headscope_studies.argument_cues.pages import tables
from headscope_studies.argument_cues.pages.facts import CueFacts, list_parts, list_reports, read_facts
from headscope_studies.argument_cues.parts import ALL

FOLDER = Path(__file__).parent
SETS = ("dev", "test", "adversarial")


def page(facts: CueFacts) -> bytes:
    """Return the page."""
    text = fill_template(
        FOLDER / "page.md",
        facts=facts,
        paper=paper,
        list_not=report.list_not,
        list_parts=list_parts,
        fewest=MIN_COUNT,
        accuracy_table=accuracy_table(facts),
        heads_model=_find_heads(facts)[0],
        pictures={name: f"pictures/{facts.stem}{name}.svg" for name in PICTURES},
    )
    return join_lines(text).encode()


def accuracy_table(facts: CueFacts) -> str:
    """Return the accuracy of every tuned model with every part of the input, beside the paper's best."""
    frames = {}
    columns = [
        TableColumn("test", "accuracy", {"set": "test"}, 100),
        TableColumn("median", "accuracy_median", {"set": "test"}, 100),
        TableColumn("largest", "accuracy_max", {"set": "test"}, 100),
        TableColumn("dev", "accuracy", {"set": "dev"}, 100),
    ]
    for label, data in facts.results.items():
        row = data.sel(network=TUNED, part=data["seeds"].sel(network=TUNED) > 0)
        frame = to_frame(row, {"part": "part"}, columns)
        counts = zip(row["failed"].values, row["seeds"].values, strict=True)
        frame["failed"] = [f"{int(failed)} of {int(seeds)}" for failed, seeds in counts]
        best = [100 * paper.BERT_BEST[part] if part in paper.BERT_BEST else None for part in row["part"].values]
        frames[label] = frame.assign(**{"BERT-large, best": pd.array(best, dtype="Int64")})
    return to_grid(pd.concat(frames, names=["model", "part"]))


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


def draw_heads(facts: CueFacts) -> Figure:
    """Draw the difference of attention to the cue of every head of one model."""
    return report.draw_heads(_find_heads(facts)[1])


def _find_heads(facts: CueFacts) -> tuple[str, xr.Dataset]:
    """Return the first model whose heads were compared, and its heads."""
    return next((label, files["heads"]) for label, files in facts.more.items() if "heads" in files)


PICTURES = {"verdicts": draw_verdicts, "accuracy": draw_accuracy, "follow": draw_follow, "heads": draw_heads}


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
