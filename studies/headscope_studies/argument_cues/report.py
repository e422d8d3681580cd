"""The report: verdicts first, then the cues of the data, and what networks do with them."""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Section
from headscope.core.prose import count_noun, join_words
from headscope.core.provenance import read_provenance
from headscope.core.study import Results
from headscope.experiments.rendering import report
from headscope.experiments.rendering.report import Sample, paragraphs, sample_inputs, select_interval
from headscope.experiments.rendering.sentences import count_verdicts, verdict_numbers
from headscope.plotting.draw import draw
from headscope.plotting.facets import heat_facets, interval_facets
from headscope.reporting.frames import ENDS, Quantity, to_frame
from headscope_studies.argument_cues import ArgumentCues, paper
from headscope_studies.argument_cues.answers import TUNED
from headscope_studies.argument_cues.claims import judge_models
from headscope_studies.argument_cues.cue import MIN_COUNT
from headscope_studies.argument_cues.parts import ALL
from headscope_studies.argument_cues.summary import count_seeds

TEXTS, CAPTIONS = report.read_prose(__package__)
ROWS = {"network": "network", "part": "part"}
LISTED = 15


def document(results: Results) -> Document:
    """Return the report on the results of the study."""
    numbers, judged = results["numbers"], judge_models({"": results["numbers"]})[""]
    one, values = numbers.isel(task=0), describe_values(numbers)
    values |= {"claims": len(judged), "counts": count_verdicts(judged)}
    inputs = sample_inputs(CAPTIONS, numbers)
    values["every"] = Sample(CAPTIONS, values["points"], inputs.reduced)
    failed, how = TEXTS["failed"].format(failed=describe_failed(one)), TEXTS["judged"].format(**values)
    sections = [
        report.report_verdicts(inputs, judged, (failed,), how),
        Section("Cues of the data", report_cues(results, values)),
        Section("Parts of the input", report_parts(one, inputs, values)),
        Section("Following the cue", report_follow(one, inputs, values)),
        Section("Where no cue is worth anything", report_fair(one, inputs)),
        Section("Heads", report_heads(results, inputs)),
        report.report_thresholds(inputs, judged),
        Section("How it was measured, and what differs from the paper",
                [inputs.table("verdict_numbers", verdict_numbers(judged)),
                 *paragraphs(*TEXTS["method"].format(**values).split("\n\n"))]),
    ]  # fmt: skip
    title = "Is the model, or the dataset, cheating? Statistical cues"
    facts = [{"name": "the study", **read_provenance(numbers)}]
    return Document(title, TEXTS["lead"].format(**values), sections, ArgumentCues.cites, facts)


def describe_values(numbers: xr.Dataset) -> dict[str, Any]:
    """Return what the templates use of one dataset."""
    one = numbers.isel(task=0)
    train, whole = int(one["train"]), int(one["whole_train"])
    return {
        "data": str(numbers["task"].values[0]),
        "model": str(read_provenance(numbers).get("model", "a model")).rstrip("/").rpartition("/")[2],
        "train": f"{train:,}" if train == whole else f"{train:,} of {whole:,}",
        "points": join_words(f"{int(n):,} points of “{name}”" for name, n in
                             zip(one["set"].values, one["points"].values, strict=True)),
        "networks": one.sizes["network"],
        "parts": count_noun(one.sizes["part"], "part"),
        "seeds": count_seeds(one),
        "judged": str(one["judged"].item()),
        "tuning": str(one["tuning"].item()),
        "baseline_epochs": count_noun(int(one["baseline_epochs"]), "epoch"),
        "cue": str(one["cue_text"].item()),
    }  # fmt: skip


def describe_failed(one: xr.Dataset) -> str:
    """Return how many trainings of each network failed."""
    counts = [(name, *(int(one[kind].sel(network=name).sum()) for kind in ("failed", "seeds")))
              for name in one["network"].values.tolist()]  # fmt: skip
    parts = (f"{failed} of {count_noun(seeds, 'training')} of {name_network(name)}" for name, failed, seeds in counts)
    return f"Failed: {join_words(parts)}."


def name_network(network: str) -> str:
    """Return a network in words."""
    return {TUNED: "the fine-tuned model", "bag of vectors": "the bag of vectors"}.get(network, f"the {network}")


