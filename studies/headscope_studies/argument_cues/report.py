"""The report: verdicts first, then the cues of the data, and what networks do with them."""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Section
from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.core.study import Results
from headscope.experiments.rendering import report
from headscope.experiments.rendering.report import Captioner, paragraphs, sample_inputs, select_interval
from headscope.experiments.rendering.sentences import verdict_numbers
from headscope.experiments.template import fill_template, format_phrases, join_lines
from headscope.plotting.draw import draw
from headscope.plotting.facets import heat_facets, interval_facets
from headscope.reporting.frames import TableColumn, to_frame
from headscope_studies.argument_cues import ArgumentCues, paper
from headscope_studies.argument_cues.claims import LEARNED, judge_models
from headscope_studies.argument_cues.cue import MIN_COUNT
from headscope_studies.argument_cues.parts import ALL
from headscope_studies.argument_cues.summary import count_seeds

TEXTS, CAPTIONS = report.read_prose(__package__)
ROWS = {"network": "network", "part": "part"}
LISTED = 15
POINTS = "{:,} points of “{}”"


def fill_text(name: str, /, **values: Any) -> str:
    """Return a text of prose.md, filled with values, every paragraph in one line."""
    return join_lines(fill_template(TEXTS[name], **values)).strip()


def document(results: Results) -> Document:
    """Return the report on the results of the study."""
    numbers, judged = results["numbers"], judge_models({"": results["numbers"]})[""]
    one, values = numbers.isel(task=0), find_values(numbers)
    inputs = sample_inputs(CAPTIONS, numbers)
    points = Captioner(CAPTIONS, join_words(format_phrases(values["points"], POINTS)), inputs.reduced)
    method = fill_text("method", **values).split("\n\n")
    sections = [
        report.report_verdicts(
            inputs,
            judged,
            (fill_text("failed", failed=count_failed(one)),),
            fill_text("judged", learned=LEARNED, **values),
        ),
        Section("Cues of the data", report_cues(results, values, points)),
        Section("Parts of the input", report_parts(one, inputs, values, points)),
        Section("Following the cue", report_follow(one, inputs, values, points)),
        Section("Where no single word tells the answer", report_fair(one, inputs)),
        *([Section("Pairs of words", report_pairs(results["cues"]))] if "pair" in results["cues"].dims else []),
        Section("Heads", report_heads(results, inputs)),
        report.report_thresholds(inputs, judged),
        Section(
            "How it was measured, and what differs from the paper",
            [inputs.table("verdict_numbers", verdict_numbers(judged)), *paragraphs(*method)],
        ),
    ]
    title = "Is the model, or the dataset, cheating? Statistical cues"
    facts = [{"name": "the study", **read_provenance(numbers)}]
    return Document(title, fill_text("lead", **values), sections, ArgumentCues.cites, facts)


def find_values(numbers: xr.Dataset) -> dict[str, Any]:
    """Return what the templates use of one dataset."""
    one = numbers.isel(task=0)
    return {
        "data": str(numbers["task"].values[0]),
        "model": str(read_provenance(numbers).get("model", "a model")).rstrip("/").rpartition("/")[2],
        "train": int(one["train"]),
        "whole_train": int(one["whole_train"]),
        "points": list(zip(map(int, one["points"].values), one["set"].values.tolist(), strict=True)),
        "networks": one.sizes["network"],
        "parts": one.sizes["part"],
        "seeds": count_seeds(one),
        "judged": str(one["judged"].item()),
        "tuning": str(one["tuning"].item()),
        "baseline_epochs": int(one["baseline_epochs"]),
        "cue": str(one["cue_text"].item()),
        "cue_label": int(one["cue_label"]),
    }


def count_failed(one: xr.Dataset) -> list[tuple[int, int, str]]:
    """Return how many trainings failed, of how many, and the network."""
    networks = one["network"].values.tolist()
    failed, seeds = (one[name].sum("part") for name in ("failed", "seeds"))
    return [(int(failed.sel(network=name)), int(seeds.sel(network=name)), name) for name in networks]


