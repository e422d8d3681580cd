"""The page docs/tables.md: every table behind docs/dark_secrets.md."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Picture, Section
from headscope.experiments.claims import format_interval
from headscope.experiments.pages.tables import find_letters, format_intervals, to_grid, verdict_values
from headscope.experiments.rendering.sentences import describe_verdicts
from headscope.experiments.template import fill_template
from headscope.reporting.frames import TableColumn, to_frame
from headscope.reporting.markdown import to_markdown
from headscope_studies.dark_secrets import report
from headscope_studies.dark_secrets.claims import name_related
from headscope_studies.dark_secrets.pages.facts import DarkFacts
from headscope_studies.dark_secrets.starts import MAJORITY, RANDOM, TUNED

FOLDER = Path(__file__).parent

DRAWN = ("figure_2", "cosine", "heads", "relation")
"""The figures of the study's report that are on this page."""

SHOWN = (MAJORITY, RANDOM, TUNED)
"""The starts that are compared on the main page."""

SECTIONS = (
    "Patterns",
    "What fine-tuning changes",
    "Heads and layers disabled",
    "Pretrained and random weights",
    *report.RELATED.values(),
)
"""The sections of the study's report that are on this page."""


def page(facts: DarkFacts) -> bytes:
    """Return the page."""
    bodies = [to_markdown(_body(facts, label), _pictures(label), level=2) for label in facts.models]
    return fill_template(
        FOLDER / "tables.md",
        **verdict_values(facts),
        relations={
            f"{label}, {kind}": to_grid(relation_verdicts(facts, kind, label))
            for kind, results in facts.related.items()
            for label in results
        },
        bodies="\n".join(bodies),
        judged=report.JUDGED,
    ).encode()


def starts_grid(facts: DarkFacts) -> str:
    """Return the scores of fine-tuned models from every start, model by model and task by task."""
    columns = [TableColumn("metric", "metric")]
    columns += [TableColumn(name, "start_score", {"start": name}, interval=name != MAJORITY) for name in SHOWN]
    frames = []
    for label, data in facts.models.items():
        frame = format_intervals(to_frame(data, {"task": "task"}, columns), ".2f", SHOWN[1:])
        share = data["start_score"].sel(start=MAJORITY).values  # a regression has no most common label
        frame[MAJORITY] = [f"{value:.2f}" if value == value else "" for value in share]
        frame = frame.reindex(columns=["metric", *SHOWN]).astype(object).fillna("")  # a start may not have been run
        frames.append(
            frame.set_axis(pd.Index([f"{facts.names[label]}, {task}" for task in frame.index], name="model, task"))
        )
    return to_grid(pd.concat(frames))


def draw_pictures(facts: DarkFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    figures: dict[str, Figure] = {}
    for label in facts.models:
        paths = _pictures(label)
        content = [item for section in facts.reports[label].sections for item in section.parts]
        pictures = [item for item in content if isinstance(item, Picture) and item.name in paths]
        figures |= {Path(paths[picture.name]).name: picture.figure for picture in pictures}
    return figures


def _pictures(label: str) -> dict[str, str]:
    return {name: f"pictures/{DarkFacts.stem}{label}_{name}.svg" for name in DRAWN}


def relation_verdicts(facts: DarkFacts, kind: str, label: str) -> pd.DataFrame:
    """Return the verdicts on the relations of one model, with the intervals that decide."""
    letters, rows = find_letters(facts), {}
    for claim in facts.judged_all[name_related(kind, label)]:
        rows[claim.text] = {
            task.task: f"{letters[task.verdict]} {format_interval(claim.claim, task.interval)}" for task in claim.tasks
        }
    return pd.DataFrame.from_dict(rows, "index").T.rename_axis("relation")


def _body(facts: DarkFacts, label: str) -> Document:
    """Return what the page has on one model, from the study's own report."""
    judged = facts.judged[label]
    sections = {section.title: section for section in facts.reports[label].sections}
    sentences = "\n".join(f"- {claim.text} {describe_verdicts(claim)}" for claim in judged)
    lead = fill_template(report.TEXTS["one model in the tables"], claims=len(judged), tasks=len(judged[0].tasks))
    content = [Section(title, _select(sections[title].parts)) for title in SECTIONS if title in sections]
    return Document(label, lead, [Section("Verdicts in words", [Paragraph(sentences)]), *content])


def _select(content: Sequence[Part]) -> list[Part]:
    """Return the paragraphs, tables and those figures that are on this page."""
    left_out = ("verdicts_by_relations", "verdicts_by_semantic")  # with other corrections above
    return [
        item
        for item in content
        if isinstance(item, Paragraph)
        or (item.name in DRAWN if isinstance(item, Picture) else item.name not in left_out)
    ]
