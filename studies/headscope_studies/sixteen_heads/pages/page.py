"""The pages docs/sixteen_heads.md and docs/tables.md with their pictures."""

from pathlib import Path

from matplotlib.figure import Figure

from headscope.experiments.pages import facts as study_facts
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, draw_verdicts
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.seeds import combine_seeds
from headscope.experiments.summary import list_tasks
from headscope.plotting.facets import interval_facets
from headscope_studies.sixteen_heads import report
from headscope_studies.sixteen_heads.pages import facts as said
from headscope_studies.sixteen_heads.pages import tables
from headscope_studies.sixteen_heads.pages.facts import HeadFacts

FOLDER = Path(__file__).parent


def page(facts: HeadFacts) -> bytes:
    """Return the page."""
    seeds, _, spread = study_facts.describe_seeds(facts).partition("; ")
    values = {
        "models": " and ".join(
            f"{label} ({data.sizes['layer']} layers × {data.sizes['head']} heads)"
            for label, data in facts.models.items()
        ),
        "tasks": ", ".join(dict.fromkeys(task for _, task, _ in facts.each)),
        "seeds": seeds.rstrip(".") + ".",
        "spread": spread.capitalize() or "One seed was trained.",
        "reduced": said.describe_reduced(facts),
        "scores": said.describe_scores(facts),
        "unlearned": said.describe_unlearned(facts),
        "plain": said.count_plain(facts),
        "rule": said.describe_rule(facts),
        "counts": said.describe_counts(facts),
        "claims": said.describe_claims(facts),
        "tests": facts.tests,
        "removal": said.describe_removal(facts),
        "importance": said.describe_importance(facts),
        "pruning_said": said.describe_pruning(facts),
        "parts": said.describe_parts(facts),
        "training_said": said.describe_training(facts),
        "translation": said.describe_translation(facts),
        "translated": _show_translation(facts),
        "scaled": said.describe_scaled(facts),
        "over_seeds": ", the widest of all seeds" if facts.seed_counts else "",
        **{name: f"pictures/{facts.stem}{name}.svg" for name in PICTURES},
    }
    return (FOLDER / "page.md").read_text(encoding="utf-8").format(**values).encode()


def _show_translation(facts: HeadFacts) -> str:
    """Return the figure of translation, where there is a model that translates."""
    if facts.sites is None:
        return ""
    return (
        f"\n![Score of translation by heads pruned at one site](pictures/{facts.stem}translation.svg)\n\n"
        "*Figure 4. Score of translation left by the percent of heads pruned, at one site or at all; 95 % intervals.*\n"
    )


def draw_pruning(facts: HeadFacts) -> Figure:
    """Draw the share of the score left by heads pruned: a row for each model, a panel for each task."""
    rows = {}
    for label, data in facts.models.items():
        part = report.select_kept(data)
        rows[f"{label}: score left (%)"] = {task: part.sel(task=task) for task in list_tasks(data)}
    return interval_facets(rows, x="pruned", label="heads pruned (%)", lines=True)


def draw_training(facts: HeadFacts) -> Figure:
    """Draw the rank correlation of importance during training with that at the end, a panel for each model."""
    panels = {}
    for label, data in facts.models.items():
        if "determined" in data:
            known = [task for task in list_tasks(data) if bool(data["determined"].sel(task=task).notnull().any())]
            panels[label] = select_interval(data.sel(task=known), "determined").rename(task="lens")
    return interval_facets({"correlation with the end": panels}, x="trained", label="part of fine-tuning (%)",
                           lines=True)  # fmt: skip


def draw_translation(facts: HeadFacts) -> Figure:
    """Draw the share of the score of translation left by heads pruned, a panel for each site."""
    assert facts.sites is not None
    return report.draw_pruning(combine_seeds(facts.sites))


PICTURES = {"verdicts": draw_verdicts, "pruning": draw_pruning, "training": draw_training}


def draw_pictures(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    figures = {f"{facts.stem}{name}.svg": make(facts) for name, make in PICTURES.items()}
    return figures if facts.sites is None else {**figures, f"{facts.stem}translation.svg": draw_translation(facts)}


def draw_table_pictures(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return {**draw_scaled(facts), **tables.draw_pictures(facts)}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = said.read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "sixteen_heads.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = said.read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "sixteen_heads_tables.md", tables.page(facts)


PAGES = StudyPages({"sixteen_heads": write_page}, {"sixteen_heads_tables": write_tables}, said.list_reports)
