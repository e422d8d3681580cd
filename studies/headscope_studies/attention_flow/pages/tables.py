"""The page docs/tables.md: every table behind docs/attention_flow.md."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Part, Picture, Section
from headscope.core.provenance import read_provenance
from headscope.experiments.claims import JudgedClaim
from headscope.experiments.pages.tables import verdict_values
from headscope.experiments.rendering.report import Captioner, describe_learned, describe_unlearned
from headscope.experiments.rendering.sentences import describe_verdicts
from headscope.experiments.seeds import combine_seeds
from headscope.experiments.template import fill_template
from headscope.reporting.frames import TableColumn, to_frame
from headscope.reporting.markdown import to_markdown
from headscope_studies.attention_flow import report
from headscope_studies.attention_flow.pages.facts import SCRIPT_END, FlowFacts
from headscope_studies.attention_flow.paper import ACCURACY, SENTENCES
from headscope_studies.attention_flow.replaced_word import draw_replaced, read_replaced

FOLDER = Path(__file__).parent

SENTENCE_FIGURES = tuple(f"sentence_{number}" for number in range(1, 1 + len(SENTENCES)))
DRAWN = ("inner", "focus", "words", "figure_1", "figure_2", "figure_3", "figure_4", *SENTENCE_FIGURES)
"""The figures of the study's report that are on this page."""


def page(facts: FlowFacts) -> bytes:
    """Return the page."""
    bodies = [to_markdown(_body(facts, label), _pictures(label), level=2) for label in facts.models]
    return fill_template(
        FOLDER / "tables.md",
        **verdict_values(facts),
        bodies="\n".join(bodies),
        method=[report.JUDGED, report.TEXTS["saturation"], *report.TEXTS["method"].split("\n\n")],
        code=report.CODE,
    ).encode()