def report_cues(results: Results, values: dict[str, Any]) -> list[Part]:
    """Return the cue in every set, the strongest cues, and those of the paper where the data are ARCT."""
    one, cues = results["numbers"].isel(task=0), results["cues"]
    cue, train = values["cue"], Sample(CAPTIONS, f"{int(one['whole_train']):,} training examples")
    favours = "" if int(one["cue_label"]) < 0 else f", which points to class {int(one['cue_label'])}"
    said = f"The cue that is followed is “{cue}”{favours}." if cue else "No cue is significant in the training data."
    columns = [Quantity("points", "points", whole=True), Quantity("cue applies", "applicability", whole=True),
               Quantity("productivity", "cue_productivity"), Quantity("coverage", "cue_coverage"),
               Quantity("chance", "chance")]  # fmt: skip
    sets = to_frame(one, {"set": "set"}, columns if cue else [columns[0], columns[-1]])
    parts: list[Part] = [Paragraph(TEXTS["cues"].format(cue=said)),
                         values["every"].table("sets" if cue else "sets_alone", sets, cue=cue),
                         train.table("listed", cue_table(cues, values["judged"]), fewest=MIN_COUNT),
                         train.picture("cues_drawn", draw_cues(cues))]  # fmt: skip
    if "pattern_productivity" in cues:
        exclusive = describe_not(cues, paper.NOT, "exclusive")
        nearest = f"“{paper.NOT_OR}” in exactly one warrant: {describe_not(cues, paper.NOT_OR, 'exclusive')}"
        parts.append(Paragraph(TEXTS["not"].format(exclusive=exclusive, nearest=nearest)))
        parts.append(Sample(CAPTIONS, "all of ARCT").table("not_table", not_table(cues), paper.table_of_not()))
    return parts


def cue_table(cues: xr.Dataset, judged: str) -> pd.DataFrame:
    """Return the strongest cues of the training data."""
    return to_frame(cues.isel(cue=slice(LISTED)), {"cue": "cue"}, [
        Quantity("applies to", "applicability", {"split": "train"}, whole=True),
        Quantity("productivity", "productivity", {"split": "train"}),
        Quantity("coverage", "coverage", {"split": "train"}, interval=False),
        Quantity("gain", "gain", {"split": "train"}), Quantity("PMI (nats)", "pmi", {"split": "train"}),
        Quantity("p (Holm)", "productivity_p_adjusted", {"split": "train"}),
        Quantity(f"productivity in {judged}", "productivity", {"split": judged}),
    ])  # fmt: skip


def draw_cues(cues: xr.Dataset) -> Figure:
    """Draw productivity over coverage of the strongest cues of the training data."""
    return draw(cues.sel(split="train", drop=True).astype(float), "cues", title="")  # files are in single precision


def not_table(cues: xr.Dataset) -> pd.DataFrame:
    """Return productivity and coverage of "not", and of "not" or "n't", by variant and split."""
    columns = [Quantity(f"{negation}, {variant}: {name}", f"pattern_{name}", {"pattern": negation, "variant": variant})
               for negation in cues["pattern"].values.tolist() for variant in cues["variant"].values.tolist()
               for name in ("productivity", "coverage")]  # fmt: skip
    return to_frame(cues, {"printed": "split"}, columns)


def describe_not(cues: xr.Dataset, negation: str, variant: str) -> str:
    """Return productivity and coverage by split, such as train .73/.37."""
    part = cues.sel(pattern=negation, variant=variant)
    pairs = zip(part["pattern_productivity"].values, part["pattern_coverage"].values, strict=True)
    splits = part["printed"].values.tolist()
    return join_words(f"{split} {right:.2f}/{share:.2f}" for split, (right, share) in zip(splits, pairs, strict=True))


def report_parts(one: xr.Dataset, inputs: Sample, values: dict[str, Any]) -> list[Part]:
    """Return the accuracy of every network with every part of the input."""
    name, theirs = ("accuracy", paper.table_of_best()) if values["data"] == "ARCT" else ("accuracy_alone", None)
    table = inputs.table(name, accuracy_table(one), theirs, judged=values["judged"])
    return [Paragraph(TEXTS["parts"]), table, values["every"].picture("accuracy_drawn", draw_accuracy(one))]


def accuracy_table(one: xr.Dataset) -> pd.DataFrame:
    """Return mean, median and largest accuracy over all seeds, failed ones, and that of the others, in %."""
    data = one.sel(set=str(one["judged"].item()))
    return to_frame(data, ROWS, [
        *(Quantity(name, f"accuracy_{short}", scale=100)
          for name, short in (("mean", "mean"), ("median", "median"), ("largest", "max"))),
        Quantity("seeds", "seeds", whole=True), Quantity("failed", "failed", whole=True),
        Quantity("without failed", "accuracy", scale=100), Quantity("less the first part", "gain_change", scale=100),
    ])  # fmt: skip


