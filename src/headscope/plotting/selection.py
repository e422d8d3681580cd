"""Select the lens, layer and head of a Dataset of maps that a figure shows."""

from collections.abc import Sequence
from string import Formatter
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import InputError, unknown_name
from headscope.core.prose import join_words

DIAGNOSTICS = {
    "share": "effective share (norm ÷ norm of the raw map)",
    "rank": "rank of the values",
    "null": "dimensions that never reach the output",
    "n": "tokens",
    "residual": "relative difference of the output",
    "at_bound": "share of flows as large as the edges at their ends allow",
    "same_for_sources": "share of tokens with the same flow from every source",
}
"""What the diagnostics of lenses are, for colour bars and captions."""


def select_maps(data: xr.Dataset, lens: str | None) -> xr.Dataset:
    """Return the maps of one lens (default: the first)."""
    require_variables(data, "weights")
    return select_lens(data, lens)


def select_example(data: xr.Dataset, example: int) -> xr.Dataset:
    """Return one example of maps without its padding; maps of a single text as they are."""
    if "example" not in data.dims or not {"weights", "importance"} & set(data.data_vars):
        return data
    count, what = data.sizes["example"], "maps" if "weights" in data else "importances"
    if not -count <= example < count:
        raise InputError(f"There is no example {example}: these {what} hold {count}, counted from 0.")
    chosen = data.isel(example=example)
    if what == "importances":
        return chosen.isel(token=slice(int(chosen["count"]))).drop_vars("count")
    lengths = {side: slice(int(chosen[f"{side}_count"])) for side in ("query", "key") if f"{side}_count" in chosen}
    return chosen.isel(lengths).drop_vars([f"{side}_count" for side in lengths])


def select_lens(data: xr.Dataset, lens: str | None) -> xr.Dataset:
    """Return the data of one lens (default: the first)."""
    names = [str(name) for name in data["lens"].values]
    if lens is not None and lens not in names:
        raise unknown_name("lens in this data", lens, names)
    part = data.isel(lens=names.index(lens) if lens is not None else 0)
    counts = {side: f"{side}_count" for side in ("query", "key")}  # maps of several texts are padded to the longest
    return part.isel({side: slice(int(part[name])) for side, name in counts.items() if name in part.coords})


def select_head(data: xr.Dataset, lens: str | None, layer: int | None, head: int | None) -> xr.Dataset:
    """Return one map with its tokens; lens, layer and head default to the first."""
    maps = select_maps(data, lens)
    return maps.isel(layer=axis_index(data, "layer", layer), head=axis_index(data, "head", head))


def axis_index(data: xr.Dataset, axis: str, label: int | None) -> int:
    """Return the index of a layer or head along its axis (default: 0); negative labels count from the end."""
    labels = [int(value) for value in data[axis].values]
    if label is None:
        return 0
    if -len(labels) <= label < 0:
        return len(labels) + label
    if label not in labels:
        raise InputError(f"There is no {axis} {label} in this data: it has {axis}s {format_range(labels)}.")
    return labels.index(label)


def check_query(head_map: xr.Dataset, query: int | None) -> None:
    """Raise InputError for a query that the map does not have."""
    count = head_map.sizes["query"]
    if query is not None and not 0 <= query < count:
        raise InputError(f"There is no query {query}: this text has {count} query tokens, 0 to {count - 1}.")


def require_variables(data: xr.Dataset, *names: str) -> None:
    """Raise InputError for data that lacks a variable or has an empty axis."""
    for name in names:
        if name not in data:
            raise InputError(f"This figure needs the variable '{name}', but the data has {quote_variables(data)}.")
    if empty := [str(name) for name, size in data.sizes.items() if not size]:
        raise InputError(f"There is nothing to draw: the data has no {' and no '.join(empty)}.")


