"""The report: verdicts first, then every table and figure of the paper, then what it could not say."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import xarray as xr

from headscope.core.document import Document, Paragraph, Part, Section
from headscope.core.provenance import read_provenance
from headscope.core.study import Results
from headscope.experiments.claims import (
    HOLDS,
    NOT_REPRODUCED,
    REFUTED,
    UNDECIDED,
    JudgedClaim,
    answer_seeds,
    judge,
)
from headscope.experiments.one_head import show_head
from headscope.experiments.rendering import report, sentences
from headscope.experiments.rendering.layers import draw_by_layer, name_layers
from headscope.experiments.rendering.report import paragraphs, sample_inputs, sample_maps
from headscope.experiments.seeds import combine_seeds, mark_collapsed
from headscope.experiments.summary import count_inputs, list_tasks
from headscope.experiments.template import fill_template, join_lines
from headscope.patterns import NAMES
from headscope.plotting.facets import heat_facets, interval_facets, stacked_shares
from headscope.reporting.frames import TableColumn, to_frame
from headscope_studies.effective_attention import claims, paper
from headscope_studies.effective_attention.claims import LOSES, judge_claims
from headscope_studies.effective_attention.norms import compare_norms, report_norms

TEXTS, CAPTIONS = report.read_prose(__package__)
ROWS = {"task": "task", "lens": "attention"}
SHOWN = ["raw", "effective", "paper"]
TOKENS = {"cls": "[CLS]", "sep": "[SEP]"}
WAYS = {"in place": "effective in place, ours", "maps": "every effective map, ours", "svd": "every map, full SVD"}
SIGNED = {"size": "signed", "several": "max"}


def _list_special() -> list[TableColumn]:
    """Return the weights on special tokens, their changes, and the weights without their signs."""
    columns = []
    for token, name in TOKENS.items():
        signed, absolute = {"token": token, **SIGNED}, {"token": token, "size": "absolute", "several": "max"}
        columns += [
            TableColumn(name, "weight", signed),
            TableColumn(f"{name} change", "weight_change", signed),
            TableColumn(f"{name} absolute", "weight", absolute, interval=False),
        ]
    return columns


def _list_published() -> list[TableColumn]:
    """Return the weights on special tokens by both averages."""
    columns = []
    for token, name in TOKENS.items():
        columns += [
            TableColumn(f"{name}, ours", "weight", {"token": token, **SIGNED}, interval=False),
            TableColumn(f"{name}, as published", "published_weight", {"token": token}, interval=False),
        ]
    return columns


COLUMNS = {
    "table_2": [TableColumn(letter, "share", {"pattern": name}, scale=100) for name, letter in paper.LETTERS.items()],
    "type_weights": [
        TableColumn(TOKENS.get(name, name), "type_weight", {"type": name, **SIGNED})
        for name in ("noun", "pronoun", "verb", "punctuation", "cls", "sep")
    ],
    "special": _list_special(),
    "counted": [TableColumn(letter, "counted", {"pattern": name}, scale=100) for name, letter in paper.LETTERS.items()],
    "several": [
        TableColumn(
            f"{TOKENS.get(name, name)}, {several}",
            "type_weight",
            {"type": name, "size": "signed", "several": several},
            interval=False,
        )
        for name in ("noun", "punctuation", "sep")
        for several in ("max", "mean", "sum")
    ],
    "published": _list_published(),
    "sink": [
        TableColumn("sink", "sink_mean"),
        TableColumn("sink change", "sink_mean_change"),
        TableColumn("entropy", "dispersion"),
        TableColumn("entropy change", "dispersion_change"),
        TableColumn("relative change", "distance"),
    ],
}


def fill_text(name: str, /, **values: Any) -> str:
    """Return a text of prose.md, filled with values, every paragraph in one line."""
    return join_lines(fill_template(TEXTS[name], **values)).strip()


JUDGED = fill_text(
    "judged",
    share=claims.SHARE.text,
    weight=claims.WEIGHT.text,
    fewest=claims.FEWEST,
    collapse_rule=claims.COLLAPSE_RULE,
)
SAME = "All of this attention reaches the output: effective attention is the same."


def document(results: Results) -> Document:
    """Return the report on the results of the study."""
    measured, times = mark_collapsed(results["numbers"]), results.get("times")
    numbers = combine_seeds(measured)
    judged, tasks = judge_claims(measured, times), list_tasks(numbers)
    versions = {"max": judged} | {other: judge_claims(measured, times, other) for other in claims.SEVERAL[1:]}
    theirs = paper.table_1() if set(tasks) & set(paper.KINDS) else None
    inputs = sample_inputs(CAPTIONS, numbers)
    sizes, losses = fill_text("sizes", **find_sizes(numbers)), fill_text("losses", **find_losses(numbers, judged))
    before = (sizes, losses, report.describe_unlearned(numbers), fill_text("lenses"))
    differences = fill_text("differences", **find_differences(numbers, measured.sizes.get("seed", 1)))
    method = (*fill_text("method").split("\n\n"), f"**What differs from the paper.** {differences}")
    sections = [
        report.report_verdicts(inputs, judged, before, JUDGED),
        report.report_tasks(numbers, theirs, number=1),
        _report_patterns(numbers, judged),
        _report_types(numbers),
        *([Section("One head on one example", [show_head(results["maps"], 2, 8, SAME)])] if "maps" in results else []),
        _report_tuning(numbers),
        _report_appendix(numbers, results),
        _report_sinks(numbers),
        _report_lengths(numbers, measured),
        report.report_scores(inputs, numbers, fill_text("in place")),
        report_norms(inputs, numbers, fill_text("beside norms", **compare_norms(numbers))),
        report.report_thresholds(inputs, judged),
        Section("Several tokens of a type", report.report_versions(inputs, versions)),
        Section("How it was measured, and what differs from the paper", paragraphs(*method)),
    ]
    short = sum(count_inputs(numbers, "at most d").values())
    own = [claim for claim in judged if claim.claim.source == "sun2021"]
    lead = fill_text("lead", short=f"{short:,}", **report.study_values(numbers, own))
    cited = ["sun2021", "brunner2020", "kovaleva2019", "kobayashi2020", "clark2019"]
    title = "Effective attention: what the published comparison shows"
    cited += ["webster2018"] if "GAP" in tasks else []
    return Document(title, lead, sections, cited, [{"name": "the study", **read_provenance(numbers)}])


def _report_patterns(numbers: xr.Dataset, judged: list[JudgedClaim]) -> Section:
    tasks, maps = list_tasks(numbers), sample_maps(CAPTIONS, numbers, paper.MAPS)
    parts: list[Part] = [
        Paragraph(fill_text("patterns", patterns=find_patterns(judged))),
        maps.table("table_2", role_table(numbers, "table_2", "tuned"), paper.table_2(tasks)),
        *paragraphs(fill_text("faults") if set(tasks) & set(paper.KINDS) else ""),
        maps.table("counted", role_table(numbers, "counted", "tuned")),
        maps.table("table_2_base", role_table(numbers, "table_2", "base")),
    ]
    return Section("Patterns of attention", parts)


def _report_types(numbers: xr.Dataset) -> Section:
    inputs, heads = sample_inputs(CAPTIONS, numbers), numbers["head_type"].sel(role="tuned", lens=SHOWN)
    look: dict[str, Any] = {"rows": "task", "columns": "lens", "y": "type", "scale": "row", "names": TOKENS}
    parts: list[Part] = [
        inputs.picture("figure_1", heat_facets(heads, label="weight", signed=True, **look)),
        inputs.table("type_weights", role_table(numbers, "type_weights", "tuned")),
        inputs.table("several", role_table(numbers, "several", "tuned")),
        inputs.table("type_weights_base", role_table(numbers, "type_weights", "base")),
        *paragraphs(fill_text("twins", **find_twins(numbers))),
    ]
    return Section("Delimiters and linguistic features", parts)


def _report_tuning(numbers: xr.Dataset) -> Section:
    inputs = sample_inputs(CAPTIONS, numbers)
    look: dict[str, Any] = {"rows": "lens", "columns": "task", "y": "layer"}
    cosines, named = numbers["similarity"].sel(lens=SHOWN), numbers.assign_coords(layer=name_layers(numbers))
    columns = [TableColumn(str(lens), "similarity_layer", {"lens": lens}) for lens in numbers["lens"].values]
    parts: list[Part] = [
        inputs.picture("figure_3", heat_facets(cosines, label="cosine before and after tuning", **look)),
        inputs.table("similarity", to_frame(named, {"task": "task", "layer": "layer"}, columns)),
    ]
    return Section("What fine-tuning changes", parts)


def _report_appendix(numbers: xr.Dataset, results: Results) -> Section:
    """Return what the paper has in its appendix: evaluation time, and Figures 4 to 7."""
    inputs, maps = sample_inputs(CAPTIONS, numbers), sample_maps(CAPTIONS, numbers, paper.MAPS)
    shares = numbers["share"].sel(role="tuned", length="all", lens=SHOWN)
    look: dict[str, Any] = {"rows": "lens", "columns": "task", "y": "layer", "signed": True}
    weights = numbers["head_weight"].sel(role="tuned", lens=SHOWN)
    parts: list[Part] = []
    if "times" in results:
        parts += report.report_times(CAPTIONS, results["times"], WAYS, paper.table_3()).parts
    parts.append(maps.picture("figure_4", stacked_shares(shares, along="task", label="share of maps")))
    for number, (token, name) in enumerate(TOKENS.items(), 5):
        figure = heat_facets(weights.sel(token=token, drop=True), label=f"weight on {name}", **look)
        parts.append(inputs.picture(f"figure_{number}", figure))
    for name, role in (("special", "tuned"), ("special_base", "base"), ("published", "tuned")):
        parts.append(inputs.table(name, role_table(numbers, name.removesuffix("_base"), role)))
    if "maps" in results:
        parts.append(show_head(results["maps"], 7, None, SAME))
    return Section("The paper's appendix: time, and attention over layers and heads", parts)


def _report_sinks(numbers: xr.Dataset) -> Section:
    """Return which token is the sink, what it loses, and how dispersed attention is: none of it is in the paper."""
    tuned, inputs = numbers.sel(role="tuned", length="all"), sample_inputs(CAPTIONS, numbers)
    shares = {
        NAMES[str(name)]: report.select_interval(tuned.sel(pattern=name, lens=SHOWN), "share", 100)
        for name in tuned["pattern"].values
    }
    kinds = [
        TableColumn(TOKENS.get(str(kind), str(kind)), "sink_kind", {"sink": kind}, scale=100)
        for kind in tuned["sink"].values
    ]
    named, weight = tuned.assign_coords(layer=name_layers(numbers)), {"weight on the sink": tuned.sel(lens=SHOWN)}
    maps = sample_maps(CAPTIONS, numbers, paper.MAPS)
    parts: list[Part] = [
        inputs.table("sink", role_table(numbers, "sink", "tuned")),
        inputs.picture("sink_by_layer", draw_by_layer(weight, {"weight on the sink": "sink_weight"})),
        inputs.table("sink_kind", to_frame(named, {"task": "task", "layer": "layer"}, kinds)),
        maps.picture("shares", interval_facets({"share of maps (%)": shares}, x="task")),
    ]
    return Section("Sinks, dispersion, and shares with their intervals", parts)


def _report_lengths(numbers: xr.Dataset, measured: xr.Dataset) -> Section:
    inputs, longer = sample_inputs(CAPTIONS, numbers), {"length": "more than d"}
    titles = {f"{'[CLS] to' if name == 'punctuation' else 'weight on'} {name}": LOSES[name] for name in LOSES}
    parts: list[Part] = [
        Paragraph(fill_text("lengths", lengths=find_lengths(measured))),
        inputs.table("same_by_length", report.same_table(numbers)),
        inputs.picture("by_length", report.draw_by_length(numbers.sel(role="tuned", lens=SHOWN), titles)),
        inputs.table("lengths", report.length_table(numbers)),
    ]
    if not int(numbers["n"].sel(longer).sum()):
        parts.append(Paragraph(fill_text("none longer")))
    else:
        size, inputs = int(numbers["value_size"].values[0]), sample_inputs(CAPTIONS, numbers, **longer)
        maps = sample_maps(CAPTIONS, numbers, paper.MAPS, **longer)
        parts += [
            maps.table("table_2_longer", role_table(numbers, "table_2", "tuned", **longer), size=size),
            inputs.table("type_weights_longer", role_table(numbers, "type_weights", "tuned", **longer), size=size),
            inputs.table("special_longer", role_table(numbers, "special", "tuned", **longer), size=size),
        ]
    return Section("Length and padding", parts)


def role_table(numbers: xr.Dataset, name: str, role: str, length: str = "all") -> pd.DataFrame:
    """Return shares of patterns (table_2), or weights on types of tokens or on special tokens, for one model."""
    return to_frame(numbers.sel(role=role, length=length), ROWS, COLUMNS[name])


def find_sizes(numbers: xr.Dataset) -> dict[str, Any]:
    """Return d, the inputs of at most d tokens of each task, and what is left of attention in the longer ones."""
    share = numbers["effective_share"].sel(role="tuned", lens="effective", length="more than d")
    short, longer = (count_inputs(numbers, length) for length in ("at most d", "more than d"))
    return {
        "size": int(numbers["value_size"].values[0]),
        "short": [(short[task], task) for task in list_tasks(numbers)],
        "longer": [(float(share.sel(task=task)), longer[task], task) for task in list_tasks(numbers) if longer[task]],
    }


def find_losses(numbers: xr.Dataset, judged: Sequence[JudgedClaim]) -> dict[str, Any]:
    """Return how each token's loss of weight comes out by task, and the share of inputs where nothing can differ."""
    known = {claim.text: claim for claim in judged}
    same = 100 * numbers["same_inputs"].sel(role="base", length="all")
    return {
        "losses": {name: group_tasks(known[claim.text]) for name, claim in LOSES.items() if claim.text in known},
        "same": [(float(same.sel(task=task)), task) for task in list_tasks(numbers)],
    }


