"""The page docs/sixteen_heads.md with its pictures, and that of its tables."""

from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from headscope.experiments.claims import UNDECIDED
from headscope.experiments.pages.facts import count_kinds
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, draw_verdicts
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.seeds import combine_seeds
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import fill_template, join_lines
from headscope.experiments.thresholds import count_scaled
from headscope.plotting.facets import interval_facets
from headscope_studies.sixteen_heads import report
from headscope_studies.sixteen_heads.claims import CLAIMS, TRANSLATION_CLAIMS
from headscope_studies.sixteen_heads.pages import tables
from headscope_studies.sixteen_heads.pages.facts import (
    TRANSLATION,
    HeadFacts,
    count_held,
    count_known,
    count_plain,
    count_unlearned,
    find_reduced,
    find_unlearned,
    list_groups,
    list_margins,
    list_reports,
    read_facts,
    read_percents,
    read_values,
)
from headscope_studies.sixteen_heads.translation import ALL, SITES

FOLDER = Path(__file__).parent
SITE_NAMES = {"encoder": "encoder", "decoder": "decoder", "cross": "encoder–decoder"}


def page(facts: HeadFacts) -> bytes:
    """Return the page."""
    return join_lines(
        fill_template(FOLDER / "page.md", facts=facts, **count_verdicts(facts), **collect_numbers(facts))
    ).encode()


def count_verdicts(facts: HeadFacts) -> dict[str, Any]:
    """Return how many verdicts are of which kind, and how many would hold if they were judged in other ways."""
    counts, plain = count_kinds(facts.every), count_plain(facts)
    ways = {
        "now": counts,
        "plain": plain,
        "halved": count_scaled(facts.every, 0.5),
        "doubled": count_scaled(facts.every, 2.0),
        "unlearned": count_unlearned(facts),
    }
    return {
        "on_tasks": count_known(facts, count_kinds(claim for claims in facts.judged.values() for claim in claims)),
        "on_sites": count_known(facts, count_kinds(facts.judged_all[TRANSLATION])),
        "held": {way: count_held(facts, counts) for way, counts in ways.items()},
        "undecided": counts[UNDECIDED],
        "undecided_plain": plain[UNDECIDED],
        "claims": CLAIMS,
        "site_claims": TRANSLATION_CLAIMS,
    }


def collect_numbers(facts: HeadFacts) -> dict[str, Any]:
    """Return the measured numbers on the page; `values` and `percents` look up those of all models and seeds."""
    sites = combine_seeds(facts.sites)
    pruned = facts.sites["pruned_score"].sel(task=ALL, order="importance", pruned=0)
    return {
        "tasks": list(dict.fromkeys(task for _, task, _ in facts.by_task)),
        "values": partial(read_values, facts),
        "percents": partial(read_percents, facts),
        "reduced": find_reduced(facts),
        "unlearned": find_unlearned(facts),
        "margins": list_margins(facts.models.values()),
        "groups": list_groups(facts),
        "sites": sites,
        "site_names": SITE_NAMES,
        "bleu": pruned.values.ravel(),
        "large_effects": [100 * (1 - float(sites["small_share"].sel(task=site))) for site in SITES],
        "site_margins": list_margins([sites.sel(task=list(SITES))]),
    }


def draw_pruning(facts: HeadFacts) -> Figure:
    """Draw the share of the score left by heads pruned: a row for each model, a panel for each task."""
    rows = {}
    for label, data in facts.models.items():
        kept = report.select_kept(data)
        rows[f"{label}: score left (%)"] = {task: kept.sel(task=task) for task in list_tasks(data)}
    return interval_facets(rows, x="pruned", label="heads pruned (%)", lines=True)


def draw_training(facts: HeadFacts) -> Figure:
    """Draw the rank correlation of importance during training with that at the end, a panel for each model."""
    panels = {}
    for label, data in facts.models.items():
        tasks = [task for task in list_tasks(data) if bool(data["determined"].sel(task=task).notnull().any())]
        panels[label] = select_interval(data.sel(task=tasks), "determined").rename(task="lens")
    rows = {"correlation with the end": panels}
    return interval_facets(rows, x="trained", label="part of fine-tuning (%)", lines=True)


def draw_translation(facts: HeadFacts) -> Figure:
    """Draw the share of the score of translation left by heads pruned, a panel for each site."""
    return report.draw_pruning(combine_seeds(facts.sites))


PICTURES = {
    "verdicts": draw_verdicts,
    "pruning": draw_pruning,
    "training": draw_training,
    "translation": draw_translation,
}


def draw_pictures(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    return {f"{facts.stem}{name}.svg": draw(facts) for name, draw in PICTURES.items()}


def draw_table_pictures(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return {**draw_scaled(facts), **tables.draw_pictures(facts)}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "sixteen_heads.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "sixteen_heads_tables.md", tables.page(facts)


PAGES = StudyPages({"sixteen_heads": write_page}, {"sixteen_heads_tables": write_tables}, list_reports)
