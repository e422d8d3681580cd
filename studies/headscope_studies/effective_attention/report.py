"""The report: verdicts first, then every table and figure of the paper, then what it could not say."""

from typing import Any

import pandas as pd
import xarray as xr

from headscope.core.document import Document, Paragraph, Part, Section
from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.core.study import Results
from headscope.experiments.claims import JudgedClaim
from headscope.experiments.one_head import show_head
from headscope.experiments.rendering import report, sentences
from headscope.experiments.rendering.layers import draw_by_layer, name_layers
from headscope.experiments.rendering.report import paragraphs, sample_inputs, sample_maps
from headscope.experiments.seeds import combine_seeds
from headscope.experiments.summary import list_tasks
from headscope.patterns import NAMES
from headscope.plotting.facets import heat_facets, interval_facets, stacked_shares
from headscope.reporting.frames import Quantity, to_frame
from headscope_studies.effective_attention import claims, paper
from headscope_studies.effective_attention.claims import LOSES, judge_claims
from headscope_studies.effective_attention.norms import report_norms

TEXTS, CAPTIONS = report.read_prose(__package__)
ROWS = {"task": "task", "lens": "attention"}
SHOWN = ["raw", "effective", "paper"]
TOKENS = {"cls": "[CLS]", "sep": "[SEP]"}
WAYS = {"in place": "effective in place, ours", "maps": "every effective map, ours", "svd": "every map, full SVD"}
WORDS = {"yes": "loses weight", "no": "loses no weight", "opposite": "gains weight", "moot": "does not occur",
         "unclear": "may or may not lose weight", "never": "loses no weight anywhere"}  # fmt: skip
COLUMNS = {
    "table_2": [Quantity(letter, "share", {"pattern": name}, scale=100) for name, letter in paper.LETTERS.items()],
    "type_weights": [Quantity(TOKENS.get(name, name), "type_weight", {"type": name, "size": "signed", "several": "max"})
                     for name in ("noun", "pronoun", "verb", "punctuation", "cls", "sep")],
    "special": [Quantity(title.format(name), variable, {"token": token, "size": size, "several": "max"},
                         interval=size == "signed")
                for token, name in TOKENS.items()
                for title, variable, size in (("{}", "weight", "signed"), ("{} change", "weight_change", "signed"),
                                              ("{} absolute", "weight", "absolute"))],
    "counted": [Quantity(letter, "counted", {"pattern": name}, scale=100) for name, letter in paper.LETTERS.items()],
    "several": [Quantity(f"{TOKENS.get(name, name)}, {several}", "type_weight",
                         {"type": name, "size": "signed", "several": several}, interval=False)
                for name in ("noun", "punctuation", "sep") for several in ("max", "mean", "sum")],
    "published": [Quantity(f"{name}, {title}", variable, {"token": token, **where}, interval=False)
                  for token, name in TOKENS.items()
                  for title, variable, where in (("ours", "weight", {"size": "signed", "several": "max"}),
                                                 ("as published", "published_weight", {}))],
    "sink": [Quantity("sink", "sink_mean"), Quantity("sink change", "sink_mean_change"),
             Quantity("entropy", "dispersion"), Quantity("entropy change", "dispersion_change"),
             Quantity("relative change", "distance")],
}  # fmt: skip
JUDGED = TEXTS["judged"].format(share=claims.SHARE.text, weight=claims.WEIGHT.text)
SAME = "All of this attention reaches the output: effective attention is the same."