def visible_weights(head_map: xr.Dataset) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the weights of one map, NaN where the key is masked for the query."""
    weights = head_map["weights"].values.astype(float)
    return np.where(head_map["visible"].values, weights, np.nan) if "visible" in head_map else weights


def is_signed(maps: xr.Dataset) -> bool:
    """Whether weights may be negative."""
    return bool(maps["signed"]) if "signed" in maps.coords else bool((maps["weights"] < 0).any())


def token_texts(data: xr.Dataset, side: str) -> list[str]:
    """Return the tokens of the `query` or `key` side; positions where the data has no tokens."""
    known = f"{side}_token" in data.coords
    return [str(token) for token in (data[f"{side}_token"].values if known else range(data.sizes[side]))]


def special_tokens(data: xr.Dataset, side: str) -> list[bool]:
    """Return which tokens of a side are special, such as [CLS]."""
    known = f"{side}_special" in data.coords
    return [bool(value) for value in data[f"{side}_special"].values] if known else [False] * data.sizes[side]


def head_label(head_map: xr.Dataset) -> str:
    """Return the layer and head of a map in short: `L3H7`, or `L3, mean of 12 heads`."""
    names = [head_map[axis].attrs.get("long_name") for axis in ("layer", "head")]
    short = [f"L{int(head_map['layer'])}", f"H{int(head_map['head'])}"]
    words = [name or label for name, label in zip(names, short, strict=True)]
    return (", " if any(names) else "").join(words)


def describe_maps(
    data: xr.Dataset, *, lens: str | Sequence[str] | None = None, layer: int | None = None, head: int | None = None
) -> str:
    """Return what lenses say of these maps in a sentence, with the numbers of the first and the last layer.

    Of effective attention alone it says where it is the same as raw attention. Empty for maps of lenses that say
    nothing.
    """
    if "weights" not in data:
        return ""
    if "note" not in data.coords:
        return _describe_short_text(data, layer, head)
    notes, wanted = [], [lens] if isinstance(lens, str) else lens
    for part in (data.isel(lens=index) for index in range(data.sizes["lens"])) if "lens" in data.dims else (data,):
        template, name = str(part["note"].item()), str(part["lens"].item())
        fields = [field for _, field, _, _ in Formatter().parse(template) if field]
        if not fields or (wanted is not None and name not in wanted) or any(field not in part for field in fields):
            continue
        numbers = part[fields]
        chosen = {"layer": layer, "head": head}
        numbers = numbers.isel(
            {axis: [axis_index(data, axis, label)] for axis, label in chosen.items() if label is not None}
        )
        ends = [numbers.isel(layer=end).mean("head") for end in sorted({0, numbers.sizes["layer"] - 1})]
        said = [template.format(**{field: float(end[field]) for field in fields}) for end in ends]
        labels = [f"L{int(end['layer'])}: " if len(ends) > 1 else "" for end in ends]
        notes += [f"{label}{sentence}" for label, sentence in zip(labels, said, strict=True) if "nan" not in sentence]
    return "; ".join(notes)


def _describe_short_text(data: xr.Dataset, layer: int | None, head: int | None) -> str:
    """Explain why a map of effective attention alone is that of raw attention; empty where it is not."""
    if "null" not in data or data.sizes.get("lens") != 1 or str(data["lens"].item()).partition(":")[0] != "effective":
        return ""
    chosen = {"layer": layer, "head": head}
    part = data.isel({axis: [axis_index(data, axis, label)] for axis, label in chosen.items() if label is not None})
    return explain_equality(part) if bool((part["null"] == 0).all()) else ""


def explain_equality(maps: xr.Dataset) -> str:
    """Say that all attention of these maps reaches the output, with the number of tokens and the rank."""
    tokens, rank, lens = int(maps["n"].max()), int(maps["rank"].max()), str(maps["lens"].item())
    return (
        f"{tokens} tokens, rank {rank}: all of this attention reaches the output, so {lens} attention is the same as "
        "raw attention."
    )


def format_range(labels: Sequence[int]) -> str:
    """Format integers, consecutive ones as a range.

    >>> format_range([0, 1, 2, 3]), format_range([2, 5])
    ('0 to 3', '2, 5')
    """
    if len(labels) > 2 and list(labels) == list(range(labels[0], labels[-1] + 1)):
        return f"{labels[0]} to {labels[-1]}"
    return ", ".join(map(str, labels))


def quote_variables(data: xr.Dataset) -> str:
    """Return the quoted names of the variables of a Dataset."""
    return join_words(f"'{name}'" for name in data.data_vars)