def group_tasks(judged: JudgedClaim) -> dict[str, list[tuple[str, str]]]:
    """Return the tasks of each verdict on a loss with their numbers; of those not reproduced, which gain.

    The paper's code is shown only where it differs.
    """
    gains = replace(judged.claim, direction="rises")
    groups: dict[str, list[tuple[str, str]]] = {}
    for task in judged.tasks:
        gained = task.verdict == NOT_REPRODUCED and answer_seeds(gains, task.intervals) == "yes"
        differs = task.verdict == REFUTED or (task.exact and task.verdict != HOLDS)
        figures = task.figures if differs else task.figures.partition(";")[0]
        groups.setdefault("gains" if gained else task.verdict, []).append((task.task, figures))
    return groups


def find_lengths(measured: xr.Dataset) -> dict[str, dict[str, dict[str, list[str]]]]:
    """Return at which lengths each token loses weight exactly, only with padding, and may: by verdict and task.

    Intervals are corrected for the number of lengths and tasks, not for verdicts on other claims.
    """
    tuned = measured.sel(role="tuned")
    counts, ranges = combine_seeds(tuned[["n"]])["n"], sentences.list_ranges(tuned)
    lengths = {}
    for name, claim in LOSES.items():
        groups: dict[str, dict[str, list[str]]] = {HOLDS: {}, REFUTED: {}, UNDECIDED: {}}
        judged = [judge(claim, tuned.sel(length=length), tests=len(ranges) * tuned.sizes["task"]) for length in ranges]
        for task in list_tasks(tuned):
            for length, verdicts in zip(ranges, judged, strict=True):
                (verdict,) = (verdict for verdict in verdicts.tasks if verdict.task == task)
                kind = HOLDS if verdict.exact else verdict.verdict
                if int(counts.sel(task=task, length=length)) and kind in groups:
                    groups[kind].setdefault(task, []).append(length)
        lengths[name] = {kind: tasks for kind, tasks in groups.items() if tasks}
    return lengths


