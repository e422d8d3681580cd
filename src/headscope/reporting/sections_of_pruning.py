"""Sections of a report about pruning curves."""

import xarray as xr

from headscope.core.document import Section
from headscope.reporting.section_parts import SectionContext, try_figure
from headscope.results.stamp import read_provenance


def pruning_sections(data: xr.Dataset, context: SectionContext) -> list[Section]:
    """Return a section with the curve; its numbers follow in a table."""
    facts = read_provenance(data)
    order = {"importance": "the least important first", "random": "in random orders"}.get(str(facts.get("by")), "")
    caption = f"Score with fewer and fewer heads{f', {order}' if order else ''}"
    picture = try_figure(data, "pruning_curve", context.name("pruning", "curve"), caption, facts.get("n", ""))
    return [Section(context.title("pruning"), [picture])]
