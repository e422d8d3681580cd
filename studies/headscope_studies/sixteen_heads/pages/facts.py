"""What the results of the study sixteen-heads come to: numbers and sentences of its page."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.document import Document
from headscope.core.prose import count_noun, format_signed, join_words
from headscope.experiments.claims import JudgedClaim
from headscope.experiments.judging import judge_all, judge_together
from headscope.experiments.pages.facts import StudyFacts, count_kinds
from headscope.experiments.rendering.sentences import conjugate
from headscope.experiments.seeds import combine_seeds
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import format_range
from headscope.experiments.thresholds import count_scaled
from headscope.results.store import open_result
from headscope_studies.sixteen_heads import report
from headscope_studies.sixteen_heads.claims import CLAIMS, EARLY, TRANSLATION_CLAIMS
from headscope_studies.sixteen_heads.paper import COLLAPSE, PRUNED, PRUNED_TRANSLATION
from headscope_studies.sixteen_heads.translation import ALL, SITES

RESULTS = Path(__file__).parents[1] / "results"

TRANSLATION = "translation"


@dataclass(frozen=True)
class HeadFacts(StudyFacts):
    """The numbers of every model, and those of the sites of a model that translates, if there is one."""

    sites: xr.Dataset | None = None

    stem = "sixteen_heads_"
    claims = CLAIMS

    def judge(self, measured: Mapping[str, xr.Dataset]) -> dict[str, list[JudgedClaim]]:
        """Return the verdicts on every model, and those on translation."""
        groups: dict[str, Any] = {label: (CLAIMS, data) for label, data in measured.items()}
        groups |= {} if self.sites is None else {TRANSLATION: (TRANSLATION_CLAIMS, self.sites)}
        return judge_together(groups)

    @cached_property
    def reports(self) -> dict[str, Document]:
        """The study's own report on every model."""
        more = {} if self.sites is None else {TRANSLATION: self.sites}
        return {label: report.document({"numbers": data, **more}) for label, data in self.measured.items()}

    @property
    def each(self) -> list[tuple[str, str, xr.Dataset]]:
        """The numbers of each pair of a model and a task, with their names."""
        return [(label, task, data.sel(task=task)) for label, data in self.models.items() for task in list_tasks(data)]


@cache
def read_facts(folder: Path = RESULTS) -> HeadFacts:
    """Return the facts of all models in a folder of results."""
    stem = HeadFacts.stem
    tables = {path.stem.removeprefix(stem): open_result(path) for path in sorted(folder.glob(f"{stem}*.nc"))}
    return HeadFacts({label: data for label, data in tables.items() if label != TRANSLATION}, tables.get(TRANSLATION))


def list_reports(folder: Path = RESULTS) -> list[tuple[str, Document]]:
    """Return the study's own report on every model, by the name of its folder."""
    facts = read_facts(folder)
    return [(f"{facts.stem}{label}", document) for label, document in facts.reports.items()]


def describe_counts(facts: HeadFacts) -> str:
    """Return how many verdicts on tasks, and how many on translation, are of which kind."""
    parts = []
    for judged, what in (
        ([claim for claims in facts.judged.values() for claim in claims], "pairs of a model and a task"),
        (facts.judged_all.get(TRANSLATION, []), "sites of a model that translates"),
    ):
        counts, claims = count_kinds(judged), len({claim.text for claim in judged})
        listed = join_words(f"{counts[kind]} {conjugate(kind, counts[kind])}" for kind in facts.kinds if counts[kind])
        pairs = sum(counts.values()) // max(claims, 1)
        parts += [f"{sum(counts.values())} verdicts on {claims} claims for {pairs} {what}: {listed}"] if judged else []
    return f"{'; '.join(parts)}."


def describe_claims(facts: HeadFacts) -> str:
    """Return for how many pairs each claim holds, in the order of the claims."""
    parts = [f"“{claim.text.rstrip('.')}” for {facts.count(claim, *facts.exact)}" for claim in CLAIMS]
    return f"Of the pairs to which they apply, these claims hold: {join_words(parts)}."


def read_values(facts: HeadFacts, name: str, task: str | None = None, **where: Any) -> list[float]:
    """Return the values of a variable of all models, tasks and seeds, or those of one task."""
    tables = []
    for data in facts.measured.values():
        known = [each for each in list_tasks(data) if task in (None, each)]
        if name in data and all(label in data[dim].values for dim, label in where.items()):
            tables.append(np.ravel(data[name].sel({"task": known, **where}).values.astype(float)))
    values = np.concatenate(tables) if tables else np.array([])
    return [float(value) for value in values[np.isfinite(values)]]


