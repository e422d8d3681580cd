"""The report: verdicts first, then patterns, fine-tuning, disabled heads, starts and relations."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Document, Paragraph, Part, Section
from headscope.core.provenance import read_provenance
from headscope.core.study import Results
from headscope.experiments.claims import JudgedClaim
from headscope.experiments.relation_heads import ENCODED, LARGER, find_best_head
from headscope.experiments.rendering import report
from headscope.experiments.rendering.head_figures import draw_heterogeneous, draw_relation
from headscope.experiments.rendering.layers import name_layers, name_least
from headscope.experiments.rendering.report import Sample, paragraphs, sample_inputs, sample_maps
from headscope.experiments.rendering.sentences import describe_tests, verdict_numbers, verdict_table, verdicts_by_task
from headscope.experiments.seeds import combine_seeds, describe_seeds
from headscope.experiments.summary import list_tasks
from headscope.plotting.facets import heat_facets, interval_facets, stacked_shares
from headscope.reporting.frames import ENDS, Quantity, to_frame
from headscope_studies.dark_secrets import DarkSecrets, claims, paper, starts
from headscope_studies.dark_secrets.disabled import count_significant, name_best

TEXTS, CAPTIONS = report.read_prose(__package__)
JUDGED = TEXTS["judged"].format(
    share=claims.SHARE.text, gain=claims.GAIN.text, hardly=claims.HARDLY.text, pretrained=claims.PRETRAINED.text
)
TITLE = "What heads do and which of them matter: what the published study shows"


def document(results: Results) -> Document:
    """Return the report on the results of the study."""
    numbers, related = combine_seeds(results["numbers"]), results.get("relations")
    groups = claims.judge_claims(results["numbers"], related)
    inputs = sample_inputs(CAPTIONS, numbers)
    every = [claim for group in groups.values() for claim in group]
    said = (describe_seeds(results["numbers"]), report.describe_unlearned(numbers))
    values = report.study_values(numbers, every)
    sections = [
        _report_verdicts(inputs, groups, said),
        report.report_tasks(numbers, None),
        Section("Patterns", report_patterns(numbers)),
        Section("What fine-tuning changes", report_similarity(numbers, inputs)),
        Section("Heads and layers disabled", report_disabled(numbers, inputs, count_disabled(results["numbers"]))),
        Section("Pretrained and random weights", report_starts(numbers, inputs)),
        *([] if related is None else [Section("Relations between words", report_relations(results, groups))]),
        report.report_thresholds(inputs, every),
        Section("How it was measured, and what differs from the paper",
                [inputs.table("verdict_numbers", verdict_numbers(every)),
                 *paragraphs(*TEXTS["method"].format(**values).split("\n\n"))]),
    ]  # fmt: skip
    cited = [*DarkSecrets.cites, *(["webster2018"] if "GAP" in list_tasks(numbers) else [])]
    facts = [{"name": "the study", **read_provenance(numbers)}]
    facts += [] if related is None else [{"name": "relations", **read_provenance(related)}]
    return Document(TITLE, TEXTS["lead"].format(**values), sections, cited, facts)


def _report_verdicts(inputs: Sample, groups: dict[str, list[JudgedClaim]], said: Sequence[str]) -> Section:
    """Return the section with the verdicts on tasks and on relations."""
    every = [claim for group in groups.values() for claim in group]
    parts: list[Part] = [*paragraphs(*said), inputs.table("verdicts", verdict_table(every))]
    parts += paragraphs(JUDGED, describe_tests(every))
    several = len(groups[""][0].tasks) > 1
    parts += [inputs.table("verdicts_by_task", verdicts_by_task(groups[""]))] if several else []
    return Section("What holds", parts)


def report_patterns(numbers: xr.Dataset) -> list[Part]:
    """Return the shares of pattern classes, beside the paper's range of heterogeneous maps."""
    maps, (low, high) = sample_maps(CAPTIONS, numbers, paper.MAPS), paper.HETEROGENEOUS
    columns = [Quantity(letter, "share", {"pattern": name}, scale=100) for name, letter in paper.LETTERS.items()]
    frame = to_frame(numbers.sel(lens="raw"), {"task": "task"}, columns)
    several = numbers.sizes["task"] > 1  # one bar would say what the table says
    bars = stacked_shares(numbers["share"], along="task", label="share of maps") if several else None
    return [
        Paragraph(TEXTS["patterns"].format(low=100 * low, high=100 * high)),
        *([] if bars is None else [maps.picture("figure_2", bars)]),
        maps.picture("heterogeneous", draw_heterogeneous(numbers, paper.HETEROGENEOUS)),
        maps.table("shares", frame, paper.table_of_shares()),
    ]


def report_similarity(numbers: xr.Dataset, inputs: Sample) -> list[Part]:
    """Return the cosine of maps before and after fine-tuning, by layer and head."""
    names = {task: name_least(numbers.sel(task=task), "similarity_layer", ["raw"]) for task in list_tasks(numbers)}
    least = "; ".join(f"{layers.removeprefix('raw ')} on {task}" for task, layers in names.items())
    named = numbers.assign_coords(layer=name_layers(numbers)).sel(lens="raw")
    frame = to_frame(named, {"task": "task", "layer": "layer"}, [Quantity("cosine", "similarity_layer")])
    look: dict[str, Any] = {"rows": "lens", "columns": "task", "y": "layer", "label": "cosine before and after tuning"}
    return [
        Paragraph(TEXTS["similarity"].format(least=least)),
        inputs.picture("cosine", heat_facets(numbers["similarity"], **look)),
        inputs.table("similarity", frame),
    ]


