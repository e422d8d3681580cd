"""Sections of maps of one text: the maps themselves, and what each lens says of them."""

import xarray as xr

from headscope.core.document import Part, Section
from headscope.reporting.measured import Sections, variable_parts
from headscope.reporting.parts import Place, tried
from headscope.results import measured


def mapped_sections(data: xr.Dataset, place: Place) -> Sections:
    """Standard and another lens side by side where both are there, every head, and numbers such as the share."""
    lenses = [str(each) for each in measured.opened(data)["lens"].values]
    parts: list[Part] = []
    if "raw" in lenses and len(lenses) > 1:
        caption = "Standard attention, another lens, and what differs"
        parts.append(tried(data, "compare", place.name("compare"), caption, 1))
    else:
        caption = f"The map of one head, {lenses[0]}"
        parts.append(tried(data, "matrix", place.name("matrix"), caption, 1, lens=lenses[0]))
    if data.sizes.get("layer", 1) * data.sizes.get("head", 1) > 1:
        for lens in lenses:
            caption = f"Every head, {lens}"
            parts.append(tried(data, "head_grid", place.name("every_head", lens), caption, 1, lens=lens))
    found = [Section(place.title("maps"), parts)]
    beside = [name for name in measured.names(data) if name != "n"]
    for name in beside:
        found.append(Section(place.title(name), variable_parts(data, name, place)))
    return found, {"weights", "visible", "picture", "n", *beside}