def read_range(facts: HeadFacts, name: str, form: str = ".0f", unit: str = " %", **where: Any) -> str:
    """Return the least and the greatest value of a variable over all models, tasks and seeds; shares in percent."""
    scale = 100 if unit.strip() == "%" else 1
    return format_range([scale * value for value in read_values(facts, name, **where)], form, unit)


def describe_removal(facts: HeadFacts) -> str:
    """Return how many heads matter one at a time, what could be seen, and in how many layers one head is enough."""
    return (
        f"Of all heads, {read_range(facts, 'significant_share')} have a significant effect when they are removed alone "
        f"(by task and seed), {read_range(facts, 'worse_share')} a significant loss; {read_range(facts, 'small_share')}"
        f" change the score by less than 1 %. {describe_power(facts.models.values())} With only the best head of one "
        f"layer, chosen on the other half of the inputs, {read_range(facts, 'enough_share')} of layers lose nothing "
        "notable."
    )


def describe_power(models: Iterable[xr.Dataset]) -> str:
    """Return how wide the interval of one head's effect is, and so what a test of one head can show."""
    margins = []
    for data in models:
        width = (data["change_high"] - data["change_low"]) / 2 / abs(data["score"])
        margins += [100 * float(width.sel(task=task).median()) for task in list_tasks(data)]
    known = [margin for margin in margins if np.isfinite(margin)]
    return (
        f"The plain 95 % interval of one head's effect is ±{format_range(known, '.1f')} of the score in the median: "
        "smaller effects cannot be told from none, so that few significant heads do not show that most have no effect."
    )


def describe_importance(facts: HeadFacts) -> str:
    """Return how importance agrees with the effects of removal, by reduction."""
    parts = [f"{read_range(facts, 'agreement', '.2f', '', reduction=name)} by `{name}`"
             for name in ("example", "token", "batch")]  # fmt: skip
    return f"Spearman's correlation of importance with the size of the effect of removal is {join_words(parts)}."


def describe_pruning(facts: HeadFacts) -> str:
    """Return how much of the score is left, by importance and in random orders."""
    orders = {"importance": "by importance", "random": "in random orders"}
    parts = [
        f"{read_range(facts, 'kept', order=order, pruned=share)} {words} at {share} %"
        for share in (PRUNED, 60)
        for order, words in orders.items()
    ]
    tasks = dict.fromkeys(task for _, task, _ in facts.each)
    floor = {task: read_values(facts, "kept", task, order="importance", pruned=100) for task in tasks}
    left = join_words(f"{format_range([100 * value for value in values])} on {task}" if values else
                      f"no score on {task}" for task, values in floor.items())  # fmt: skip
    return (
        f"Of the score, so much is left when heads are pruned, over tasks and seeds: {join_words(parts)}. Without any "
        f"head it is {left}: for classes, a model that always answers the same keeps that much, and what is left says "
        "little unless it is above it."
    )


def describe_parts(facts: HeadFacts) -> str:
    """Return how effects correlate between groups of the data, and between halves of it."""
    groups = []
    for label, task, data in facts.each:
        pair = data.sel(parts="groups")
        if bool(pair["effect_correlation"].notnull()):
            ends = [format_signed(float(pair[f"effect_correlation{end}"]), ".2f") for end in ("", "_low", "_high")]
            names = join_words(str(name).partition(" (")[0] for name in np.ravel(pair["part_name"].values)[:2])
            groups.append(f"{ends[0]} [{ends[1]}, {ends[2]}] with {label} on {task} ({names})")
    halves = read_range(facts, "effect_correlation", ".2f", "", parts="halves")
    weights = read_range(facts, "importance_correlation", ".2f", "", parts="halves")
    text = f"Effects of heads correlate between groups of the inputs: {join_words(groups)}. " if groups else ""
    return f"{text}Between random halves of all inputs of a task they correlate {halves}; importance, {weights}."


def describe_training(facts: HeadFacts) -> str:
    """Return how early the order of heads is that of the end."""
    early = read_range(facts, "determined", ".2f", "", trained=EARLY)
    return (
        f"After {EARLY} % of fine-tuning, the rank correlation of importance with that at the end is {early}. "
        "Fine-tuning starts from pretrained heads, where the paper trains from scratch."
    )


