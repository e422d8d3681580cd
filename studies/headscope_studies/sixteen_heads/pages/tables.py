"""The page docs/tables.md: every table behind docs/sixteen_heads.md."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Picture, Section
from headscope.experiments.claims import MOOT, format_interval
from headscope.experiments.pages.tables import find_letters, to_grid, verdict_values
from headscope.experiments.rendering.sentences import describe_verdicts
from headscope.reporting.markdown import to_markdown
from headscope_studies.sixteen_heads import report
from headscope_studies.sixteen_heads.pages.facts import TRANSLATION, HeadFacts

FOLDER = Path(__file__).parent

DRAWN = ("one_head", "importance", "figure_2")
TRANSLATED = ("translation_effects",)
"""The figures of the study's report that are on this page."""

SHOWN = ("The data", "One head removed, and all but one", "Importance", "Pruning", "Another dataset of the task",
         "During training")  # fmt: skip
SKIPPED = ("pruning", "training", "translation_pruning", "translation_verdicts", "translation_sites",
           "translation_numbers")  # fmt: skip
"""Parts of the report that are on the main page, or further above."""


def page(facts: HeadFacts) -> bytes:
    """Return the page."""
    bodies = [to_markdown(_body(facts, label), _pictures(label), level=2) for label in facts.models]
    bodies += [] if facts.sites is None else [to_markdown(_translation(facts), _pictures(TRANSLATION), level=2)]
    text = (
        (FOLDER / "tables.md")
        .read_text(encoding="utf-8")
        .format(
            **verdict_values(facts),
            translation=_translation_verdicts(facts),
            bodies="\n".join(bodies),
            judged=report.TEXTS["judged"],
            method="\n\n".join(f"- {line}" for line in report.TEXTS["method"].split("\n\n")),
        )
    )
    return text.encode()


def draw_pictures(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    groups = {label: _read_parts(facts, label) for label in facts.models}
    if facts.sites is not None:
        groups[TRANSLATION] = _read_parts(facts, next(iter(facts.models)))
    figures = {}
    for label, parts in groups.items():
        names = _pictures(label)
        figures |= {Path(names[part.name]).name: part.figure for part in parts
                    if isinstance(part, Picture) and part.name in names}  # fmt: skip
    return figures


def _read_parts(facts: HeadFacts, label: str) -> list[Part]:
    return [part for section in facts.reports[label].sections for part in section.parts]


def _pictures(label: str) -> dict[str, str]:
    names = TRANSLATED if label == TRANSLATION else DRAWN
    return {name: f"pictures/{HeadFacts.stem}{label}_{name}.svg" for name in names}


def _translation_verdicts(facts: HeadFacts) -> str:
    """Return the verdicts on translation, with the intervals that decide."""
    if facts.sites is None:
        return "No model that translates was studied."
    letters, rows = find_letters(facts), {}
    for claim in facts.judged_all[TRANSLATION]:
        rows[claim.text] = {task.task: "" if task.verdict == MOOT else
                            f"{letters[task.verdict]} {format_interval(claim.claim, task.interval)}"
                            for task in claim.tasks}  # fmt: skip
    return to_grid(pd.DataFrame.from_dict(rows, "index").rename_axis("claim"))


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


def _select(parts: list[Part]) -> list[Part]:
    return [part for part in parts if isinstance(part, Paragraph) or part.name not in SKIPPED]
