"""Sections of maps of one text: the maps themselves, and what each lens says of them."""

import pandas as pd
import xarray as xr

from headscope.core.document import Part, Section, Table
from headscope.reporting.measured import MANY, Sections
from headscope.reporting.parts import Place, tried
from headscope.results.select import head_variables, restore_axes

MEANINGS = {
    "n": "n: tokens",
    "rank": "rank: rank of the values",
    "null": "null: dimensions that never reach the output",
    "share": "share: size of the map ÷ size of the standard map",
    "residual": "residual: relative difference of the output",
}


def mapped_sections(data: xr.Dataset, place: Place) -> Sections:
    """Standard and another lens side by side where both are there, every head, and numbers such as the share."""
    whole = restore_axes(data)
    lenses = [str(each) for each in whole["lens"].values]
    parts: list[Part] = []
    if "raw" in lenses and len(lenses) > 1:
        caption = "Standard attention, another lens, and what differs"
        parts.append(tried(whole, "compare", place.name("compare"), caption, 1))
    else:
        caption = f"The map of one head, {lenses[0]}"
        parts.append(tried(whole, "matrix", place.name("matrix"), caption, 1, lens=lenses[0]))
    if whole.sizes["layer"] * whole.sizes["head"] > 1:
        for lens in lenses:
            caption = f"Every head, {lens}"
            parts.append(tried(whole, "head_grid", place.name("every_head", lens), caption, 1, lens=lens))
        if "share" in whole:
            caption = "How much of every head's attention is effective"
            parts.append(tried(whole, "head_grid", place.name("share"), caption, 1, colour="share"))
    names = [name for name in head_variables(whole) if whole[name].notnull().any()]
    if names:
        parts.append(_numbers(whole, names, place))
    return [Section(place.title("maps"), parts)], {"weights", "visible", "picture", *names}


def _numbers(data: xr.Dataset, names: list[str], place: Place) -> Table:
    """What is known of every map; means over heads, where there are many."""
    axes, said = ["lens", "layer", "head"], ""
    part = data[names].squeeze([axis for axis in data[names].dims if axis not in axes], drop=True)
    if part.sizes["layer"] * part.sizes["head"] * part.sizes["lens"] > MANY:
        said = f" Means over {part.sizes['head']} heads."
        axes, part = axes[:2], part.mean("head")
    frame = part.reset_coords(drop=True).to_dataframe(dim_order=axes)[names]
    whole = {name: pd.Int64Dtype() for name in names if (frame[name].dropna() % 1 == 0).all()}
    known = "; ".join(MEANINGS[name] for name in names if name in MEANINGS)
    caption = f"What is known of the maps{f' ({known})' if known else ''}.{said}"
    return Table(place.name("known"), caption, frame.astype(whole), 1)
