"""The report: verdicts first, then every table and figure of the paper, then what it could not say."""

from functools import partial
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Section, Table
from headscope.core.prose import join_words
from headscope.core.study import Results
from headscope.experiments import report, sentences
from headscope.experiments.claims import JudgedClaim
from headscope.experiments.example import report_example
from headscope.experiments.report import paragraphs, sample_inputs, sample_maps
from headscope.experiments.summary import list_tasks
from headscope.patterns import NAMES
from headscope.plotting.facets import heat_facets, interval_facets, stacked_shares
from headscope.reporting.frames import Quantity, to_frame
from headscope.results.stamp import read_provenance
from headscope.studies.effective_attention import claims, paper
from headscope.studies.effective_attention.claims import LOSES, judge_claims

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
}  # fmt: skip
JUDGED = TEXTS["judged"].format(share=claims.SHARE.text, weight=claims.WEIGHT.text)
SAME = "All of this attention reaches the output: effective attention is the same."


def document(results: Results) -> Document:
    """Return the report on the results of the study."""
    numbers, times = results["numbers"], results.get("times")
    judged, facts, tasks = judge_claims(numbers, times), read_provenance(numbers), list_tasks(numbers)
    versions = {several: judge_claims(numbers, times, several) for several in claims.SEVERAL}
    theirs = paper.table_1() if set(tasks) & set(paper.KINDS) else None
    inputs = sample_inputs(CAPTIONS, numbers)
    sizes, losses = sentences.describe_sizes(numbers, TEXTS), describe_losses(numbers, judged)
    said = (sizes, losses, report.describe_unlearned(numbers), TEXTS["lenses"])
    differences = f"**What differs from the paper.** {describe_differences(numbers)}"
    sections = [
        report.report_verdicts(inputs, judged, said, JUDGED),
        report.report_thresholds(inputs, judged),
        Section("Several tokens of a type", report.report_versions(inputs, versions)),
        report.report_tasks(numbers, theirs, number=1),
        _report_patterns(numbers, judged),
        _report_types(numbers),
        *([report_example(results["maps"], ((2, 8), (7, None)), SAME)] if "maps" in results else []),
        *_report_heads(numbers),
        *([report.report_times(CAPTIONS, times, WAYS, paper.table_3())] if times is not None else []),
        _report_scores(numbers),
        _report_lengths(numbers),
        Section("Beside the norm-based analysis", [Paragraph(describe_norms(numbers)), _norm_table(numbers)]),
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
    shown = numbers.sel(role="tuned", length="all", lens=SHOWN)
    shares = {
        NAMES[str(name)]: report.select_interval(shown.sel(pattern=name), "share", 100)
        for name in shown["pattern"].values
    }
    return Section("Patterns of attention", [
        Paragraph(describe_patterns(judged)),
        maps.table("table_2", role_table(numbers, "table_2", "tuned"), paper.table_2(tasks)),
        *paragraphs(TEXTS["faults"] if set(tasks) & set(paper.KINDS) else ""),
        maps.picture("figure_4", stacked_shares(shown["share"], along="task", label="share of maps")),
        maps.picture("shares", interval_facets({"share of maps (%)": shares}, x="task")),
        maps.table("table_2_base", role_table(numbers, "table_2", "base")),
    ])  # fmt: skip


def _report_types(numbers: xr.Dataset) -> Section:
    inputs, heads = sample_inputs(CAPTIONS, numbers), numbers["head_type"].sel(role="tuned", lens=SHOWN)
    look: dict[str, Any] = {"rows": "task", "columns": "lens", "y": "type", "scale": "row", "names": TOKENS}
    return Section("Delimiters and linguistic features", [
        inputs.picture("figure_1", heat_facets(heads, label="weight", signed=True, **look)),
        inputs.table("type_weights", role_table(numbers, "type_weights", "tuned")),
        inputs.table("type_weights_base", role_table(numbers, "type_weights", "base")),
        *paragraphs(describe_twins(numbers)),
    ])  # fmt: skip


def _report_heads(numbers: xr.Dataset) -> list[Section]:
    inputs = sample_inputs(CAPTIONS, numbers)
    look: dict[str, Any] = {"rows": "lens", "columns": "task", "y": "layer"}
    cosines, weights = numbers["similarity"].sel(lens=SHOWN), numbers["head_weight"].sel(role="tuned", lens=SHOWN)
    named = numbers.assign_coords(layer=[f"L{layer}" for layer in numbers["layer"].values])
    columns = [Quantity(str(lens), "similarity_layer", {"lens": lens}) for lens in numbers["lens"].values]
    figures = {token: heat_facets(weights.sel(token=token, drop=True), label=f"weight on {name}", signed=True, **look)
               for token, name in TOKENS.items()}  # fmt: skip
    return [
        Section("What fine-tuning changes", [
            inputs.picture("figure_3", heat_facets(cosines, label="cosine before and after tuning", **look)),
            inputs.table("similarity", to_frame(named, {"task": "task", "layer": "layer"}, columns)),
        ]),
        Section("[CLS] and [SEP] over layers and heads", [
            inputs.picture("figure_5", figures["cls"]),
            inputs.picture("figure_6", figures["sep"]),
            inputs.table("special", role_table(numbers, "special", "tuned")),
            inputs.table("special_base", role_table(numbers, "special", "base")),
        ]),
    ]  # fmt: skip


def _report_scores(numbers: xr.Dataset) -> Section:
    n, inputs = numbers["n"], sample_inputs(CAPTIONS, numbers)
    same = numbers.sel(length="all").assign(short=n.sel(length="at most d") / n.sel(length="all"))
    columns = [Quantity("inputs of at most d tokens (%)", "short", scale=100)]
    for role in ("base", "tuned"):
        for name, title in (("same_inputs", "inputs with all heads the same"), ("same_heads", "heads the same")):
            columns.append(Quantity(f"{title}, {role} (%)", name, {"role": role}, scale=100))
    return Section("Predictions with effective attention in place", [
        *paragraphs(report.describe_learned(numbers), TEXTS["in place"]),
        inputs.table("scores", report.score_table(numbers)),
        inputs.table("same", to_frame(same, {"task": "task"}, columns)),
    ])  # fmt: skip


def _report_lengths(numbers: xr.Dataset) -> Section:
    inputs, longer = sample_inputs(CAPTIONS, numbers), {"length": "more than d"}
    parts: list[Part] = [
        Paragraph(describe_lengths(numbers)),
        inputs.table("same_by_length", report.same_table(numbers)),
        inputs.picture("by_length", draw_lengths(numbers)),
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


def _norm_table(numbers: xr.Dataset) -> Table:
    own = [name for name in numbers if str(name).startswith("agreement")]
    data = numbers.assign({name: numbers[name].where(numbers["beside_norm"] != "norm") for name in own})
    columns = [Quantity("cosine with norms", "agreement"), Quantity("rank correlation", "agreement_rank")]
    for kind in ("cls", "sep", "punctuation"):
        title = f"portion of {TOKENS.get(kind, kind)} (%)"
        columns.append(Quantity(title, "type_portion", {"type": kind}, scale=100, interval=False))
    frame = to_frame(data, {"task": "task", "beside_norm": "attention"}, columns)
    return sample_inputs(CAPTIONS, numbers).table("norms", frame)


def draw_lengths(numbers: xr.Dataset) -> Figure:
    """Draw the weights on [SEP] and [CLS], and from [CLS] to punctuation, by length."""
    titles = {"[SEP]": "weight on [SEP]", "[CLS]": "weight on [CLS]", "punctuation": "[CLS] to punctuation"}
    shown = {title: LOSES[name] for name, title in titles.items()}
    return report.draw_by_length(numbers.sel(role="tuned", lens=SHOWN), shown)


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


def describe_norms(numbers: xr.Dataset) -> str:
    """Return whether effective attention is nearer to norms than raw attention is, and the portion of [CLS]."""
    compare = partial(sentences.describe_pairs, axis="beside_norm")
    cosine, rank = (compare(numbers[name], labels=("raw", "effective"), form=".2f")
                    for name in ("agreement", "agreement_rank"))  # fmt: skip
    portion = compare(100 * numbers["type_portion"].sel(type="cls"), labels=("raw", "norm"), form=".0f")
    return TEXTS["beside norms"].format(cosine=cosine, rank=rank, portion=portion)


def describe_differences(numbers: xr.Dataset) -> str:
    """Return what differs from the paper."""
    values, own = report.study_values(numbers), [task for task in list_tasks(numbers) if task not in paper.KINDS]
    same = values["size"] == paper.VALUE_SIZE
    values["lengths"] = "" if same else ", so that attention begins to differ at other lengths"
    tuned = f"It was tuned once, with one seed ({values['tuning']})" if values["tuning"] else "It came tuned"
    first = f"{join_words(own)} {'is' if len(own) == 1 else 'are'} no task of the paper. " if own else ""
    return first + TEXTS["differences"].format(**{**values, "tuning": tuned}, theirs=paper.VALUE_SIZE)