def draw_pictures(facts: FlowFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    figures: dict[str, Figure] = {}
    for label in facts.models:
        paths = _pictures(label)
        found = [*_by_name(facts.reports[label]).values(), *_report_sentences(facts.more[label].get("sentences"))]
        pictures = [item for item in found if isinstance(item, Picture)]
        figures |= {Path(paths[picture.name]).name: picture.figure for picture in pictures if picture.name in paths}
    return figures


def _pictures(label: str) -> dict[str, str]:
    return {name: f"pictures/{FlowFacts.stem}{label}_{name}.svg" for name in DRAWN}


def _by_name(document: Document) -> dict[str, Part]:
    """Return the tables and figures of a document by name."""
    content = [item for section in document.sections for item in section.parts]
    return {item.name: item for item in content if not isinstance(item, Paragraph)}


def _body(facts: FlowFacts, label: str) -> Document:
    """Return what the page has on one model, from the study's own report."""
    whole, results, data = facts.reports[label], facts.more[label], facts.models[label]
    known = _by_name(whole)
    lead = " ".join(filter(None, (describe_learned(data), describe_unlearned(data))))
    sentences = _list_verdicts(facts.judged[label])
    examples = [item for section in whole.sections if section.title == "Examples" for item in section.parts]
    sections: dict[str, list[Part]] = {
        "Verdicts in words": [Paragraph(sentences)],
        "Accuracy": [
            *(known[name] for name in ("accuracy", "accuracy_by_attractors") if name in known),
            *_report_accuracy(results.get("accuracy")),
        ],
        "Correlation with importances": [known[name] for name in ("table_1", "table_2", "table_3") if name in known],
        "The authors' script, step by step": _report_script(facts, label),
        "Only inputs predicted correctly": [known[name] for name in known if name.endswith("_correct")],
        "Graphs of other weights": [known["inner"], known["scores"]],
        "Examples": examples,
        "The paper's own sentences": _report_sentences(results.get("sentences")),
        "Special tokens, single heads, the receptive field": _report_appendix(results.get("appendix")),
        "A masked pronoun": [
            *report.report_pronouns(results.get("pronouns")),
            *_report_referents(results.get("referents")),
        ],
        "Where the weight is": [known[name] for name in ("focus", "words", "lift") if name in known],
        "Saturation of flow": [Paragraph(report.fill_saturated(data)), known["at_bound"]],
    }
    return Document(label, lead, [Section(*section) for section in sections.items() if section[1]])


def _report_accuracy(scores: xr.Dataset | None) -> list[Part]:
    """Return the accuracy on all test sentences by seed and attractors, beside the most common label."""
    if scores is None:
        return []
    columns = [
        TableColumn("accuracy", "accuracy"),
        TableColumn("most common label", "majority"),
        TableColumn("sentences", "n", whole=True),
    ]
    frame = to_frame(scores, {"seed": "seed", "attractors": "attractors"}, columns)
    sample = Captioner(report.CAPTIONS, f"{int(scores['n'].sel(attractors='all')[0]):,} sentences")
    return [sample.table("accuracy_all", frame, accuracy=ACCURACY)]


def _list_verdicts(judged: Sequence[JudgedClaim]) -> str:
    return "\n".join(f"- {claim.text} {describe_verdicts(claim)}" for claim in judged)


def _report_script(facts: FlowFacts, label: str) -> list[Part]:
    """Return the verdicts on what the authors' script measures, and its numbers step by step."""
    if label not in facts.scripts:
        return []
    verdicts = Paragraph(_list_verdicts(facts.judged_all[f"{label}{SCRIPT_END}"]))
    return [verdicts, *report.report_steps(combine_seeds(facts.scripts[label]))]


def _report_sentences(shown: xr.Dataset | None) -> list[Part]:
    """Return what was predicted for the paper's sentences, before and after a word is replaced."""
    if shown is None:
        return []
    texts = [shown.sel(shown=name) for name in shown["shown"].values]
    values = [read_replaced(one.assign(task="", seed=0)) | {"seed": None} for one in texts]
    paragraphs = [Paragraph(fill_template(report.TEXTS["sentence"], **value)) for value in values]
    sample = Captioner(report.CAPTIONS, "1 sentence in two versions")
    pictures = [sample.picture(f"sentence_{at}", draw_replaced(one)) for at, one in enumerate(texts, start=1)]
    return [part for pair in zip(paragraphs, pictures, strict=True) for part in pair]


def _report_appendix(data: xr.Dataset | None) -> list[Part]:
    """Return what the paper names without a number: special tokens, single heads, the receptive field."""
    if data is None:
        return []
    whole, sample = combine_seeds(data), Captioner(report.CAPTIONS, f"{read_provenance(data)['n']:,} inputs")
    columns = {
        name: [TableColumn(f"L{layer}", name, {"layer": layer}) for layer in data["layer"].values]
        for name in ("correlation", "field_correlation")
    }
    special = to_frame(whole, {"importance": "importance", "lens": "attention"}, columns["correlation"])
    field = to_frame(
        whole.sel(importance=["blank-out", "gradient"]),
        {"importance": "importance", "field_lens": "attention"},
        columns["field_correlation"],
    )
    return [
        sample.table("special", special),
        sample.table("single_heads", _summarise_heads(whole)),
        sample.table("field", field),
    ]


def _summarise_heads(data: xr.Dataset) -> pd.DataFrame:
    """Return the least, the mean and the greatest correlation of a layer's heads, with that of merged heads."""
    heads, merged = data["head_correlation"], data["correlation"].sel(importance="blank-out")
    cells = {
        str(lens): {
            f"L{layer}": "{:.2f}, {:.2f}, {:.2f} ({:.2f})".format(
                *(float(getattr(one, name)()) for name in ("min", "mean", "max")),
                float(merged.sel(lens=lens, layer=layer)),
            ).replace("-", "−")
            for layer, one in ((layer, heads.sel(lens=lens, layer=layer)) for layer in data["layer"].values)
        }
        for lens in data["lens"].values
    }
    return pd.DataFrame.from_dict(cells, "index").rename_axis("attention")


def _report_referents(counts: xr.Dataset | None) -> list[Part]:
    """Return in how many texts the masked pronoun attends more to its referent than to the other name."""
    if counts is None:
        return []
    last = counts.isel(layer=-1)
    frame = to_frame(last, {"set": "texts", "lens": "attention"}, [TableColumn("share of texts", "referent")])
    sizes = [f"{name} {int(last['n'].sel(set=name)):,}" for name in last["set"].values]
    sample = Captioner(report.CAPTIONS, f"{', '.join(sizes)} texts")
    shares = {name: list_shares(last, name) for name in ("filled", "nearest")}
    return [sample.table("referents", frame), Paragraph(fill_template(report.TEXTS["referents"], **shares))]


def list_shares(counts: xr.Dataset, name: str) -> list[dict[str, Any]]:
    """Return a share of the texts of each set, in percent, where it was counted."""
    shares = {str(texts): 100 * float(counts[name].sel(set=texts)) for texts in counts["set"].values}
    return [{"texts": texts, "share": share} for texts, share in shares.items() if not np.isnan(share)]
