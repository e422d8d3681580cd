"""One head on one example, through several lenses."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from headscope.core.document import Picture
from headscope.core.example import Example
from headscope.core.provenance import read_provenance
from headscope.plotting.combine import combine_lenses
from headscope.plotting.facets import stacked_maps

if TYPE_CHECKING:
    from headscope.engine.model import Model

MORE = 20
"""Tokens beyond the value dimensions that an example should have: enough to differ, few enough to read."""


def choose_example(examples: Sequence[Example], tokens: Sequence[int], value_size: int) -> Example:
    """Return the first example whose length is nearest to one at which effective attention differs from attention."""
    return examples[int(np.argmin([abs(count - value_size - MORE) for count in tokens]))]


def map_head(model: "Model", example: Example, lenses: Sequence[str], max_length: int) -> xr.Dataset:
    """Return the maps of the head that attends most to separators; without separators, of the first head."""
    from headscope.core.lens import view
    from headscope.engine.capture import capture

    trace = capture(model, [example], keep=("values",), max_length=max_length)
    maps = combine_lenses([view(trace, lens).dataset() for lens in lenses])
    special = maps["key_special"].values.astype(bool).copy() if "key_special" in maps.coords else np.zeros(0, bool)
    special[:1] = False  # [CLS]
    layer, head = 0, 0
    if special.any():
        weights = maps["weights"].isel(lens=0).transpose("layer", "head", "query", "key").values
        on_special = weights[..., ~special, :][..., special].sum(-1).mean(-1)
        layer, head = map(int, np.unravel_index(int(on_special.argmax()), on_special.shape))
    return maps.isel(layer=[layer], head=[head])


def choose_maps(maps: Sequence[xr.Dataset], wanted: Sequence[bool]) -> xr.Dataset:
    """Return the maps that were asked for, or the first whose lenses differ."""
    asked = [data for data, chosen in zip(maps, wanted, strict=True) if chosen]
    several = [data for data in maps if data.sizes["lens"] > 1]
    different = [data for data in several if float(abs(data["weights"].diff("lens")).max()) >= 1e-6]
    return (asked or different or list(maps))[0]


def show_head(maps: xr.Dataset, number: int, rows: int | None, same: str) -> Picture:
    """Return the map of one head as the paper's figure of a number: all of it, or so many of its last rows."""
    facts = read_provenance(maps)
    name = f"{facts.get('example', '')}{f' of {task}' if (task := facts.get('task_shown')) else ''}"
    head = f"L{int(maps['layer'].values[0])}H{int(maps['head'].values[0])}"
    which = f"map of head {head} of the tuned model, the one that attends most to [SEP], on the input {name}"
    caption = f"The {'whole' if rows is None else 'last rows of the'} {which} (the paper's Figure {number})."
    return Picture(f"figure_{number}", caption, stacked_maps(maps, last_rows=rows, same=same), 1, number=number)
