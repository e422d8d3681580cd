"""The page docs/tables.md: every table behind docs/argument_cues.md."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Picture, Section
from headscope.core.study import Results
from headscope.experiments.pages.tables import verdict_values
from headscope.experiments.rendering.sentences import describe_verdicts
from headscope.experiments.template import fill_template
from headscope.reporting.markdown import to_markdown
from headscope_studies.argument_cues import report
from headscope_studies.argument_cues.claims import LEARNED
from headscope_studies.argument_cues.pages.facts import CueFacts

FOLDER = Path(__file__).parent

DRAWN = ("heads_drawn",)
"""The figures of the study's report that are on this page."""

SHOWN = ("Parts of the input", "Following the cue", "Where no single word tells the answer", "Heads")
AUDITED = ("Cues of the data", *SHOWN[:3])


def page(facts: CueFacts) -> bytes:
    """Return the page."""
    bodies = [to_markdown(_body(facts, label), _pictures(label), level=2) for label in facts.measured]
    bodies += [to_markdown(_audit(name, tables), {}, level=2) for name, tables in facts.audits.items()]
    label = next(iter(facts.measured))
    lead, sets, listed, *printed = _tables(_sections(facts.reports[label])["Cues of the data"].parts)
    assert isinstance(lead, Paragraph)
    sections = [Section("The strongest cues", [sets, listed]), Section("What the paper prints", printed)]
    sections += [section for title, section in _sections(facts.reports[label]).items() if title == "Pairs of words"]
    text = fill_template(
        FOLDER / "tables.md",
        **verdict_values(facts),
        cues=to_markdown(Document("Cues of ARCT", lead.text, sections), {}, level=2),
        bodies="\n".join(bodies),
        judged=report.fill_text("judged", judged="test", learned=LEARNED),
    )
    return text.encode()


def draw_pictures(facts: CueFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    figures: dict[str, Figure] = {}
    for label in facts.measured:
        names = _pictures(label)
        parts = (part for section in _sections(facts.reports[label]).values() for part in section.parts)
        shown = [part for part in parts if isinstance(part, Picture) and part.name in names]
        figures |= {Path(names[picture.name]).name: picture.figure for picture in shown}
    return figures


def _sections(document: Document) -> dict[str, Section]:
    return {section.title: section for section in document.sections}


def _pictures(label: str) -> dict[str, str]:
    return {name: f"pictures/{CueFacts.stem}{label}_{name}.svg" for name in DRAWN}


def _body(facts: CueFacts, label: str) -> Document:
    """Return the part of the page on one model, from the parts of the study's own report."""
    known = _sections(facts.reports[label])
    sentences = "\n".join(f"- {claim.text} {describe_verdicts(claim)}" for claim in facts.judged[label])
    sections = [Section("Verdicts in words", [Paragraph(sentences)])]
    sections += [Section(title, _tables(known[title].parts)) for title in SHOWN]
    return Document(label, "", sections)


def _audit(name: str, tables: Results) -> Document:
    """Return the part of the page on other data."""
    known = _sections(report.document(tables))
    return Document(f"Audit of {name}", "", [Section(title, _tables(known[title].parts)) for title in AUDITED])


def _tables(parts: Sequence[Part]) -> list[Part]:
    return [part for part in parts if not isinstance(part, Picture) or part.name in DRAWN]
