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
from headscope.experiments.rendering.report import Captioner, paragraphs, sample_inputs, sample_maps
from headscope.experiments.rendering.sentences import describe_tests, verdict_numbers, verdict_table, verdicts_by_task
from headscope.experiments.seeds import combine_seeds, describe_seeds
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import fill_template
from headscope.plotting.facets import heat_facets, interval_facets, stacked_shares
from headscope.reporting.frames import ENDS, TableColumn, to_frame
from headscope_studies.dark_secrets import DarkSecrets, claims, paper, starts
from headscope_studies.dark_secrets.disabled import count_raw, count_significant, name_best

TEXTS, CAPTIONS = report.read_prose(__package__)
JUDGED = fill_template(TEXTS["judged"], claims=claims)
RELATED = {"relations": "Relations between words", "semantic": "Semantic links between words"}
"""Titles of the sections on related words, by the names of results."""

TITLE = "What heads do and which of them matter: what the published study shows"


def document(results: Results) -> Document:
    """Return the report on the results of the study."""
    measured, related = results["numbers"], {name: results[name] for name in RELATED if name in results}
    data, groups = combine_seeds(measured), claims.judge_claims(measured, **related)
    judged = [claim for group in groups.values() for claim in group]
    inputs, values = sample_inputs(CAPTIONS, data), report.study_values(data, judged)
    introduction = (describe_seeds(measured), report.describe_unlearned(data))
    method = fill_template(TEXTS["method"], **values).split("\n\n")
    sections = [
        _report_verdicts(inputs, groups, introduction),
        report.report_tasks(data, None),
        Section("Patterns", report_patterns(data)),
        Section("What fine-tuning changes", report_similarity(data, inputs)),
        Section("Heads and layers disabled", report_disabled(measured, inputs)),
        Section("Pretrained and random weights", report_starts(data, inputs)),
        *(Section(RELATED[name], report_relations(results, groups, name)) for name in related),
        report.report_thresholds(inputs, judged),
        Section(
            "How it was measured, and what differs from the paper",
            [inputs.table("verdict_numbers", verdict_numbers(judged)), *paragraphs(*method)],
        ),
    ]
    cited = [*DarkSecrets.cites, *(["webster2018"] if "GAP" in list_tasks(data) else [])]
    facts = [{"name": "the study", **read_provenance(data)}]
    facts += [{"name": name, **read_provenance(data)} for name, data in related.items()]
    return Document(TITLE, fill_template(TEXTS["lead"], **values), sections, cited, facts)


def _report_verdicts(inputs: Captioner, groups: dict[str, list[JudgedClaim]], introduction: Sequence[str]) -> Section:
    """Return the section with the verdicts on tasks and on relations."""
    judged = [claim for group in groups.values() for claim in group]
    grid = report.picture_verdicts(inputs, report.draw_verdict_grid(groups[""]))
    content: list[Part] = [grid, *paragraphs(*introduction), inputs.table("verdicts", verdict_table(judged))]
    content += paragraphs(JUDGED, describe_tests(judged))
    several = len(groups[""][0].tasks) > 1
    content += [inputs.table("verdicts_by_task", verdicts_by_task(groups[""]))] if several else []
    return Section("What holds", content)


def report_patterns(data: xr.Dataset) -> list[Part]:
    """Return the shares of pattern classes, beside the paper's range of heterogeneous maps."""
    maps = sample_maps(CAPTIONS, data, paper.MAPS)
    columns = [TableColumn(letter, "share", {"pattern": name}, scale=100) for name, letter in paper.LETTERS.items()]
    frame = to_frame(data.sel(lens="raw"), {"task": "task"}, columns)
    several = data.sizes["task"] > 1  # one bar would say what the table says
    bars = stacked_shares(data["share"], along="task", label="share of maps") if several else None
    return [
        Paragraph(fill_template(TEXTS["patterns"], published=[100 * share for share in paper.HETEROGENEOUS])),
        *([] if bars is None else [maps.picture("figure_2", bars)]),
        maps.picture("heterogeneous", draw_heterogeneous(data, paper.HETEROGENEOUS)),
        maps.table("shares", frame, paper.table_of_shares()),
    ]


def report_similarity(data: xr.Dataset, inputs: Captioner) -> list[Part]:
    """Return the cosine of maps before and after fine-tuning, by layer and head."""
    least = {
        task: name_least(data.sel(task=task), "similarity_layer", ["raw"]).removeprefix("raw ")
        for task in list_tasks(data)
    }
    named = data.assign_coords(layer=name_layers(data)).sel(lens="raw")
    frame = to_frame(named, {"task": "task", "layer": "layer"}, [TableColumn("cosine", "similarity_layer")])
    look: dict[str, Any] = {"rows": "lens", "columns": "task", "y": "layer", "label": "cosine before and after tuning"}
    return [
        Paragraph(fill_template(TEXTS["similarity"], least=least)),
        inputs.picture("cosine", heat_facets(data["similarity"], **look)),
        inputs.table("similarity", frame),
    ]


