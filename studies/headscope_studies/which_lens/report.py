"""The report: which lens agrees with what is taken away, of edges and of tokens, and which claims hold."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Section
from headscope.core.provenance import read_provenance
from headscope.core.study import Results
from headscope.experiments.claims import JudgedClaim
from headscope.experiments.rendering import report
from headscope.experiments.rendering.report import Captioner, sample_inputs, select_interval
from headscope.experiments.rendering.sentences import verdict_numbers
from headscope.experiments.seeds import combine_seeds, describe_seeds
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import fill_template
from headscope.plotting.facets import interval_facets
from headscope.reporting.frames import TableColumn, to_frame
from headscope_studies.which_lens import WhichLens
from headscope_studies.which_lens.claims import HEADS, HIDDEN, LAYERS, SCORE, judge_models

TEXTS, CAPTIONS = report.read_prose(__package__)
JUDGES = {HEADS: "one head", LAYERS: "all heads"}
"""Which edges are taken away, in titles."""


def document(results: Results) -> Document:
    """Return the report on the results of the study."""
    numbers = combine_seeds(results["numbers"])
    (judged,) = judge_models({"": results["numbers"]}).values()
    inputs = sample_inputs(CAPTIONS, numbers)
    notes = (describe_seeds(results["numbers"]), report.describe_learned(numbers), report.describe_unlearned(numbers))
    sections = [
        report.report_verdicts(inputs, judged, notes, TEXTS["judged"]),
        Section("Edges", report_edges(numbers, inputs)),
        Section("Tokens", report_tokens(numbers, inputs)),
        Section("Pictures", report_pictures(numbers, inputs)),
        report.report_tasks(numbers, None),
        report.report_thresholds(inputs, judged),
        Section("How it was measured", report_method(numbers, judged, inputs)),
    ]
    lead = fill_template(TEXTS["lead"], **report.study_values(numbers, judged))
    return Document(
        "Which lens is true?", lead, sections, WhichLens.cites, [{"name": "the study", **read_provenance(numbers)}]
    )


def report_method(numbers: xr.Dataset, judged: Sequence[JudgedClaim], inputs: Captioner) -> list[Part]:
    """Return the numbers behind the verdicts, what the judges cost, and how they judge."""
    tables = [inputs.table("verdict_numbers", verdict_numbers(judged)), inputs.table("cost", cost_table(numbers))]
    return [*report.paragraphs(*TEXTS["method"].split("\n\n")), *tables]


def report_edges(numbers: xr.Dataset, inputs: Captioner) -> list[Part]:
    """Return how each lens orders edges, and how much of the effect its first edges have."""
    return [
        Paragraph(TEXTS["edges"]),
        inputs.picture("agreement", draw_agreement(numbers)),
        inputs.table("agreement_table", tabulate(numbers, "agreement")),
        inputs.table("covered", tabulate(numbers, "covered", 100)),
    ]


def draw_agreement(numbers: xr.Dataset) -> Figure:
    """Draw the rank correlation of every lens with the effect of its edges, a row for each kind of edge."""
    rows: dict[str, dict[str, xr.Dataset]] = {}
    for judge, title in JUDGES.items():
        for effect in (HIDDEN, SCORE):
            data = select_lenses(numbers.sel(judge=judge, effect=effect, drop=True), "agreement")
            panels = {task: data.sel(task=task, drop=True) for task in list_tasks(numbers)}
            rows[f"{title}: {effect}"] = panels
    return interval_facets(rows, x="lens_name")


def select_lenses(data: xr.Dataset, name: str, scale: int = 1) -> xr.Dataset:
    """Return a quantity and its interval by lens, as figures take it; lenses that were not measured are left out."""
    values = select_interval(data, name, scale).dropna("lens", how="all", subset=["value"])
    return values.rename(lens="lens_name").expand_dims(lens=[""])


def tabulate(numbers: xr.Dataset, name: str, scale: float = 1) -> pd.DataFrame:
    """Return a quantity of edges with its interval, by task and lens."""
    columns = [
        TableColumn(f"{title}, {effect}", name, {"judge": judge, "effect": effect}, scale=scale)
        for judge, title in JUDGES.items()
        for effect in (HIDDEN, SCORE)
    ]
    return to_frame(numbers, {"task": "task", "lens": "lens"}, columns)


def report_tokens(numbers: xr.Dataset, inputs: Captioner) -> list[Part]:
    """Return how much of the prediction goes with the tokens that a lens names."""
    columns = [
        TableColumn("probability lost (points)", "removed", scale=100),
        TableColumn("area of deletion", "deletion"),
        TableColumn("area of insertion", "insertion"),
    ]
    frame = to_frame(numbers, {"task": "task", "lens": "lens"}, columns)
    return [
        Paragraph(TEXTS["tokens"]),
        inputs.picture("removed", draw_removed(numbers)),
        inputs.table("removed_table", frame),
    ]


def draw_removed(numbers: xr.Dataset) -> Figure:
    """Draw the probability that is lost with the tokens of every lens."""
    data = select_lenses(numbers, "removed", 100)
    panels = {task: data.sel(task=task, drop=True) for task in list_tasks(numbers)}
    return interval_facets({"probability lost (points)": panels}, x="lens_name")


def report_pictures(numbers: xr.Dataset, inputs: Captioner) -> list[Part]:
    """Return how much of each map is on edges that change nothing."""
    return [Paragraph(TEXTS["pictures"]), inputs.table("unseen", tabulate(numbers, "unseen", 100))]


def cost_table(numbers: xr.Dataset) -> pd.DataFrame:
    """Return what the judges cost, in forward passes of all inputs."""
    columns: list[Any] = [TableColumn(title, "forwards", {"judge": judge}) for judge, title in JUDGES.items()]
    return to_frame(numbers, {"task": "task"}, [*columns, TableColumn("tokens", "token_forwards")])
