"""The pages docs/sixteen_heads.md and docs/sixteen_heads_tables.md with their pictures."""

from pathlib import Path

from matplotlib.figure import Figure
from pages import sixteen_heads_facts as said
from pages import sixteen_heads_tables, study_facts
from pages.sixteen_heads_facts import HeadFacts
from pages.study_facts import read_template
from pages.study_tables import draw_scaled, draw_verdicts

from headscope.experiments.rendering.report import select_interval
from headscope.experiments.seeds import combine_seeds
from headscope.experiments.summary import list_tasks
from headscope.plotting.facets import interval_facets
from headscope.studies.sixteen_heads import report

DOCS = Path(__file__).parents[1]


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
    return read_template("sixteen_heads").format(**values).encode()


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


def drawn(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of both pages by file name; none without results."""
    if not facts.measured:
        return {}
    figures = {f"{facts.stem}{name}.svg": make(facts) for name, make in PICTURES.items()}
    figures |= {} if facts.sites is None else {f"{facts.stem}translation.svg": draw_translation(facts)}
    return {**figures, **draw_scaled(facts), **sixteen_heads_tables.drawn(facts)}


def made(facts: HeadFacts) -> list[tuple[Path, bytes]]:
    """Return both pages with their paths; none without results."""
    if not facts.measured:
        return []
    tables = sixteen_heads_tables.page(facts)
    return [(DOCS / "sixteen_heads.md", page(facts)), (DOCS / "sixteen_heads_tables.md", tables)]
