"""The page of every table behind docs/sixteen_heads.md."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Picture, Section
from headscope.experiments.claims import MOOT, format_interval
from headscope.experiments.pages.tables import find_letters, to_grid, verdict_values
from headscope.experiments.rendering.sentences import describe_verdicts
from headscope.experiments.template import fill_template
from headscope.reporting.markdown import to_markdown
from headscope_studies.sixteen_heads import report
from headscope_studies.sixteen_heads.pages.facts import TRANSLATION, HeadFacts
from headscope_studies.sixteen_heads.translation import ALL, SITES

FOLDER = Path(__file__).parent

DRAWN = ("one_head", "importance", "pruning", "training", "figure_2")
TRANSLATED = ("translation_effects", "translation_pruning")
"""The figures of the study's report that are on this page."""

SHOWN = (
    "The data",
    "One head removed, and all but one",
    "Importance",
    "Pruning",
    "Another dataset of the task",
    "During training",
)
SKIPPED = (
    "translation_verdicts",
    "translation_sites",
    "translation_numbers",
)
"""Parts of the report that are further above."""


def page(facts: HeadFacts) -> bytes:
    """Return the page."""
    bodies = [to_markdown(_body(facts, label), _pictures(label), level=2) for label in facts.models]
    bodies.append(to_markdown(_translation(facts), _pictures(TRANSLATION), level=2))
    text = fill_template(
        FOLDER / "tables.md",
        facts=facts,
        **verdict_values(facts),
        translation=to_grid(tabulate_translation(facts)),
        bodies=bodies,
        judged=report.TEXTS["judged"],
        method=report.TEXTS["method"].split("\n\n"),
    )
    return text.encode()


def draw_pictures(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    figures = {}
    for label, reported in {**{label: label for label in facts.models}, TRANSLATION: next(iter(facts.models))}.items():
        names = _pictures(label)
        for part in _read_parts(facts, reported):
            if isinstance(part, Picture) and part.name in names:
                figures[Path(names[part.name]).name] = part.figure
    return figures


def _read_parts(facts: HeadFacts, label: str) -> list[Part]:
    return [part for section in facts.reports[label].sections for part in section.parts]


def _pictures(label: str) -> dict[str, str]:
    names = TRANSLATED if label == TRANSLATION else DRAWN
    return {name: f"pictures/{HeadFacts.stem}{label}_{name}.svg" for name in names}


def tabulate_translation(facts: HeadFacts) -> pd.DataFrame:
    """Return the verdicts on translation, with the intervals that decide; nothing where a claim does not apply."""
    letters, rows = find_letters(facts), {}
    for claim in facts.judged_all[TRANSLATION]:
        rows[claim.text] = {
            task.task: f"{letters[task.verdict]} {format_interval(claim.claim, task.interval)}"
            for task in claim.tasks
            if task.verdict != MOOT
        }
    return pd.DataFrame.from_dict(rows, "index", columns=[ALL, *SITES]).rename_axis("claim").fillna("")


def _body(facts: HeadFacts, label: str) -> Document:
    """Return the part of the page on one model, from the parts of the study's own report."""
    known = {section.title: section for section in facts.reports[label].sections}
    sentences = "\n".join(f"- {claim.text} {describe_verdicts(claim)}" for claim in facts.judged[label])
    sections = [Section("Verdicts in words", [Paragraph(sentences)])]
    sections += [Section(title, _select(known[title].parts)) for title in SHOWN]
    return Document(label, "", sections)


def _translation(facts: HeadFacts) -> Document:
    """Return the part of the page on the sites of a model that translates."""
    known = {section.title: section for section in facts.reports[next(iter(facts.models))].sections}
    return Document("Translation", "", [Section("Sites", _select(known["Translation"].parts))])


def _select(parts: Sequence[Part]) -> list[Part]:
    return [part for part in parts if isinstance(part, Paragraph) or part.name not in SKIPPED]
