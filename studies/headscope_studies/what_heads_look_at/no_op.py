"""Is the attention to [CLS], [SEP] and punctuation a no-op? One token of each group beside an ordinary token.

The weight on one token of a group over the weight on one ordinary token, by each measure: raw attention, effective
attention, the norm of what is added, the gradient of a loss, attention × gradient. Above 1, such a token counts more
than an ordinary one. Attention to a group is a no-op by a measure if raw attention is above 1 and the measure below.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.estimate import estimate, with_interval
from headscope.experiments.summary import average
from headscope.uncertainty.bootstrap import bootstrap_means, percentile_interval
from headscope.uncertainty.intervals import Array, mean_interval

GROUPS = {"cls": "[CLS]", "sep": "[SEP]", "period_comma": "periods and commas", "punctuation": "punctuation"}
ORDINARY = {"cls": "other_text", "sep": "other_text", "period_comma": "other_text", "punctuation": "word"}
"""What a group is compared with: all other text as Clark et al. (2019) count it, words for punctuation by its tag."""

MEASURES: Mapping[str, str] = {
    "raw": "raw",
    "effective": "effective",
    "norm": "norm",
    "gradient": "gradient",
    "attention × gradient": "gradient:times_attention=true",
}
"""Lenses by the names of the measures; the last two need a loss."""

PLURAL = ("period_comma",)
"""Groups whose name is a plural."""

OF_WEIGHTS = ("raw", "effective", "norm")
LATE = 5 / 12
"""Clark et al. see small gradients from layer 5 of 12 on."""


def begin_sentence(group: str, singular: str, plural: str) -> str:
    """Return the name of a group as the subject of a sentence, with the verb in its number.

    >>> begin_sentence("sep", "counts", "count"), begin_sentence("period_comma", "counts", "count")
    ('[SEP] counts', 'Periods and commas count')
    """
    title = GROUPS[group]
    return f"{title[0].upper()}{title[1:]} {plural if group in PLURAL else singular}"


def weigh_tokens(rows: xr.Dataset) -> xr.DataArray:
    """Return the mean |w| on one token of each type, `example measure layer type`; NaN in texts without one."""
    sums, counts = rows["token_types_absolute_rows"], rows["token_types_count_rows"]
    return average((sums / counts).rename(lens="measure"), "head").transpose("example", "measure", "layer", "type")


def compare_tokens(rows: xr.Dataset) -> xr.Dataset:
    """Return `ratio`, the weight on a token of each group over that on an ordinary one, and its bootstrap interval.

    `ratio_layer` has one for each layer: the ratio of means over heads and texts. `ratio` is their geometric mean, and
    `ratio_late` that of the layers from 5/12 of the depth on. `size_layer` is the mean |w| on one token of each type
    itself: the ratio of two small gradients may be large. Texts are drawn again with all their tokens.
    """
    weights = weigh_tokens(rows)
    types = [str(name) for name in weights["type"].values]
    above = [types.index(name) for name in GROUPS]
    below = [types.index(ORDINARY[name]) for name in GROUPS]
    layers = weights.sizes["layer"]
    late = np.flatnonzero((np.arange(layers) + 1) / layers >= LATE - 1e-9)

    def ratios(means: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(means[..., above] / means[..., below])  # … measure layer group

    def geometric(table: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.exp(np.log(table).mean(-2)))

    sizes, drawn_sizes = mean_interval(weights.values)[0], bootstrap_means(weights.values)
    exact, drawn = ratios(sizes), ratios(drawn_sizes)
    ends = (sizes, *percentile_interval(drawn_sizes))
    variables: dict[str, Any] = with_interval("size_layer", ("measure", "layer", "type"), ends)
    for name, reduce in (
        ("ratio_layer", np.asarray),
        ("ratio", geometric),
        ("ratio_late", lambda table: geometric(table[..., late, :])),
    ):
        dims = ("measure", "layer", "group") if name == "ratio_layer" else ("measure", "group")
        ends = (reduce(exact), *percentile_interval(reduce(drawn)))
        variables |= with_interval(name, dims, ends)
    coords = {name: weights[name].values for name in ("measure", "layer", "type")} | {"group": list(GROUPS)}
    return xr.Dataset(variables, coords).assign(n=weights.sizes["example"])


def name_no_ops(network: xr.Dataset, group: str) -> dict[str, str]:
    """Return for each measure but raw attention whether attention to a group is a no-op by it, from 95 % intervals.

    "no-op": the token counts less than an ordinary one; "counts": more; "open": the interval holds 1; nothing for all
    where raw attention itself is not above 1, and for a measure that was not taken.
    """
    ratio = estimate(network, "ratio").sel(group=group)
    if not float(ratio.sel(measure="raw").ends[1]) > 1:
        return {}
    answers = {}
    for measure in network["measure"].values[1:]:
        _, low, high = map(float, ratio.sel(measure=measure).ends)
        if np.isfinite(low):
            answers[str(measure)] = "no-op" if high < 1 else "counts" if low > 1 else "open"
    return answers