def document(results: Results) -> Document:
    """Return the report on the results of the study."""
    measured, times = results["numbers"], results.get("times")
    numbers = combine_seeds(measured)
    judged, facts, tasks = judge_claims(measured, times), read_provenance(numbers), list_tasks(numbers)
    versions = {"max": judged} | {other: judge_claims(measured, times, other) for other in claims.SEVERAL[1:]}
    theirs = paper.table_1() if set(tasks) & set(paper.KINDS) else None
    inputs = sample_inputs(CAPTIONS, numbers)
    sizes, losses = sentences.describe_sizes(numbers, TEXTS), describe_losses(numbers, judged)
    said = (sizes, losses, report.describe_unlearned(numbers), TEXTS["lenses"])
    seeds = measured.sizes.get("seed", 1)
    differences = f"**What differs from the paper.** {describe_differences(numbers, seeds)}"
    sections = [
        report.report_verdicts(inputs, judged, said, JUDGED),
        report.report_tasks(numbers, theirs, number=1),
        _report_patterns(numbers, judged),
        _report_types(numbers),
        *([Section("One head on one example", [show_head(results["maps"], 2, 8, SAME)])] if "maps" in results else []),
        _report_tuning(numbers),
        _report_appendix(numbers, results),
        _report_sinks(numbers),
        _report_lengths(numbers, measured),
        report.report_scores(inputs, numbers, TEXTS["in place"]),
        report_norms(inputs, numbers, TEXTS["beside norms"]),
        report.report_thresholds(inputs, judged),
        Section("Several tokens of a type", report.report_versions(inputs, versions)),
        Section("How it was measured, and what differs from the paper",
                paragraphs(*TEXTS["method"].split("\n\n"), differences)),
    ]  # fmt: skip
    own = [claim for claim in judged if claim.claim.source == "sun2021"]
    lead = TEXTS["lead"].format(**report.study_values(numbers, own))
    cited = ["sun2021", "brunner2020", "kovaleva2019", "kobayashi2020", "clark2019"]
    title = "Effective attention: what the published comparison shows"
    cited += ["webster2018"] if "GAP" in tasks else []
    return Document(title, lead, sections, cited, [{"name": "the study", **facts}])


def _report_patterns(numbers: xr.Dataset, judged: list[JudgedClaim]) -> Section:
    tasks, maps = list_tasks(numbers), sample_maps(CAPTIONS, numbers, paper.MAPS)
    return Section("Patterns of attention", [
        Paragraph(describe_patterns(judged)),
        maps.table("table_2", role_table(numbers, "table_2", "tuned"), paper.table_2(tasks)),
        *paragraphs(TEXTS["faults"] if set(tasks) & set(paper.KINDS) else ""),
        maps.table("counted", role_table(numbers, "counted", "tuned")),
        maps.table("table_2_base", role_table(numbers, "table_2", "base")),
    ])  # fmt: skip


def _report_types(numbers: xr.Dataset) -> Section:
    inputs, heads = sample_inputs(CAPTIONS, numbers), numbers["head_type"].sel(role="tuned", lens=SHOWN)
    look: dict[str, Any] = {"rows": "task", "columns": "lens", "y": "type", "scale": "row", "names": TOKENS}
    return Section("Delimiters and linguistic features", [
        inputs.picture("figure_1", heat_facets(heads, label="weight", signed=True, **look)),
        inputs.table("type_weights", role_table(numbers, "type_weights", "tuned")),
        inputs.table("several", role_table(numbers, "several", "tuned")),
        inputs.table("type_weights_base", role_table(numbers, "type_weights", "base")),
        *paragraphs(describe_twins(numbers)),
    ])  # fmt: skip


def _report_tuning(numbers: xr.Dataset) -> Section:
    inputs = sample_inputs(CAPTIONS, numbers)
    look: dict[str, Any] = {"rows": "lens", "columns": "task", "y": "layer"}
    cosines, named = numbers["similarity"].sel(lens=SHOWN), numbers.assign_coords(layer=name_layers(numbers))
    columns = [Quantity(str(lens), "similarity_layer", {"lens": lens}) for lens in numbers["lens"].values]
    return Section("What fine-tuning changes", [
        inputs.picture("figure_3", heat_facets(cosines, label="cosine before and after tuning", **look)),
        inputs.table("similarity", to_frame(named, {"task": "task", "layer": "layer"}, columns)),
    ])  # fmt: skip


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
    shares = {NAMES[str(name)]: report.select_interval(tuned.sel(pattern=name, lens=SHOWN), "share", 100)
              for name in tuned["pattern"].values}  # fmt: skip
    kinds = [Quantity(TOKENS.get(str(kind), str(kind)), "sink_kind", {"sink": kind}, scale=100)
             for kind in tuned["sink"].values]  # fmt: skip
    named = tuned.assign_coords(layer=name_layers(numbers))
    weight = {"weight on the sink": tuned.sel(lens=SHOWN)}
    return Section("Sinks, dispersion, and shares with their intervals", [
        inputs.table("sink", role_table(numbers, "sink", "tuned")),
        inputs.picture("sink_by_layer", draw_by_layer(weight, {"weight on the sink": "sink_weight"})),
        inputs.table("sink_kind", to_frame(named, {"task": "task", "layer": "layer"}, kinds)),
        sample_maps(CAPTIONS, numbers, paper.MAPS).picture(
            "shares", interval_facets({"share of maps (%)": shares}, x="task")),
    ])  # fmt: skip