def report_cues(results: Results, values: dict[str, Any], points: Captioner) -> list[Part]:
    """Return the cue in every set, the strongest cues, and those of the paper where the data are ARCT."""
    one, cues = results["numbers"].isel(task=0), results["cues"]
    cue, train = values["cue"], Captioner(CAPTIONS, f"{values['whole_train']:,} training examples")
    columns = [
        TableColumn("points", "points", whole=True),
        TableColumn("cue applies", "applicability", whole=True),
        TableColumn("productivity", "cue_productivity"),
        TableColumn("coverage", "cue_coverage"),
        TableColumn("chance", "chance"),
    ]
    sets = to_frame(one, {"set": "set"}, columns if cue else [columns[0], columns[-1]])
    parts: list[Part] = [
        Paragraph(fill_text("cues", **values)),
        points.table("sets" if cue else "sets_alone", sets, cue=cue),
        train.table("listed", cue_table(cues, values["judged"]), fewest=MIN_COUNT),
        train.picture("cues_drawn", draw_cues(cues)),
    ]
    if "pattern_productivity" in cues:
        counts = {"exclusive": list_not(cues, paper.NOT), "nearest": list_not(cues, paper.NOT_OR)}
        parts.append(Paragraph(fill_text("not", **counts, negation=paper.NOT_OR)))
        parts.append(Captioner(CAPTIONS, "all of ARCT").table("not_table", not_table(cues), paper.table_of_not()))
    return parts


def cue_table(cues: xr.Dataset, judged: str) -> pd.DataFrame:
    """Return the strongest cues of the training data."""
    train = {"split": "train"}
    columns = [
        TableColumn("applies to", "applicability", train, whole=True),
        TableColumn("productivity", "productivity", train),
        TableColumn("coverage", "coverage", train, interval=False),
        TableColumn("gain", "gain", train),
        TableColumn("PMI (nats)", "pmi", train),
        TableColumn("p (Holm)", "productivity_p_adjusted", train),
        TableColumn(f"productivity in {judged}", "productivity", {"split": judged}),
    ]
    return to_frame(cues.isel(cue=slice(LISTED)), {"cue": "cue"}, columns)


def draw_cues(cues: xr.Dataset) -> Figure:
    """Draw productivity over coverage of the strongest cues of the training data."""
    return draw(cues.sel(split="train", drop=True).astype(float), "cues", title="")  # files are in single precision


def not_table(cues: xr.Dataset) -> pd.DataFrame:
    """Return productivity and coverage of "not", and of "not" or "n't", by variant and split."""
    columns = [
        TableColumn(f"{negation}, {variant}: {name}", f"pattern_{name}", {"pattern": negation, "variant": variant})
        for negation in cues["pattern"].values.tolist()
        for variant in cues["variant"].values.tolist()
        for name in ("productivity", "coverage")
    ]
    return to_frame(cues, {"printed": "split"}, columns)


def list_not(cues: xr.Dataset, negation: str) -> list[tuple[str, float, float]]:
    """Return productivity and coverage of a negation in exactly one choice, by split."""
    counts = cues.sel(pattern=negation, variant="exclusive")
    columns = (counts[name].values.tolist() for name in ("printed", "pattern_productivity", "pattern_coverage"))
    return list(zip(*columns, strict=True))


def report_parts(one: xr.Dataset, inputs: Captioner, values: dict[str, Any], points: Captioner) -> list[Part]:
    """Return the accuracy of every network with every part of the input."""
    name, theirs = ("accuracy", paper.table_of_best()) if values["data"] == "ARCT" else ("accuracy_alone", None)
    table = inputs.table(name, accuracy_table(one), theirs, judged=values["judged"])
    return [Paragraph(fill_text("parts")), table, points.picture("accuracy_drawn", draw_accuracy(one))]


def accuracy_table(one: xr.Dataset) -> pd.DataFrame:
    """Return mean, median and largest accuracy over all seeds, failed ones, and that of the others, in %."""
    columns = [
        TableColumn("mean", "accuracy_mean", scale=100),
        TableColumn("median", "accuracy_median", scale=100),
        TableColumn("largest", "accuracy_max", scale=100),
        TableColumn("seeds", "seeds", whole=True),
        TableColumn("failed", "failed", whole=True),
        TableColumn("without failed", "accuracy", scale=100),
        TableColumn("less the first part", "gain_change", scale=100),
    ]
    return to_frame(one.sel(set=str(one["judged"].item())), ROWS, columns)


def draw_accuracy(one: xr.Dataset) -> Figure:
    """Draw the accuracy by part of the input, a panel for each set."""
    data = select_interval(one, "accuracy", 100).rename(network="lens").reset_coords(drop=True)
    panels = {f"{name}": data.sel(set=name, drop=True) for name in one["set"].values.tolist()}
    return interval_facets({"accuracy (%)": panels}, x="part")