def describe_translation(facts: HeadFacts) -> str:
    """Return what is left of the score of translation at each site."""
    if facts.sites is None:
        return "No model that translates was studied."
    data = combine_seeds(facts.sites)
    whole = np.ravel(facts.sites["pruned_score"].sel(task=ALL, order="importance", pruned=0).values)
    metric = {"bleu": "BLEU"}.get(str(data["metric"].values[0]), str(data["metric"].values[0]))

    def kept(site: str, share: int) -> str:
        row = data.sel(task=site, order="importance", pruned=share)
        value, low, high = (format_signed(100 * float(row[f"kept{end}"]), ".0f") for end in ("", "_low", "_high"))
        return f"{value} % [{low}, {high}]"

    names = {"encoder": "encoder", "decoder": "decoder", "cross": "encoder–decoder"}
    sites = join_words(f"{kept(site, COLLAPSE)} without {COLLAPSE} % of {names[site]} heads" for site in SITES)
    shares = {site: 100 * float(data["significant_share"].sel(task=site)) for site in SITES}
    listed = join_words(f"{share:.0f} % ({names[site]})" for site, share in shares.items())
    large = [100 * (1 - float(data["small_share"].sel(task=site))) for site in SITES]
    return (
        f"Trained from scratch on message catalogues ({count_noun(len(facts.sites['seed']), 'seed')}), the model has "
        f"{metric} {format_range(whole, '.1f', '')} on the {int(data['n'].values[0])} sentences studied. Without "
        f"{PRUNED_TRANSLATION} % of all heads, by importance, {kept(ALL, PRUNED_TRANSLATION)} of it is left; {sites}. "
        f"Removed alone, a significant effect have {listed}, and {format_range(large)} of heads, by site, change the "
        "score by more than 1 %. " + describe_power([data.sel(task=list(SITES))])
    )


def describe_rule(facts: HeadFacts) -> str:
    """Return how many verdicts would hold if tasks that were not learned were judged too."""
    every = facts.judge({label: data.drop_vars("majority") for label, data in facts.measured.items()})
    held, now = (sum(count_kinds(claim for claims in judged for claim in claims)[kind] for kind in facts.exact)
                 for judged in (every.values(), facts.judged_all.values()))  # fmt: skip
    return (
        "That no claim is judged on a task that a model is not shown to have learned was decided after the results "
        f"were seen; without this rule {held} verdicts would hold instead of {now}"
    )


def describe_reduced(facts: HeadFacts) -> str:
    """Return of which tasks not all inputs were studied, or nothing."""
    fewer: dict[str, str] = {}
    for _, task, data in facts.each:
        if int(data["n"]) < int(data["whole_dev"]):
            fewer[task] = f"{int(data['n']):,} of {int(data['whole_dev']):,} inputs of {task}"
    return f" **Reduced**: {join_words(fewer.values())} were studied." if fewer else ""


def describe_unlearned(facts: HeadFacts) -> str:
    """Return which models are not shown to be better than the most common label of a task, or nothing."""
    unlearned: dict[str, list[str]] = {}
    for label, task, data in facts.each:
        if float(data["score_low"]) <= float(data["majority"]):  # NaN for numbers
            scores = f"{float(data['score']):.2f}, most common label {float(data['majority']):.2f}"
            unlearned.setdefault(task, []).append(f"{label} ({scores})")
    parts = [f"{join_words(models)} on {task}" for task, models in unlearned.items()]
    if not parts:
        return ""
    return f" Not shown to have learned their task: {'; '.join(parts)}. No claim is judged there."


def count_plain(facts: HeadFacts) -> str:
    """Return how many verdicts would hold if each were judged by its own 95 % interval."""
    groups = [(CLAIMS, data) for data in facts.measured.values()]
    groups += [] if facts.sites is None else [(TRANSLATION_CLAIMS, facts.sites)]
    counts = sum((count_kinds(judge_all(claims, data, tests=1)) for claims, data in groups), Counter[str]())
    held, known = sum(counts[kind] for kind in facts.exact), count_kinds(facts.every)
    return (
        f"Of the {facts.tests} verdicts that apply, {known['undecided']} are undecided; judged by plain 95 % "
        f"intervals, each by itself, {held} would hold and {counts['undecided']} be undecided."
    )


def describe_scores(facts: HeadFacts) -> str:
    """Return the scores of the whole models."""
    parts = []
    for label, data in facts.models.items():
        scores = join_words(f"{float(data['score'].sel(task=task)):.2f} on {task}" for task in list_tasks(data))
        parts.append(f"{label} reaches {scores}")
    return f"{'; '.join(parts)}."


def describe_scaled(facts: HeadFacts) -> str:
    """Return how many claims hold with thresholds as they are, halved and doubled."""
    held = [sum(count_scaled(facts.every, factor)[kind] for kind in facts.exact) for factor in (1.0, 0.5, 2.0)]
    return f"{held[1]} verdicts hold with all of them halved and {held[2]} with all doubled, instead of {held[0]}"
