"""The page docs/which_lens_tables.md: every table behind docs/which_lens.md."""

from pathlib import Path

from headscope.core.document import Document, Paragraph, Picture, Section
from headscope.experiments.pages.tables import verdict_values
from headscope.experiments.rendering.sentences import describe_verdicts
from headscope.experiments.template import fill_template
from headscope.reporting.markdown import to_markdown
from headscope_studies.which_lens import report
from headscope_studies.which_lens.pages.facts import LensFacts

FOLDER = Path(__file__).parent
SHOWN = ("Edges", "Tokens", "Pictures", "How it was measured")
"""The sections of the study's report that are on this page, without their pictures."""


def page(facts: LensFacts) -> bytes:
    """Return the page."""
    bodies = [to_markdown(_body(facts, label), {}, level=2) for label in facts.measured]
    values = {**verdict_values(facts), "bodies": bodies, "judged": report.TEXTS["judged"]}
    return fill_template(FOLDER / "tables.md", facts=facts, **values).encode()


def _body(facts: LensFacts, label: str) -> Document:
    """Return the part of the page on one model, from the parts of the study's own report."""
    known = {section.title: section for section in facts.reports[label].sections}
    sentences = "\n".join(f"- {claim.text} {describe_verdicts(claim)}" for claim in facts.judged[label])
    sections = [Section("Verdicts in words", [Paragraph(sentences)])]
    for title in SHOWN:
        sections.append(Section(title, [part for part in known[title].parts if not isinstance(part, Picture)]))
    return Document(label, "", sections)
