"""The report: verdicts first, then every table and figure of the paper, then the sites of a translation model."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Section
from headscope.core.provenance import read_provenance
from headscope.core.study import Results
from headscope.experiments.claims import Claim, JudgedClaim
from headscope.experiments.rendering import report
from headscope.experiments.rendering.head_figures import choose_parts, draw_effects, draw_parts
from headscope.experiments.rendering.report import Captioner, paragraphs, sample_inputs, select_interval
from headscope.experiments.rendering.sentences import describe_tests, verdict_numbers, verdict_table, verdicts_by_task
from headscope.experiments.seeds import combine_seeds, describe_seeds
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import fill_template
from headscope.experiments.verdicts import judge_together
from headscope.plotting.draw import draw
from headscope.plotting.facets import interval_facets
from headscope.reporting.frames import TableColumn, to_frame
from headscope.results.accuracies import select_adjusted_p
from headscope_studies.sixteen_heads import SixteenHeads, claims, paper
from headscope_studies.sixteen_heads.translation import SITES

TEXTS, CAPTIONS = report.read_prose(__package__)
ROWS = {"task": "task"}


def judge_results(results: Results) -> dict[str, list[JudgedClaim]]:
    """Judge the claims on the tasks, and those on the sites of a translation model, corrected for all verdicts."""
    groups: dict[str, tuple[Sequence[Claim], xr.Dataset]] = {
        "tasks": (claims.CLAIMS, claims.complete_tasks(results["numbers"]))
    }
    if "translation" in results:
        groups["translation"] = (claims.TRANSLATION_CLAIMS, claims.complete_sites(results["translation"]))
    return judge_together(groups)


def document(results: Results) -> Document:
    """Return the report on the results of the study."""
    numbers, judged = combine_seeds(results["numbers"]), judge_results(results)
    inputs = sample_inputs(CAPTIONS, numbers)
    notes = (describe_seeds(results["numbers"]), report.describe_learned(numbers), report.describe_unlearned(numbers))
    method: list[Part] = [
        inputs.table("verdict_numbers", verdict_numbers(judged["tasks"])),
        *paragraphs(*TEXTS["method"].split("\n\n")),
    ]
    sections = [
        report.report_verdicts(inputs, judged["tasks"], notes, TEXTS["judged"]),
        report.report_thresholds(inputs, [claim for group in judged.values() for claim in group]),
        report.report_tasks(numbers, None),
        Section("One head removed, and all but one", report_removal(numbers, inputs)),
        Section("Importance", report_importance(numbers, inputs)),
        Section("Pruning", report_pruning(numbers, inputs)),
        Section("Another dataset of the task", report_parts(numbers, inputs)),
        Section("During training", report_training(numbers, inputs)),
        Section("Translation", report_translation(results.get("translation"), judged.get("translation", []))),
        Section("How it was measured, and what differs from the paper", method),
    ]
    lead = fill_template(TEXTS["lead"], **report.study_values(numbers, judged["tasks"]))
    title = "Are sixteen heads better than one? What can be removed from fine-tuned models"
    return Document(title, lead, sections, SixteenHeads.cites, [{"name": "the study", **read_provenance(numbers)}])


def report_removal(numbers: xr.Dataset, inputs: Captioner) -> list[Part]:
    """Return the effect of removing each head, and of keeping only the best of a layer."""
    columns = [
        TableColumn("metric", "metric"),
        TableColumn("score", "score"),
        TableColumn("heads with a significant effect (%)", "significant_share", scale=100),
        *_list_raw(numbers),
        TableColumn("of these worse without (%)", "worse_share", scale=100, interval=False),
        TableColumn("heads below 1 % (%)", "small_share", scale=100),
        TableColumn("layers where one head is enough (%)", "enough_share", scale=100),
    ]
    names = ("one head removed", "all heads of a layer but one removed")
    findings = pd.DataFrame({"the paper": [paper.FINDINGS[name] for name in names]}, index=pd.Index(names, name="done"))
    best = [
        TableColumn("best head", "best_head", whole=True, interval=False),
        TableColumn("change with it alone", "best_change"),
        TableColumn("p (Holm)", str(select_adjusted_p(numbers, "best").name)),
    ]
    layers = to_frame(numbers, {"task": "task", "layer": "layer"}, best)
    table, figure = to_frame(numbers, ROWS, columns), inputs.picture("one_head", draw_effects(numbers))
    return [Paragraph(TEXTS["removal"]), inputs.table("shares", table, findings), figure, inputs.table("best", layers)]


def _list_raw(numbers: xr.Dataset) -> list[TableColumn]:
    """Return the columns of shares by p-values that are not corrected, where results have them."""
    columns = {"raw_share": "with p < 0.05, not corrected (%)", "paper_share": "with p < 0.01, as in the paper (%)"}
    return [TableColumn(title, name, scale=100) for name, title in columns.items() if name in numbers]


def report_importance(numbers: xr.Dataset, inputs: Captioner) -> list[Part]:
    """Return the rank correlation of importance with the effect of removing a head, by where absolutes are taken."""
    columns = [TableColumn(str(name), "agreement", {"reduction": name}) for name in numbers["reduction"].values]
    table = _tabulate_known(inputs, "agreement", to_frame(numbers, ROWS, columns))
    return [Paragraph(TEXTS["importance"]), *table, inputs.picture("importance", draw_importance(numbers))]


def draw_importance(numbers: xr.Dataset) -> Figure:
    """Draw the importance of every head, a panel for each task."""
    table = numbers[["head_importance"]].sel(reduction="example", drop=True).rename(task="lens")
    table["head_importance"].attrs = {"long_name": "importance", "units": "loss"}
    return draw(table, "heads", title="Importance of every head")


def report_pruning(numbers: xr.Dataset, inputs: Captioner) -> list[Part]:
    """Return how much of the score is left when heads are pruned by importance and at random."""
    figure, table = inputs.picture("pruning", draw_pruning(numbers)), pruning_table(numbers)
    return [Paragraph(TEXTS["pruning"]), figure, *_tabulate_known(inputs, "pruning_table", table)]


def draw_pruning(numbers: xr.Dataset) -> Figure:
    """Draw the share of the score that is left by percent of heads pruned, a panel for each task."""
    kept = select_kept(numbers)
    panels = {task: kept.sel(task=task) for task in list_tasks(numbers)}
    return interval_facets({"score left (%)": panels}, x="pruned", label="heads pruned (%)", lines=True)


def select_kept(numbers: xr.Dataset) -> xr.Dataset:
    """Return the score left in percent, as figures take it."""
    return select_interval(numbers.rename(order="lens"), "kept", 100).assign_coords(
        pruned=numbers["pruned"].astype(int)
    )


def pruning_table(numbers: xr.Dataset) -> pd.DataFrame:
    """Return the share of the score that is left at some percents of heads pruned."""
    shares = [share for share in (20, 40, 60, 80) if share in numbers["pruned"].values]
    columns = [TableColumn(f"{share} % pruned", "kept", {"pruned": share}, scale=100) for share in shares]
    return to_frame(numbers, {"task": "task", "order": "order"}, columns)


def report_parts(numbers: xr.Dataset, inputs: Captioner) -> list[Part]:
    """Return whether heads have the same effects on two parts of the data, and a figure of one task."""
    columns = [
        TableColumn("effects, Pearson", "effect_correlation"),
        TableColumn("importance, Spearman", "importance_correlation"),
    ]
    names = xr.apply_ufunc(_join_names, numbers["part_name"], input_core_dims=[["side"]], vectorize=True)
    rows = {"task": "task", "parts": "parts"}
    frame = to_frame(numbers.assign(names=names), rows, [TableColumn("of", "names"), *columns])
    frame = frame[frame["of"] != ""]
    task, parts = choose_parts(numbers)
    figure = inputs.picture("figure_2", draw_parts(numbers, task, parts), task=task)
    return [Paragraph(TEXTS["parts"]), inputs.table("parts", frame), figure]


def _tabulate_known(sample: Captioner, name: str, frame: pd.DataFrame) -> list[Part]:
    """Return a table; nothing where no number of it is known, such as a part of a score of 0."""
    return [] if frame.empty else [sample.table(name, frame)]


def _join_names(names: Iterable[Any]) -> str:
    return " and ".join(filter(None, map(str, names)))


def report_training(numbers: xr.Dataset, inputs: Captioner) -> list[Part]:
    """Return how early the order of heads is that of the end."""
    if "determined" not in numbers:
        return [Paragraph(TEXTS["no checkpoints"])]
    columns = [
        TableColumn(f"{share} %", "determined", {"trained": share}) for share in numbers["trained"].values.tolist()
    ]
    figure, frame = inputs.picture("training", draw_training(numbers)), to_frame(numbers, ROWS, columns)
    return [Paragraph(TEXTS["training"]), figure, *_tabulate_known(inputs, "training_table", frame)]


def draw_training(numbers: xr.Dataset) -> Figure:
    """Draw the rank correlation of importance during training with that at the end, a line for each task."""
    correlation = select_interval(numbers, "determined").rename(task="lens")
    panels = {"correlation with the end": {"": correlation}}
    return interval_facets(panels, x="trained", label="part of training (%)", lines=True)


def report_translation(sites: xr.Dataset | None, judged: list[JudgedClaim]) -> list[Part]:
    """Return what holds at the sites of a model that translates, or why there is none."""
    if sites is None:
        return [Paragraph(TEXTS["no translation"])]
    numbers = combine_seeds(claims.complete_sites(sites))
    sample = Captioner(CAPTIONS, f"{int(numbers['n'].values[0]):,} sentences")
    shares = [
        TableColumn("metric", "metric"),
        TableColumn("score", "score"),
        TableColumn("heads with a significant effect (%)", "significant_share", scale=100),
        *_list_raw(numbers),
        TableColumn("layers where one head is enough (%)", "enough_share", scale=100),
        TableColumn("importance and effect, Spearman", "agreement", {"reduction": "example"}),
    ]
    lead = fill_template(TEXTS["translation"], model=read_provenance(sites).get("model", ""))
    return [
        *paragraphs(lead, describe_tests(judged)),
        sample.table("translation_verdicts", verdict_table(judged)),
        sample.table("translation_sites", verdicts_by_task(judged)),
        sample.table("translation_shares", to_frame(numbers, {"task": "site"}, shares)),
        sample.picture("translation_effects", draw_effects(numbers.sel(task=list(SITES)))),
        sample.picture("translation_pruning", draw_pruning(numbers)),
        *_tabulate_known(sample, "translation_table", pruning_table(numbers).rename_axis(["site", "order"])),
        sample.table("translation_numbers", verdict_numbers(judged)),
    ]