def report_follow(one: xr.Dataset, inputs: Captioner, values: dict[str, Any], points: Captioner) -> list[Part]:
    """Return how often networks follow the cue, and their accuracy by where it points."""
    if not values["cue"]:
        return [Paragraph(fill_text("no cue"))]
    columns = [TableColumn("follows the cue", "follow", scale=100)]
    for case in one["case"].values.tolist():
        columns.append(TableColumn(f"right where the cue is {case}", "where", {"case": case}, scale=100))
    frame = to_frame(one.sel(set=values["judged"], part=ALL), {"network": "network"}, columns)
    if frame.empty:
        return [Paragraph(fill_text("nothing learned"))]
    table = inputs.table("follow_table", frame, judged=values["judged"])
    return [Paragraph(fill_text("follow")), table, points.picture("follow_drawn", draw_follow(one))]


def draw_follow(one: xr.Dataset) -> Figure:
    """Draw the accuracy by where the cue points, a panel for each set."""
    data = select_interval(one.sel(part=ALL), "where", 100).rename(network="lens").reset_coords(drop=True)
    panels = {f"{name}": data.sel(set=name, drop=True) for name in one["set"].values.tolist()}
    return interval_facets({"accuracy (%)": panels}, x="case", label="the cue points")


def report_fair(one: xr.Dataset, inputs: Captioner) -> list[Part]:
    """Return the accuracy on the adversarial or balanced set."""
    name = str(one["fair_set"].item())
    if not name:
        return [Paragraph(fill_text("no fair"))]
    fair = one.sel(set=name)
    columns = [
        TableColumn("accuracy", "accuracy", scale=100),
        TableColumn("mean, all seeds", "accuracy_mean", scale=100),
        TableColumn("median", "accuracy_median", scale=100),
        TableColumn("largest", "accuracy_max", scale=100),
    ]
    text = fill_text("fair", name=name, fair=fair, cue=one["cue_text"].item(), judged=one["judged"].item())
    points = Captioner(CAPTIONS, POINTS.format(int(fair["points"]), name), inputs.reduced)
    return [Paragraph(text), points.table("fair_table", to_frame(fair, ROWS, columns))]


def report_pairs(cues: xr.Dataset) -> list[Part]:
    """Return the productivity of pairs of words, one in a text and one in a choice, in every set."""
    sets = [
        (name, int(cues["pairs"].sel(counted=name)), int(cues["pairs_significant"].sel(counted=name)))
        for name in cues["counted"].values.tolist()
    ]
    text = str(cues["pair"].values[0]).partition(" & ")[0].rpartition(" in ")[2]
    words = fill_text("pairs", text=text, count=cues.sizes["pair"], fewest=MIN_COUNT, sets=sets)
    columns = [TableColumn(name, "pair_productivity", {"counted": name}) for name, _, _ in sets]
    train = Captioner(CAPTIONS, f"{int(cues['n'].sel(split='train'))} training examples")
    return [Paragraph(words), train.table("pairs_table", to_frame(cues, {"pair": "pair"}, columns))]


def report_heads(results: Results, inputs: Captioner) -> list[Part]:
    """Return where attention to the cue differs between points got by the cue and the others."""
    one, heads = results["numbers"].isel(task=0), results.get("heads")
    if heads is None:
        return [Paragraph(fill_text("nothing learned" if one["cue_text"].item() else "no cue"))]
    text = Paragraph(fill_text("heads", by_cue=float(one["by_cue"]), others=float(one["others"])))
    if not np.isfinite(heads["difference"].values).any():
        return [text, Paragraph(fill_text("few points"))]
    columns = [
        TableColumn("largest difference", "head_difference_change"),
        TableColumn("layer", "best_layer", whole=True),
        TableColumn("head", "best_head", whole=True),
        TableColumn("significant heads", "significant", whole=True),
        TableColumn("seeds with any", "significant_seeds", whole=True),
    ]
    frame = to_frame(one, {"lens": "attention", "query": "from"}, columns)
    cued = Captioner(CAPTIONS, f"{float(one['by_cue'] + one['others']):.0f} points with the cue", inputs.reduced)
    return [text, cued.picture("heads_drawn", draw_heads(heads)), cued.table("heads_table", frame)]


def draw_heads(heads: xr.Dataset) -> Figure:
    """Draw the mean difference of every head, by kind of attention and by source."""
    names = {"cls": "from [CLS]", "all": "from all tokens"}
    look: dict[str, Any] = {"rows": "lens", "columns": "query", "y": "layer", "signed": True, "scale": "row"}
    return heat_facets(heads["difference"].mean("seed"), label="difference", names=names, **look)
