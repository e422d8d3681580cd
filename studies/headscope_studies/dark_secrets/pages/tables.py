"""The page docs/tables.md: every table behind docs/dark_secrets.md."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Picture, Section
from headscope.experiments.claims import JudgedClaim, format_interval
from headscope.experiments.pages.tables import find_letters, format_intervals, to_grid, verdict_values
from headscope.experiments.rendering.sentences import describe_verdicts
from headscope.reporting.frames import Quantity, to_frame
from headscope.reporting.markdown import to_markdown
from headscope_studies.dark_secrets import report
from headscope_studies.dark_secrets.claims import name_relations
from headscope_studies.dark_secrets.pages.facts import DarkFacts
from headscope_studies.dark_secrets.starts import MAJORITY, STARTS

FOLDER = Path(__file__).parent

DRAWN = ("figure_2", "cosine", "heads", "relation")
"""The figures of the study's report that are on this page."""


def page(facts: DarkFacts) -> bytes:
    """Return the page."""
    bodies = [to_markdown(_body(facts, label), _pictures(label), level=2) for label in facts.models]
    text = (
        (FOLDER / "tables.md")
        .read_text(encoding="utf-8")
        .format(
            **verdict_values(facts),
            relations="\n\n".join(_relation_verdicts(facts, label) for label in facts.relations),
            bodies="\n".join(bodies),
            judged=report.JUDGED,
        )
    )
    return text.encode()


def starts_grid(facts: DarkFacts) -> str:
    """Return the scores from every start, model by model and task by task."""
    columns = [Quantity("metric", "metric")]
    columns += [Quantity(name, "start_score", {"start": name}, interval=name != MAJORITY) for name in STARTS]
    frames = []
    for label, data in facts.models.items():
        frame = format_intervals(to_frame(data, {"task": "task"}, columns), ".2f", [*STARTS[1:]])
        share = data["start_score"].sel(start=MAJORITY).values  # a regression has no most common label
        frame[MAJORITY] = [f"{value:.2f}" if value == value else "" for value in share]
        frame = frame[["metric", *STARTS]]
        frames.append(frame.set_axis(pd.Index([f"{label}, {task}" for task in frame.index], name="model, task")))
    return to_grid(pd.concat(frames))


def draw_pictures(facts: DarkFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    figures = {}
    for label in facts.models:
        names = _pictures(label)
        parts = (part for section in facts.reports[label].sections for part in section.parts)
        figures |= {
            Path(names[part.name]).name: part.figure
            for part in parts
            if isinstance(part, Picture) and part.name in names
        }
    return figures


def _pictures(label: str) -> dict[str, str]:
    return {name: f"pictures/{DarkFacts.stem}{label}_{name}.svg" for name in DRAWN}


def _relation_verdicts(facts: DarkFacts, label: str) -> str:
    """Return the verdicts on the relations of one model, with the intervals that decide."""
    letters, rows = find_letters(facts), {}
    for claim in facts.judged_all[name_relations(label)]:
        rows[claim.text] = {task.task: f"{letters[task.verdict]} {format_interval(claim.claim, task.interval)}"
                            for task in claim.tasks}  # fmt: skip
    frame = pd.DataFrame.from_dict(rows, "index").T.rename_axis("relation")
    return f"**{label}**\n\n{to_grid(frame)}"


def _body(facts: DarkFacts, label: str) -> Document:
    """Return the part of the page on one model, from the parts of the study's own report."""
    whole, judged = facts.reports[label], facts.judged[label]
    known = {section.title: section for section in whole.sections}
    sentences = "\n".join(f"- {claim.text} {describe_verdicts(claim)}" for claim in judged)
    shown = ("Patterns", "What fine-tuning changes", "Heads and layers disabled", "Pretrained and random weights",
             "Relations between words")  # fmt: skip
    sections = [Section("Verdicts in words", [Paragraph(sentences)])]
    sections += [Section(title, _select(known[title].parts)) for title in shown if title in known]
    return Document(label, _describe(judged), sections)


def _select(parts: list[Part]) -> list[Part]:
    """Return the paragraphs, tables and those figures that are on this page."""
    left_out = ("verdicts_by_relation",)  # with other corrections above
    return [part for part in parts if isinstance(part, Paragraph)
            or (part.name in DRAWN if isinstance(part, Picture) else part.name not in left_out)]  # fmt: skip


def _describe(judged: list[JudgedClaim]) -> str:
    return f"{len(judged)} claims on {len(judged[0].tasks)} tasks."
