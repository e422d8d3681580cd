"""Sections of a report about importances: each text with shaded words, and its most important tokens."""

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, Table
from headscope.plotting.running_text import ShadedText, read_texts
from headscope.plotting.selection import select_example
from headscope.reporting.sections.maps import MAX_EXAMPLES
from headscope.reporting.sections.measurements import Sections
from headscope.reporting.sections.parts import SectionContext, try_figure

MAX_TOKENS = 10
"""Tokens of a text in its table."""


def importance_sections(data: xr.Dataset, context: SectionContext) -> Sections:
    """Return the section of one example, or of each of several."""
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
    parts: list[Part] = [try_figure(data, "words", context.name("words"), caption, 1)]
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
