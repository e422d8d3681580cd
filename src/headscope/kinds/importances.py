"""How much each token of a text matters for a prediction."""

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Section, SectionContext, Table
from headscope.core.kind import Kind, Sections
from headscope.core.prose import count_noun, join_words
from headscope.core.provenance import read_provenance
from headscope.plotting.running_text import ShadedText, read_texts
from headscope.plotting.selection import select_example
from headscope.results.document_parts import draw_part

MAX_EXAMPLES = 12
"""Examples that have a section each."""

MAX_TOKENS = 10
"""Tokens of a text in its table."""


class Importances(Kind):
    """How much each token of a text matters for a prediction: shaded words, and the most important tokens."""

    variables = {"importance": "of each token", "method": "by which it was computed"}
    default_figure = "words"
    subject = "Importances of tokens"
    model_subject = "What matters to {}"

    def lead(self, data: xr.Dataset) -> str:
        """Return the number of texts, and the methods."""
        methods = join_words(f"`{method}`" for method in np.atleast_1d(data["method"].values))
        texts = count_noun(data.sizes.get("example", 1), "text")
        return f"How much each token of {texts} matters for the prediction, by {methods}."

    def entries(self, data: xr.Dataset) -> list[tuple[str, str]]:
        """Return the methods."""
        return [("importance_methods", str(method)) for method in read_provenance(data).get("methods") or []]

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return the section of one example, or of each of several."""
        return _sections(data, context)


def _sections(data: xr.Dataset, context: SectionContext) -> Sections:
    names = {str(name) for name in data.data_vars}
    if "example" not in data["importance"].dims:
        return [_example_section(data, context)], names
    count = data.sizes["example"]
    sections = []
    for row in range(min(count, MAX_EXAMPLES)):
        example = select_example(data, row)
        inner = context.narrow(f"example {example['example'].item()}") if count > 1 else context
        sections.append(_example_section(example, inner))
    if count > MAX_EXAMPLES:
        rest = f"The first {MAX_EXAMPLES} of {count:,} examples are shown. Choose others with importances.sel([…])."
        sections.append(Section(context.title("other examples"), [Paragraph(rest)]))
    return sections, names


def _example_section(data: xr.Dataset, context: SectionContext) -> Section:
    targets = dict.fromkeys(str(target) for target in np.atleast_1d(data["target"].values))
    caption = f"The text, shaded by importance for the target {', '.join(targets)}"
    parts = draw_part(context, data, "words", context.name("words"), caption, 1)
    for text in read_texts(data):
        if np.isfinite(text.scores).any():
            parts.append(_tabulate(text, context))
    return Section(context.title("importances"), parts)


def _tabulate(text: ShadedText, context: SectionContext) -> Table:
    """Return the tokens with the largest scores by size."""
    sizes = np.where(np.isfinite(text.scores), np.abs(text.scores), -1.0)
    order = np.argsort(-sizes, kind="stable")[: min(MAX_TOKENS, int(np.isfinite(text.scores).sum()))]
    frame = pd.DataFrame(
        {
            "position": order,
            "token": [text.pieces[index].strip() for index in order],
            text.quantity: text.scores[order],
        }
    )
    about = f"{text.answer}, whose score is {text.score:.3g}"
    caption = f"The tokens that matter most for {about}, by {text.method}."
    return Table(context.name("largest", text.method), caption, frame, 1)
