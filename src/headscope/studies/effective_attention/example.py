"""One head on one example, through both attentions."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from headscope.core.example import Example
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.model import Model
from headscope.plotting.draw import combine_lenses

MORE = 20
"""So many tokens more than value dimensions an example should have: enough to differ, few enough to be read."""


def telling(examples: Sequence[Example], tokens: Sequence[int], value_size: int) -> Example:
    """The first whose length is nearest to what can be shown and differs."""
    apart = [abs(many - value_size - MORE) for many in tokens]
    return examples[apart.index(min(apart))]


def maps(model: Model, example: Example, max_length: int) -> xr.Dataset:
    """The maps of the head that attends most to [SEP], standard and exact."""
    trace = capture(model, [example], keep=("values",), max_length=max_length)
    whole = combine_lenses([view(trace, lens).dataset() for lens in ("raw", "effective")])
    layer, head = _most_on_sep(whole)
    one = whole.isel(layer=[layer], head=[head])
    return one.assign_attrs(headscope=one.attrs["headscope"])


def _most_on_sep(whole: xr.Dataset) -> tuple[int, int]:
    """Where the mean weight on separators, from all other tokens, is largest; without separators, the first head."""
    special = whole["key_special"].values.astype(bool).copy() if "key_special" in whole.coords else np.zeros(0, bool)
    special[:1] = False  # [CLS]
    if not special.any():
        return 0, 0
    weights = whole["weights"].isel(lens=0).transpose("layer", "head", "query", "key").values
    on = weights[..., ~special, :][..., special].sum(-1).mean(-1)
    layer, head = np.unravel_index(int(on.argmax()), on.shape)
    return int(layer), int(head)