def report_disabled(numbers: xr.Dataset, inputs: Sample, counted: str) -> list[Part]:
    """Return the change of the score without each head, without each layer, and without the best of them."""
    metrics = dict(zip(list_tasks(numbers), map(str, numbers["metric"].values), strict=True))
    label = f"change of the score ({', '.join(dict.fromkeys(metrics.values()))})"
    heads = heat_facets(100 * numbers["head_change"].expand_dims(lens=["one head disabled"]), rows="lens",
                        columns="task", y="layer", label=f"{label}, points", signed=True)  # fmt: skip
    lines = report.select_interval(numbers, "layer_change", 100).expand_dims(lens=["one layer disabled"])
    layers = {"change (points)": {task: lines.sel(task=task) for task in list_tasks(numbers)}}
    return [
        Paragraph(TEXTS["disabled"].format(counted=counted)),
        inputs.picture("heads", heads),
        inputs.picture("layers", interval_facets(layers, x="layer", label="layer", lines=True)),
        inputs.table("best", best_table(numbers)),
    ]


def best_table(numbers: xr.Dataset) -> pd.DataFrame:
    """Return the mean change over heads, and the best head and layer of every task, in points."""
    columns = [Quantity("mean over heads", "mean_head_change", scale=100),
               Quantity("best head", "best_head_change", scale=100),
               Quantity("best layer", "best_layer_change", scale=100)]  # fmt: skip
    frame = to_frame(numbers, {"task": "task"}, columns)
    for kind in ("head", "layer"):
        frame[f"the {kind}"] = [name_best(numbers.sel(task=task), kind) for task in frame.index]
    return frame


def count_disabled(measured: xr.Dataset) -> str:
    """Return how many heads can be disabled without a lower score, and for how many a loss or a gain is significant."""
    numbers, parts = combine_seeds(measured), []
    every = " with every seed" if "seed" in measured.dims else ""
    for task in list_tasks(numbers):
        change, (losses, gains) = numbers["head_change"].sel(task=task), count_significant(measured.sel(task=task))
        parts.append(
            f"On {task} the score is not lower without {int((change >= 0).sum())} of {change.size} heads, one at a "
            f"time; {losses} losses and {gains} gains are significant{every}."
        )
    return " ".join(parts)


def report_starts(numbers: xr.Dataset, inputs: Sample) -> list[Part]:
    """Return the scores from every start, and on which tasks the tuned model learned something."""
    values = report.study_values(numbers)
    known = bool(np.isfinite(numbers["pretraining_gain_change"].values).any())
    text = TEXTS["starts"] if known else TEXTS["tuned before"]
    columns = [Quantity("metric", "metric")]
    columns += [
        Quantity(name, "start_score", {"start": name}, interval=name != starts.MAJORITY) for name in starts.STARTS
    ]
    columns += [Quantity("gain by pretraining", "pretraining_gain_change")]
    frame = to_frame(numbers, {"task": "task"}, columns)
    text = text.format(tuning=values["tuning"], learned=report.describe_learned(numbers))
    return [Paragraph(text), inputs.table("starts", frame)]


def report_relations(results: Results, groups: dict[str, list[JudgedClaim]]) -> list[Part]:
    """Return the heads that attend to words in a relation, between two examples."""
    related, n = results["relations"], int(read_provenance(results["relations"])["n"])
    sample = Sample(CAPTIONS, f"{n:,} texts")
    parts: list[Part] = [
        Paragraph(TEXTS["relations"].format(n=n, encoded=ENCODED)),
        sample.table(
            "verdicts_by_relation", verdicts_by_task(groups[claims.name_relations("")]).T.rename_axis("relation")
        ),
    ]
    if "shown_relation" in results:
        parts.append(sample.picture("relation", draw_relation(related, results["shown_relation"])))
    return [*parts, sample.table("relations", relation_table(related))]


def relation_table(related: xr.Dataset) -> pd.DataFrame:
    """Return a row for each relation: its best head with weights by direction, and how many heads encode it."""
    rows = []
    for name in list_tasks(related):
        part = related.sel(task=name)
        layer, head = find_best_head(part)
        best = part.sel(layer=layer, head=head)
        row: dict[str, Any] = {"relation": name, "texts": int(part["n"]), "head": f"L{layer}H{head}"}
        row |= {str(way): float(best["weight"].sel(direction=way)) for way in related["direction"].values}
        row["same distance"] = float(best["baseline"].sel(direction=LARGER))
        row |= {f"above it{end}": float(best[f"gain{end}"].sel(direction=LARGER)) for end in ENDS}
        row["p"] = float(best["gain_p_adjusted"].sel(direction=LARGER))
        size = part.sizes["layer"] * part.sizes["head"]
        row["heads that encode it"] = f"{round(size * float(part['encoding']))} of {size}"
        rows.append(row)
    return pd.DataFrame(rows).set_index("relation")