def report_disabled(measured: xr.Dataset, inputs: Captioner) -> list[Part]:
    """Return the change of the score without each head, without each layer, and without the best of them."""
    data = combine_seeds(measured)
    metrics = ", ".join(dict.fromkeys(map(str, data["metric"].values)))
    changes = 100 * data["head_change"].expand_dims(lens=["one head disabled"])
    label = f"change of the score ({metrics}), points"
    heads = heat_facets(changes, rows="lens", columns="task", y="layer", label=label, signed=True)
    lines = report.select_interval(data, "layer_change", 100).expand_dims(lens=["one layer disabled"])
    layers = {"change (points)": {task: lines.sel(task=task) for task in list_tasks(data)}}
    text = fill_template(TEXTS["disabled"], tasks=count_disabled(measured), seeded="seed" in measured.dims)
    return [
        Paragraph(text),
        inputs.picture("heads", heads),
        inputs.picture("layers", interval_facets(layers, x="layer", label="layer", lines=True)),
        inputs.table("best", best_table(data)),
    ]


def best_table(data: xr.Dataset) -> pd.DataFrame:
    """Return the mean change over heads, and the best head and layer of every task, in points."""
    columns = [
        TableColumn("mean over heads", "mean_head_change", scale=100),
        TableColumn("best head", "best_head_change", scale=100),
        TableColumn("best layer", "best_layer_change", scale=100),
    ]
    frame = to_frame(data, {"task": "task"}, columns)
    for kind in ("head", "layer"):
        frame[f"the {kind}"] = [name_best(data.sel(task=task), kind) for task in frame.index]
    return frame


def count_disabled(measured: xr.Dataset) -> list[dict[str, Any]]:
    """Return by task without how many heads the score is not lower, and without how many it is significantly another.

    The first is counted seed by seed and averaged, as is `raw`, with p < 0.05 not corrected. Significant losses and
    gains are so with every seed.
    """
    rows = []
    for task in list_tasks(measured):
        change, (losses, gains) = measured["head_change"].sel(task=task), count_significant(measured.sel(task=task))
        heads = change.sizes["layer"] * change.sizes["head"]
        not_lower = float((change >= 0).mean()) * heads  # counted seed by seed, then averaged
        raw = heads * count_raw(measured.sel(task=task))
        rows.append(
            {"task": task, "heads": heads, "not_lower": not_lower, "losses": losses, "gains": gains, "raw": raw}
        )
    return rows


def report_starts(data: xr.Dataset, inputs: Captioner) -> list[Part]:
    """Return the scores from every start, and on which tasks the tuned model learned something."""
    text = fill_template(
        TEXTS["starts"],
        trained=bool(np.isfinite(data["pretraining_gain_change"].values).any()),
        tuning=report.study_values(data)["tuning"],
        learned=report.describe_learned(data),
    )
    columns = [TableColumn("metric", "metric")]
    columns += [
        TableColumn(name, "start_score", {"start": name}, interval=name != starts.MAJORITY) for name in starts.STARTS
    ]
    columns += [TableColumn("gain by pretraining", "pretraining_gain_change")]
    frame = to_frame(data, {"task": "task"}, columns)
    return [Paragraph(text), inputs.table("starts", frame)]


def report_relations(results: Results, groups: dict[str, list[JudgedClaim]], kind: str) -> list[Part]:
    """Return the heads that attend to words in a relation; of syntactic ones also a map between two examples."""
    related, n = results[kind], int(read_provenance(results[kind])["n"])
    sample, verdicts = Captioner(CAPTIONS, f"{n:,} texts"), verdicts_by_task(groups[claims.name_related(kind, "")])
    content: list[Part] = [
        Paragraph(fill_template(TEXTS[kind], n=n, encoded=ENCODED)),
        sample.table(f"verdicts_by_{kind}", verdicts.T.rename_axis("relation")),
    ]
    if kind == "relations" and "shown_relation" in results:
        content.append(sample.picture("relation", draw_relation(related, results["shown_relation"])))
    return [*content, sample.table(kind, relation_table(related))]


def relation_table(related: xr.Dataset) -> pd.DataFrame:
    """Return a row for each relation: its best head with weights by direction, and how many heads encode it."""
    rows = []
    for name in list_tasks(related):
        relation = related.sel(task=name)
        layer, head = find_best_head(relation)
        best = relation.sel(layer=layer, head=head)
        row: dict[str, Any] = {"relation": name, "texts": int(relation["n"]), "head": f"L{layer}H{head}"}
        row |= {
            str(direction): float(best["weight"].sel(direction=direction)) for direction in related["direction"].values
        }
        row["same distance"] = float(best["baseline"].sel(direction=LARGER))
        row |= {f"above it{end}": float(best[f"gain{end}"].sel(direction=LARGER)) for end in ENDS}
        row["p"] = float(best["gain_p_adjusted"].sel(direction=LARGER))
        size = relation.sizes["layer"] * relation.sizes["head"]
        row["heads that encode it"] = f"{round(size * float(relation['encoding']))} of {size}"
        rows.append(row)
    return pd.DataFrame(rows).set_index("relation")
