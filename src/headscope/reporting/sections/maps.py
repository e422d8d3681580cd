"""Sections of a report about maps: those of one text with the diagnostics of each lens, and typical maps of classes."""

from textwrap import shorten

import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, Table
from headscope.plotting.selection import DIAGNOSTICS, select_example
from headscope.reporting.sections.measurements import MAX_ROWS, Sections
from headscope.reporting.sections.parts import SectionContext, try_figure
from headscope.results.select import head_variables, restore_axes

MAX_EXAMPLES, MAX_LETTERS = 12, 400
"""Examples that have a section each; maps of more are in the result file only. Longer texts are cut."""

GRAPHS = ("edges", "capacities")
"""The variables that hold the graph of rollout and of flow."""


def map_sections(data: xr.Dataset, context: SectionContext) -> Sections:
    """Return the sections of one example, or of each of several."""
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
    whole = restore_axes(data)
    lenses = [str(lens) for lens in whole["lens"].values]
    parts: list[Part] = []
    if "raw" in lenses and len(lenses) > 1:
        caption = "Raw attention, another lens, and their difference"
        parts.append(try_figure(whole, "compare", context.name("compare"), caption, 1))
    else:
        caption = f"The map of one head, {lenses[0]}"
        parts.append(try_figure(whole, "matrix", context.name("matrix"), caption, 1, lens=lenses[0]))
    if whole.sizes["layer"] * whole.sizes["head"] > 1:
        for lens in lenses:
            name = context.name("every_head", lens)
            what = "head" if whole.sizes["head"] > 1 else "layer"
            parts.append(try_figure(whole, "head_grid", name, f"Every {what}, {lens}", 1, lens=lens))
        if "share" in whole:
            caption = "How much of every head's attention is effective"
            parts.append(try_figure(whole, "head_grid", context.name("share"), caption, 1, colour="share"))
    graphs = [name for name in GRAPHS if name in whole]
    for lens in lenses if whole.sizes["head"] == 1 else ():
        if any(bool(whole[name].sel(lens=lens).notnull().any()) for name in graphs):
            caption = f"How attention reaches a token through the layers, {lens}"
            parts.append(try_figure(whole, "layered", context.name("layered", lens), caption, 1, lens=lens))
    names = [name for name in head_variables(whole) if whole[name].notnull().any()]
    if names:
        parts.append(_diagnostics_table(whole, names, context))
    return [Section(context.title("maps"), parts)], {"weights", "visible", "picture", *graphs, *names}


def typical_sections(data: xr.Dataset, context: SectionContext) -> Sections:
    """Return a section with the labelled maps that `headscope patterns typical` selected."""
    caption, n = "The maps of each class that the classifier is most confident of", data.sizes["map"]
    parts: list[Part] = [try_figure(data, "typical_maps", context.name("typical_maps"), caption, n)]
    columns = [name for name in ("label", "confidence", "source") if name in data]
    frame = data[columns].reset_coords(columns).to_dataframe()[columns]
    parts.append(Table(context.name("typical"), f"{caption}.", frame, n))
    return [Section(context.title("typical maps"), parts)], {"weights"}


def _diagnostics_table(data: xr.Dataset, names: list[str], context: SectionContext) -> Table:
    """Return the diagnostics of every map, as means over heads where there are too many rows."""
    axes, means = ["lens", "layer", "head"], ""
    part = data[names].squeeze([axis for axis in data[names].dims if axis not in axes], drop=True)
    if part.sizes["layer"] * part.sizes["head"] * part.sizes["lens"] > MAX_ROWS:
        means = f" Means over {part.sizes['head']} heads."
        axes, part = axes[:2], part.mean("head")
    frame = part.reset_coords(drop=True).to_dataframe(dim_order=axes)[names]
    integers = {name: pd.Int64Dtype() for name in names if (frame[name].dropna() % 1 == 0).all()}
    known = "; ".join(f"{name}: {DIAGNOSTICS[name]}" for name in names if name in DIAGNOSTICS)
    caption = f"Diagnostics of the maps{f' ({known})' if known else ''}.{means}"
    return Table(context.name("known"), caption, frame.astype(integers), 1)
