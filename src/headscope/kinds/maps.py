"""Attention maps of texts, through one or more lenses."""

from collections.abc import Collection
from textwrap import shorten

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, SectionContext, Table
from headscope.core.kind import Kind, Sections
from headscope.core.prose import count_noun
from headscope.plotting.selection import DIAGNOSTICS, select_example
from headscope.results.document_parts import describe_lenses, draw_part
from headscope.results.select import head_variables, restore_axes

MAX_EXAMPLES, MAX_LETTERS = 12, 400
"""Examples that have a section each; maps of more are in the result file only. Longer texts are cut."""

MAX_ROWS = 48
"""Rows of the table of diagnostics."""

GRAPHS = ("edges", "capacities")
"""The variables that hold the graph of rollout and of flow."""


class Maps(Kind):
    """Attention maps of texts, through one or more lenses, with the diagnostics of each lens."""

    variables = {"weights": "from each query to each key", "query": "tokens", "key": "tokens"}

    def fits(self, data: xr.Dataset) -> bool:
        """Whether there are maps of layers and heads, and not the typical ones of a class."""
        return super().fits(data) and {"layer", "head"} <= {*data.dims, *data.coords} and "map" not in data.dims

    def lead(self, data: xr.Dataset) -> str:
        """Return the number of texts, and the lenses."""
        count = data.sizes.get("example", 1)
        return f"Attention maps of {'one text' if count == 1 else count_noun(count, 'text')}{describe_lenses(data)}."

    def figure(self, data: xr.Dataset, options: Collection[str] = ()) -> str:
        """Return a comparison of several lenses, the matrix of one head, or the grid of all."""
        lenses = np.atleast_1d(data["lens"].values).tolist() if "lens" in data.coords else []
        if len(lenses) > 1:
            return "compare"
        single = data.sizes.get("layer", 1) * data.sizes.get("head", 1) == 1
        return "matrix" if single or {"layer", "head"} & set(options) else "head_grid"

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return the sections of one example, or of each of several."""
        return _sections(data, context)


def _sections(data: xr.Dataset, context: SectionContext) -> Sections:
    if "example" not in data.dims:
        return _example_sections(data, context)
    sections, shown = [], set()
    count = data.sizes["example"]
    for row in range(min(count, MAX_EXAMPLES)):
        example = select_example(data, row)
        inner = context.narrow(f"example {example['example'].item()}") if count > 1 else context
        (section,), names = _example_sections(example, inner)
        text = " ".join(str(example[name].item()) for name in ("text", "pair") if name in example.coords)
        sections.append(
            Section(section.title, [Paragraph(shorten(text, MAX_LETTERS, placeholder=" …")), *section.parts])
        )
        shown |= names
    if count > MAX_EXAMPLES:
        rest = f"The first {MAX_EXAMPLES} of {count:,} examples are shown. Choose others with maps.sel(example=[…])."
        sections.append(Section(context.title("other examples"), [Paragraph(rest)]))
    return sections, shown


def _example_sections(data: xr.Dataset, context: SectionContext) -> Sections:
    """Return a section with raw attention beside another lens, every head, and diagnostics such as the share."""
    restored = restore_axes(data)
    lenses = [str(lens) for lens in restored["lens"].values]
    parts: list[Part] = []
    if "raw" in lenses and len(lenses) > 1:
        caption = "Raw attention, another lens, and their difference"
        parts += draw_part(context, restored, "compare", context.name("compare"), caption, 1)
    else:
        caption = f"The map of one head, {lenses[0]}"
        parts += draw_part(context, restored, "matrix", context.name("matrix"), caption, 1, lens=lenses[0])
    if restored.sizes["layer"] * restored.sizes["head"] > 1:
        for lens in lenses:
            name = context.name("every_head", lens)
            what = "head" if restored.sizes["head"] > 1 else "layer"
            parts += draw_part(context, restored, "head_grid", name, f"Every {what}, {lens}", 1, lens=lens)
        if "share" in restored:
            caption = "How much of every head's attention is effective"
            parts += draw_part(context, restored, "head_grid", context.name("share"), caption, 1, colour="share")
    graphs = [name for name in GRAPHS if name in restored]
    for lens in lenses if restored.sizes["head"] == 1 else ():
        if any(bool(restored[name].sel(lens=lens).notnull().any()) for name in graphs):
            caption = f"How attention reaches a token through the layers, {lens}"
            parts += draw_part(context, restored, "layered", context.name("layered", lens), caption, 1, lens=lens)
    names = [name for name in head_variables(restored) if restored[name].notnull().any()]
    if names:
        parts.append(_diagnostics_table(restored, names, context))
    return [Section(context.title("maps"), parts)], {"weights", "visible", "picture", *graphs, *names}


def _diagnostics_table(data: xr.Dataset, names: list[str], context: SectionContext) -> Table:
    """Return the diagnostics of every map, as means over heads where there are too many rows."""
    axes, means = ["lens", "layer", "head"], ""
    table = data[names].squeeze([axis for axis in data[names].dims if axis not in axes], drop=True)
    if table.sizes["layer"] * table.sizes["head"] * table.sizes["lens"] > MAX_ROWS:
        means = f" Means over {table.sizes['head']} heads."
        axes, table = axes[:2], table.mean("head")
    frame = table.reset_coords(drop=True).to_dataframe(dim_order=axes)[names]
    integers = {name: pd.Int64Dtype() for name in names if (frame[name].dropna() % 1 == 0).all()}
    explained = "; ".join(f"{name}: {DIAGNOSTICS[name]}" for name in names if name in DIAGNOSTICS)
    caption = f"Diagnostics of the maps{f' ({explained})' if explained else ''}.{means}"
    return Table(context.name("known"), caption, frame.astype(integers), 1)
