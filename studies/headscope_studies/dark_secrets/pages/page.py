"""The pages docs/dark_secrets.md and docs/tables.md with their pictures."""

from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from headscope.experiments.pages.facts import list_claims
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, draw_verdicts
from headscope.experiments.rendering.head_figures import draw_heterogeneous, draw_relation
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import fill_template
from headscope.plotting.facets import interval_facets
from headscope_studies.dark_secrets import paper
from headscope_studies.dark_secrets.pages import tables
from headscope_studies.dark_secrets.pages.facts import (
    REASONED,
    DarkFacts,
    count_holding,
    count_never,
    count_verdicts,
    find_unlearned,
    list_margins,
    list_noise,
    list_reduced,
    list_reports,
    list_small_sizes,
    list_start_scores,
    list_tuning_gains,
    read_facts,
    summarize_disabled,
    summarize_relations,
)

FOLDER = Path(__file__).parent


def page(facts: DarkFacts) -> bytes:
    """Return the page."""
    small_sizes = list_small_sizes(facts)
    return fill_template(
        FOLDER / "page.md",
        facts=facts,
        published_heterogeneous=[100 * share for share in paper.HETEROGENEOUS],
        published_vertical=100 * paper.VERTICAL,
        published_random=paper.SST_FROM_RANDOM,
        reduced=list_reduced(facts),
        unlearned=find_unlearned(facts),
        on_tasks=count_verdicts(facts, facts.judged),
        on_relations=count_verdicts(facts, facts.others),
        holding=list_claims(facts, *facts.exact, least=0.5),
        never=count_never(facts),
        disabled=summarize_disabled(facts),
        random_scores=list_start_scores(facts, "SST-2"),
        tuning_gains=list_tuning_gains(facts),
        starts=tables.starts_grid(facts),
        relations=summarize_relations(facts),
        scaled={factor: count_holding(facts, factor) for factor in (0.5, 1.0, 2.0)},
        reasoned=REASONED,
        small_sizes=small_sizes,
        noise=list_noise(small_sizes),
        margins=list_margins(facts),
    ).encode()


def draw_shares(facts: DarkFacts) -> Figure:
    """Draw the share of heterogeneous maps of every model and task over the paper's range."""
    names = [f"share{end}" for end in ("", "_low", "_high")]
    shares = [
        data[names].assign_coords(task=[f"{label}, {task}" for task in list_tasks(data)])
        for label, data in facts.models.items()
    ]
    return draw_heterogeneous(xr.concat(shares, "task"), paper.HETEROGENEOUS)


def draw_layers(facts: DarkFacts) -> Figure:
    """Draw the change of the score without each layer, and the cosine before and after tuning, task by task."""
    rows: dict[str, dict[str, xr.Dataset]] = {}
    for title, name, scale in (
        ("cosine before and after", "similarity_layer", 1),
        ("score without (points)", "layer_change", 100),
    ):
        columns: dict[str, list[xr.Dataset]] = {}
        for label, task, data in facts.by_task:
            layers = data.sel(lens="raw", drop=True) if name == "similarity_layer" else data
            intervals = select_interval(layers, name, scale).reset_coords(drop=True)
            columns.setdefault(task, []).append(intervals.expand_dims(lens=[label]))
        rows[title] = {task: xr.concat(lines, "lens", join="outer") for task, lines in columns.items()}
    return interval_facets(rows, x="layer", label="layer", lines=True)


def draw_relations(facts: DarkFacts) -> Figure:
    """Draw the heads of the last model with related words between two examples."""
    *_, results = (results for results in facts.more.values() if "shown_relation" in results)
    return draw_relation(results["relations"], results["shown_relation"])


PICTURES = {"verdicts": draw_verdicts, "shares": draw_shares, "layers": draw_layers, "relation": draw_relations}


def draw_pictures(facts: DarkFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    return {f"{facts.stem}{name}.svg": draw(facts) for name, draw in PICTURES.items()}


def draw_table_pictures(facts: DarkFacts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return {**draw_scaled(facts), **tables.draw_pictures(facts)}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "dark_secrets.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "dark_secrets_tables.md", tables.page(facts)


PAGES = StudyPages({"dark_secrets": write_page}, {"dark_secrets_tables": write_tables}, list_reports)
