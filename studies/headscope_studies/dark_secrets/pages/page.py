"""The pages docs/dark_secrets.md and docs/tables.md with their pictures."""

from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from headscope.experiments.pages import facts as study_facts
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, draw_verdicts
from headscope.experiments.rendering.head_figures import draw_heterogeneous, draw_relation
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.summary import list_tasks
from headscope.plotting.facets import interval_facets
from headscope_studies.dark_secrets import paper
from headscope_studies.dark_secrets.pages import facts as said
from headscope_studies.dark_secrets.pages import tables
from headscope_studies.dark_secrets.pages.facts import DarkFacts

FOLDER = Path(__file__).parent


def page(facts: DarkFacts) -> bytes:
    """Return the page."""
    seeds, _, spread = study_facts.describe_seeds(facts).partition("; ")
    low, high = (100 * share for share in paper.HETEROGENEOUS)
    values = {
        "models": " and ".join(
            f"{label} ({data.sizes['layer']} layers × {data.sizes['head']} heads)"
            for label, data in facts.models.items()
            if label in said.list_names(facts)
        ),
        "tasks": ", ".join(dict.fromkeys(task for _, task, _ in facts.each)),
        "seeds": " ".join(filter(None, (seeds.rstrip(".") + ".", said.describe_fewer(facts)))),
        "spread": spread.capitalize() or "One seed was trained.",
        "reduced": said.describe_reduced(facts),
        "margins": said.describe_margins(facts),
        "noise": said.describe_noise(facts),
        "unlearned": said.describe_unlearned(facts),
        "counts": said.describe_counts(facts),
        "claims": said.describe_claims(facts),
        "tests": facts.tests,
        "range": f"{low:.0f} to {high:.0f} %",
        "vertical": f"{100 * paper.VERTICAL:.0f} %",
        "shares": said.describe_shares(facts),
        "disabled": said.describe_disabled(facts),
        "starts": said.describe_starts(facts),
        "relations": said.describe_relations(facts),
        "scaled": said.describe_scaled(facts),
        "over_seeds": ", the widest of all seeds" if facts.seed_counts else "",
        "table": tables.starts_grid(facts),
        **{f"{name}_drawn" if name == "shares" else name: f"pictures/{facts.stem}{name}.svg" for name in PICTURES},
    }
    return (FOLDER / "page.md").read_text(encoding="utf-8").format(**values).encode()


def draw_shares(facts: DarkFacts) -> Figure:
    """Draw the share of heterogeneous maps of every model and task over the paper's range."""
    names = [f"share{end}" for end in ("", "_low", "_high")]
    parts = [data[names].assign_coords(task=[f"{label}, {task}" for task in list_tasks(data)])
             for label, data in facts.models.items()]  # fmt: skip
    return draw_heterogeneous(xr.concat(parts, "task"), paper.HETEROGENEOUS)


def draw_layers(facts: DarkFacts) -> Figure:
    """Draw the change of the score without each layer, and the cosine before and after tuning, task by task."""
    rows: dict[str, dict[str, xr.Dataset]] = {}
    for title, name, scale in (
        ("cosine before and after", "similarity_layer", 1),
        ("score without (points)", "layer_change", 100),
    ):
        columns: dict[str, list[xr.Dataset]] = {}
        for label, task, data in facts.each:
            part = data.sel(lens="raw", drop=True) if name == "similarity_layer" else data
            columns.setdefault(task, []).append(
                select_interval(part, name, scale)
                .reset_coords(drop=True)
                .expand_dims(lens=[said.name_model(facts, label)])
            )
        rows[title] = {task: xr.concat(parts, "lens", join="outer") for task, parts in columns.items()}
    return interval_facets(rows, x="layer", label="layer", lines=True)


def draw_relations(facts: DarkFacts) -> Figure:
    """Draw the heads of the last model with related words between two examples."""
    label = [label for label, parts in facts.more.items() if "shown_relation" in parts][-1]
    return draw_relation(facts.more[label]["relations"], facts.more[label]["shown_relation"])


PICTURES = {"verdicts": draw_verdicts, "shares": draw_shares, "layers": draw_layers, "relation": draw_relations}


def draw_pictures(facts: DarkFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    return {f"{facts.stem}{name}.svg": make(facts) for name, make in PICTURES.items()}


def draw_table_pictures(facts: DarkFacts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return {**draw_scaled(facts), **tables.draw_pictures(facts)}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = said.read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "dark_secrets.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = said.read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "dark_secrets_tables.md", tables.page(facts)


PAGES = StudyPages({"dark_secrets": write_page}, {"dark_secrets_tables": write_tables}, said.list_reports)