def draw_accuracy(one: xr.Dataset) -> Figure:
    """Draw the accuracy by part of the input, a panel for each set."""
    data = select_interval(one, "accuracy", 100).rename(network="lens").reset_coords(drop=True)
    panels = {f"{name}": data.sel(set=name, drop=True) for name in one["set"].values.tolist()}
    return interval_facets({"accuracy (%)": panels}, x="part")


def report_follow(one: xr.Dataset, inputs: Sample, values: dict[str, Any]) -> list[Part]:
    """Return how often networks follow the cue, and their accuracy by where it points."""
    if not values["cue"]:
        return [Paragraph(TEXTS["no heads"])]
    data = one.sel(set=values["judged"], part=ALL)
    columns = [Quantity("follows the cue", "follow", scale=100),
               *(Quantity(f"right where the cue is {case}", "where", {"case": case}, scale=100)
                 for case in one["case"].values.tolist())]  # fmt: skip
    frame = to_frame(data, {"network": "network"}, columns)
    if frame.empty:
        return [Paragraph(TEXTS["nothing learned"])]
    table = inputs.table("follow_table", frame, judged=values["judged"])
    return [Paragraph(TEXTS["follow"]), table, values["every"].picture("follow_drawn", draw_follow(one))]


def draw_follow(one: xr.Dataset) -> Figure:
    """Draw the accuracy by where the cue points, a panel for each set."""
    data = select_interval(one.sel(part=ALL), "where", 100).rename(network="lens").reset_coords(drop=True)
    panels = {f"{name}": data.sel(set=name, drop=True) for name in one["set"].values.tolist()}
    return interval_facets({"accuracy (%)": panels}, x="case", label="the cue points")


def report_fair(one: xr.Dataset, inputs: Sample) -> list[Part]:
    """Return the accuracy on the adversarial or balanced set."""
    name = str(one["fair_set"].item())
    if not name:
        return [Paragraph(TEXTS["no fair"])]
    ends = [float(one[f"cue_productivity{end}"].sel(set=name)) for end in ENDS]
    said = TEXTS["fair" if one["cue_text"].item() else "no heads"].format(name, *ends)
    said += f" {TEXTS[name].format(judged=one['judged'].item())}" if name in TEXTS else ""
    frame = to_frame(one.sel(set=name), ROWS, [Quantity("accuracy", "accuracy", scale=100),
                     Quantity("mean, all seeds", "accuracy_mean", scale=100),
                     Quantity("median", "accuracy_median", scale=100),
                     Quantity("largest", "accuracy_max", scale=100)])  # fmt: skip
    points = Sample(CAPTIONS, f"{int(one['points'].sel(set=name)):,} points of “{name}”", inputs.reduced)
    return [Paragraph(said), points.table("fair_table", frame)]


def report_heads(results: Results, inputs: Sample) -> list[Part]:
    """Return where attention to the cue differs between points got by the cue and the others."""
    one, heads = results["numbers"].isel(task=0), results.get("heads")
    if heads is None:
        return [Paragraph(TEXTS["nothing learned" if one["cue_text"].item() else "no heads"])]
    text = TEXTS["heads"].format(by_cue=float(one["by_cue"]), others=float(one["others"]))
    if not np.isfinite(heads["difference"].values).any():
        return [Paragraph(text), Paragraph("One of the groups has too few points to compare.")]
    columns = [Quantity("largest difference", "head_difference_change"), Quantity("layer", "best_layer", whole=True),
               Quantity("head", "best_head", whole=True), Quantity("significant heads", "significant", whole=True),
               Quantity("seeds with any", "significant_seeds", whole=True)]  # fmt: skip
    frame = to_frame(one, {"lens": "attention", "query": "from"}, columns)
    cued = Sample(CAPTIONS, f"{float(one['by_cue'] + one['others']):.0f} points with the cue", inputs.reduced)
    return [Paragraph(text), cued.picture("heads_drawn", draw_heads(heads)), cued.table("heads_table", frame)]


def draw_heads(heads: xr.Dataset) -> Figure:
    """Draw the mean difference of every head, by kind of attention and by source."""
    return heat_facets(heads["difference"].mean("seed"), label="difference", rows="lens", columns="query", y="layer",
                       signed=True, scale="row", names={"cls": "from [CLS]", "all": "from all tokens"})  # fmt: skip