def find_patterns(judged: Sequence[JudgedClaim]) -> list[tuple[str, list[str], list[str]]]:
    """Return every claim on patterns with the tasks on which it holds exactly, and on which it is undecided."""
    return [
        (
            claim.text.rstrip("."),
            [task.task for task in claim.tasks if task.exact],
            [task.task for task in claim.tasks if task.verdict == UNDECIDED],
        )
        for claim in judged
        if claim.claim in claims.PATTERNS
    ]


def find_twins(numbers: xr.Dataset) -> dict[str, list[str]]:
    """Return the tasks on which the last layer does not distinguish [CLS] from [SEP], after tuning and before too."""
    data = numbers.sel(length="all")
    tuned, base = (
        [task for task in list_tasks(data) if claims.find_twins(data.sel(role=role, task=task))]
        for role in ("tuned", "base")
    )
    return {"tuned": tuned, "before": [task for task in tuned if task in base]}


def find_differences(numbers: xr.Dataset, seeds: int = 1) -> dict[str, Any]:
    """Return what differs from the paper: tasks, value dimensions, tuning and seeds."""
    own = [task for task in list_tasks(numbers) if task not in paper.KINDS]
    return {**report.study_values(numbers), "own": own, "seeds": seeds, "theirs": paper.VALUE_SIZE}
