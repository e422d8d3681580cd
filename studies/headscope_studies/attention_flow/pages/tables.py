"""The page docs/tables.md: every table behind docs/attention_flow.md."""

from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Picture, Section, Table
from headscope.experiments.pages.tables import verdict_values
from headscope.experiments.rendering.report import describe_learned, describe_unlearned
from headscope.experiments.rendering.sentences import describe_verdicts
from headscope.reporting.frames import Quantity, to_frame
from headscope.reporting.markdown import to_markdown
from headscope_studies.attention_flow import report
from headscope_studies.attention_flow.pages.facts import FlowFacts
from headscope_studies.attention_flow.paper import ACCURACY

FOLDER = Path(__file__).parent

DRAWN = ("inner", "focus", "words", "figure_2", "figure_3", "figure_4")
"""The figures of the study's report that are on this page."""

REFERENTS = "In {share:.0f} % of the texts of {name} the form of the pronoun that was masked is the more probable one."
NEAREST = "The name that is nearest to the pronoun is its referent in {share:.0f} % of the texts of {name}."
MASCULINE = (
    "In Winogender the masculine form was masked; without it the text is the same for all genders. The model is a "
    "masked language model tuned from the one named here, and of a name the first word is weighed."
)
CAPTION = "Share of texts in which the masked pronoun gives its referent more weight than the other name, last layer."


def page(facts: FlowFacts) -> bytes:
    """Return the page."""
    bodies = {label: _body(facts, label) for label in facts.models}
    method = (report.JUDGED, report.TEXTS["saturation"], *report.TEXTS["method"].split("\n\n"))
    text = (
        (FOLDER / "tables.md")
        .read_text(encoding="utf-8")
        .format(
            **verdict_values(facts),
            bodies="\n".join(to_markdown(body, _pictures(label), level=2) for label, body in bodies.items()),
            method="\n\n".join(f"- {line}" for line in method),
            code=report.CODE,
        )
    )
    return text.encode()


def draw_pictures(facts: FlowFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    figures = {}
    for label in facts.models:
        names = _pictures(label)
        figures |= {Path(names[part.name]).name: part.figure for part in _parts(facts.reports[label]).values()
                    if isinstance(part, Picture) and part.name in names}  # fmt: skip
    return figures


def _pictures(label: str) -> dict[str, str]:
    return {name: f"pictures/{FlowFacts.stem}{label}_{name}.svg" for name in DRAWN}


def _parts(whole: Document) -> dict[str, Part]:
    return {part.name: part for section in whole.sections for part in section.parts if not isinstance(part, Paragraph)}


def _body(facts: FlowFacts, label: str) -> Document:
    """Return the part of the page on one model, from the parts of the study's own report."""
    whole, data, judged = facts.reports[label], facts.more[label], facts.judged[label]
    numbers, parts = facts.models[label], _parts(whole)
    lead = " ".join(filter(None, (describe_learned(numbers), describe_unlearned(numbers))))
    sentences = "\n".join(f"- {claim.text} {describe_verdicts(claim)}" for claim in judged)
    tables = [parts[name] for name in ("table_1", "table_2", "table_3") if name in parts]
    replaced = [part for section in whole.sections if section.title == "Examples"
                for part in section.parts if isinstance(part, Paragraph) or part.name != "figure_1"]  # fmt: skip
    sections: dict[str, list[Part]] = {
        "Verdicts in words": [Paragraph(sentences)],
        "Accuracy": [
            *(parts[name] for name in ("accuracy", "accuracy_by_attractors") if name in parts),
            *_report_accuracy(data.get("accuracy")),
        ],
        "Correlation with importances": tables,
        "Only inputs predicted correctly": [parts[name] for name in parts if name.endswith("_correct")],
        "Graphs of other weights": [parts["inner"], parts["scores"], parts["formulas"]],
        "Examples": replaced,
        "A masked pronoun": [*report.report_pronouns(data.get("pronouns")), *_report_referents(data.get("referents"))],
        "Where the weight is": [parts[name] for name in ("focus", "words", "lift") if name in parts],
        "Saturation of flow": [Paragraph(report.describe_saturation(numbers)), parts["at_bound"]],
    }
    return Document(label, lead, [Section(*section) for section in sections.items() if section[1]])


def _report_accuracy(scores: xr.Dataset | None) -> list[Part]:
    """Return the accuracy on all test sentences by seed and attractors, beside the most common label."""
    if scores is None:
        return []
    columns = [
        Quantity("accuracy", "accuracy"),
        Quantity("most common label", "majority"),
        Quantity("sentences", "n", whole=True),
    ]
    frame = to_frame(scores, {"seed": "seed", "attractors": "attractors"}, columns)
    caption = "Accuracy on all test sentences of agreement, beside the most common label; the paper's is {:.2f}."
    n = f"{int(scores['n'].sel(attractors='all')[0]):,} sentences"
    return [Table("accuracy_all", caption.format(ACCURACY), frame, n)]


def _report_referents(counts: xr.Dataset | None) -> list[Part]:
    """Return in how many texts the masked pronoun attends more to its referent than to the other name."""
    if counts is None:
        return []
    last = counts.isel(layer=-1)
    frame = to_frame(last, {"set": "texts", "lens": "attention"}, [Quantity("share of texts", "referent")])
    parts = [f"{name} {int(last['n'].sel(set=name)):,}" for name in map(str, last["set"].values)]
    filled = [REFERENTS.format(name=name, share=100 * float(last["filled"].sel(set=name)))
              for name in map(str, last["set"].values)]  # fmt: skip
    if "nearest" in last:
        known = last.sel(set=last["nearest"].notnull())
        filled += [NEAREST.format(name=name, share=100 * float(known["nearest"].sel(set=name)))
                   for name in map(str, known["set"].values)]  # fmt: skip
    return [Table("referents", CAPTION, frame, f"{', '.join(parts)} texts"), Paragraph(" ".join([*filled, MASCULINE]))]