def _report_lengths(numbers: xr.Dataset, measured: xr.Dataset) -> Section:
    inputs, longer = sample_inputs(CAPTIONS, numbers), {"length": "more than d"}
    shown = {f"{'[CLS] to' if name == 'punctuation' else 'weight on'} {name}": LOSES[name] for name in LOSES}
    parts: list[Part] = [
        Paragraph(describe_lengths(measured)),
        inputs.table("same_by_length", report.same_table(numbers)),
        inputs.picture("by_length", report.draw_by_length(numbers.sel(role="tuned", lens=SHOWN), shown)),
        inputs.table("lengths", report.length_table(numbers)),
    ]
    if not int(numbers["n"].sel(longer).sum()):
        parts.append(Paragraph("No input is longer than d, so there are no tables for such inputs."))
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


def describe_losses(numbers: xr.Dataset, judged: list[JudgedClaim]) -> str:
    """Return on which tasks the sink, [SEP] and punctuation lose weight, and how often nothing can differ."""
    same = numbers["same_inputs"].sel(role="base", length="all")
    source, known = {"punctuation": "from [CLS] in the last layer"}, {claim.text: claim for claim in judged}
    parts = [
        sentences.describe_change(f"{name}, {source.get(name, 'from all other tokens')},", known[claim.text], WORDS)
        for name, claim in LOSES.items() if claim.text in known
    ]  # fmt: skip
    inputs = join_words(f"{100 * float(share):.0f} % of the inputs of {share['task'].values!s}" for share in same)
    return " ".join([*parts, TEXTS["same"].format(inputs=inputs)])


def describe_lengths(numbers: xr.Dataset) -> str:
    """Return at which lengths [SEP], punctuation and [CLS] lose weight exactly, and at which only with padding."""
    tuned = numbers.sel(role="tuned")
    return " ".join(sentences.describe_lengths(name, claim, tuned, WORDS) for name, claim in LOSES.items())


def describe_patterns(judged: list[JudgedClaim]) -> str:
    """Return which claims on patterns hold when they are measured exactly."""
    return sentences.list_exact([claim for claim in judged if claim.claim in claims.PATTERNS])


def describe_twins(numbers: xr.Dataset) -> str:
    """Return on which tasks the last layer does not distinguish [CLS] from [SEP], or nothing."""
    data, roles = numbers.sel(length="all"), ("tuned", "base")
    tuned, base = (
        [task for task in list_tasks(data) if claims.find_twins(data.sel(role=role, task=task))] for role in roles
    )
    still = [task for task in tuned if task in base]
    before = "before tuning too" if still == tuned else f"before tuning on {join_words(still)}"
    return TEXTS["twins"].format(tasks=join_words(tuned), before=before) if tuned else ""


def describe_differences(numbers: xr.Dataset, seeds: int = 1) -> str:
    """Return what differs from the paper."""
    values, own = report.study_values(numbers), [task for task in list_tasks(numbers) if task not in paper.KINDS]
    same = values["size"] == paper.VALUE_SIZE
    values["lengths"] = "" if same else ", so that attention begins to differ at other lengths"
    times = f"with {seeds} seeds for each task" if seeds > 1 else "once, with one seed"
    tuned = f"It was tuned {times} ({values['tuning']})" if values["tuning"] else "It was fine-tuned already"
    first = f"{join_words(own)} {'is' if len(own) == 1 else 'are'} no task of the paper. " if own else ""
    return first + TEXTS["differences"].format(**{**values, "tuning": tuned}, theirs=paper.VALUE_SIZE)
