"""Several maps in one Dataset: lenses of one trace, or maps of several models or texts."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.prose import join_words

TOKENS = ("query_token", "key_token")


def combine_results(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Concatenate maps along `lens`, or importances along `method`."""
    if not any("importance" in part for part in parts):
        return combine_lenses(parts)
    if not all("importance" in part for part in parts):
        raise InputError("Maps and importances cannot be put together. Draw or save one after the other.")
    return combine_methods(parts)


def combine_curves(parts: Sequence[xr.Dataset], names: Sequence[Any] | None = None) -> xr.Dataset:
    """Concatenate pruning curves along `curve`, under their names or their orders; of one metric, and where all end."""
    facts = [json.loads(part.attrs.get("headscope", "{}")) for part in parts]
    labels = [str(fact.get("by", "")) for fact in facts] if names is None else list(map(str, names))
    if len(set(labels)) < len(labels):
        raise InputError("Several of these curves have the same name. Give a dict by names: hs.draw({'MRPC': …}).")
    if len({part["score"].attrs.get("long_name") for part in parts}) > 1:
        raise InputError("These pruning curves are of different metrics. Draw one after the other.")
    columns = [name for name in parts[0].data_vars if name not in ("heads", "count")]
    orders = [part[columns] if "seed" in part.dims else part[columns].expand_dims(seed=[0]) for part in parts]
    whole = xr.concat(orders, "curve", join="outer", combine_attrs="override").assign_coords(curve=labels)
    whole = whole.assign_attrs(headscope=parts[0].attrs.get("headscope", "{}"))
    return whole.dropna("pruned", how="all", subset=["score"])


def combine_methods(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Concatenate importances along `method`; shorter texts are filled up, and `count` is their number of tokens."""
    if len(parts) == 1:
        return parts[0]
    names = [name for part in parts for name in part.data_vars]
    diagnostics = {name for name in names if names.count(name) < len(parts)}
    parts = [part.assign({name: np.nan for name in diagnostics if name not in part}) for part in parts]
    if "example" in parts[0]["importance"].dims:
        if not all(parts[0]["token_text"].equals(part["token_text"]) for part in parts):
            raise InputError("Importances of several texts that are put together must be of the same texts.")
        whole = xr.concat(parts, "method", data_vars="different", coords="different", compat="equals", join="override")
    else:
        longest = max(part.sizes["token"] for part in parts)
        whole = xr.concat([_pad_pieces(part, longest) for part in parts], "method", coords="different", compat="equals")
    facts = json.loads(parts[0].attrs.get("headscope", "{}")) | {"methods": whole["method"].values.tolist()}
    return whole.assign_attrs(headscope=json.dumps(facts, sort_keys=True, ensure_ascii=False))


def _pad_pieces(part: xr.Dataset, length: int) -> xr.Dataset:
    """Fill the axis `token` up; what belongs to a text then belongs to each of its methods."""
    fill: dict[str, Any] = {"f": np.nan, "b": False, "i": -1, "O": ""}
    count, methods = part.sizes["token"], part.sizes["method"]
    columns: dict[Any, Any] = {"count": ("method", [count] * methods)}
    for name, variable in part.coords.items():
        if "token" in variable.dims:
            padded = np.pad(variable.values, (0, length - count), constant_values=fill[variable.dtype.kind])
            columns[name] = (("method", "token"), np.stack([padded] * methods))
        elif not variable.dims:
            columns[name] = ("method", np.array([variable.item()] * methods, dtype=object))
    scores = np.pad(part["importance"].values, ((0, 0), (0, length - count)), constant_values=np.nan)
    rest = part.drop_vars(["importance", *(name for name in columns if name in part.coords)])
    return rest.assign(importance=(("method", "token"), scores)).assign_coords(columns)


def combine_lenses(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Concatenate maps along `lens`, with the layers and heads that all of them have.

    Diagnostics that a lens does not have are NaN. Maps of different texts are padded to the longest; `query_count`
    and `key_count` are then their numbers of tokens. Maps of the same name are numbered, or named after their models.
    """
    for part in parts[1:]:
        _check_heads(parts[0], part)
    parts = [_fill_diagnostics(part, parts) for part in _select_shared(_name_apart(parts))]
    if all(np.array_equal(parts[0][name].values, part[name].values) for part in parts for name in TOKENS):
        parts = _join_visible(parts)
        whole = xr.concat(parts, "lens", data_vars="minimal", coords="minimal", compat="override", join="override")
    else:
        lengths = {side: max(part.sizes[side] for part in parts) for side in ("query", "key")}
        padded = [_pad_tokens(part, lengths) for part in parts]
        whole = xr.concat(padded, "lens", data_vars="all", coords="different", compat="equals", join="override")
    for axis in ("layer", "head"):
        if len({part[axis].attrs.get("long_name") for part in parts}) > 1:  # averaged by one, merged by another
            whole = whole.assign_coords({axis: whole[axis].assign_attrs(long_name=f"all {axis}s")})
    facts = json.loads(parts[0].attrs.get("headscope", "{}")) | {"lenses": [str(lens) for lens in whole["lens"].values]}
    return whole.assign_attrs(headscope=json.dumps(facts, sort_keys=True, ensure_ascii=False))


def _check_heads(first: xr.Dataset, second: xr.Dataset) -> None:
    """Raise InputError for maps of heads beside maps of whole layers."""
    merged, others = sorted((first, second), key=lambda part: part.sizes["head"])
    if merged.sizes["head"] == 1 < others.sizes["head"]:
        raise InputError(
            f"{_quote_lenses(merged)} has one map per layer, {_quote_lenses(others)} one for each head, so they cannot "
            "be drawn together. Average the heads first, with maps.mean('head'), or draw one after the other."
        )


def _quote_lenses(data: xr.Dataset) -> str:
    return ", ".join(f"'{name}'" for name in data["lens"].values)


def _name_apart(parts: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Name maps whose names are the same after their models, or number them."""
    names = [str(name) for part in parts for name in part["lens"].values]
    if len(set(names)) == len(names):
        return list(parts)
    models = [str(json.loads(part.attrs.get("headscope", "{}")).get("model", "")) for part in parts]
    telling = len(set(models)) == len(models) and all(models)
    seen: Counter[str] = Counter()
    renamed = []
    for part, model in zip(parts, models, strict=True):
        own = []
        for name in part["lens"].values:
            seen[str(name)] += 1
            own.append(f"{name}, {model}" if telling else f"{name} ({seen[str(name)]})")
        renamed.append(part.assign_coords(lens=own))
    return renamed


def _select_shared(parts: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Select the layers and heads that all parts have."""
    shared = {}
    for axis in ("layer", "head"):
        labels = [[int(label) for label in part[axis].values] for part in parts]
        shared[axis] = [label for label in labels[0] if all(label in others for others in labels[1:])]
        if not shared[axis]:
            listed = join_words([f"{own[0]} to {own[-1]}" if len(own) > 1 else f"{own[0]}" for own in labels])
            raise InputError(f"Maps that are drawn together must share {axis}s, but these have {axis}s {listed}.")
    return [part.sel(shared) for part in parts]


def _fill_diagnostics(part: xr.Dataset, parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Add NaN for the diagnostics that only other parts have, and an empty note where others have one."""
    if any("note" in other.coords for other in parts) and "note" not in part.coords:
        part = part.assign_coords(note=("lens", np.array([""] * part.sizes["lens"], dtype=object)))
    missing = {
        name: other[name].dims
        for other in parts
        for name in other.data_vars
        if "lens" in other[name].dims and name not in part
    }
    return part.assign(
        {name: (dims, np.full([part.sizes[dim] for dim in dims], np.nan)) for name, dims in missing.items()}
    )


def _join_visible(parts: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Show what any of the lenses sees: rollout reaches further than the sliding window of one layer."""
    if any("visible" not in part for part in parts):
        return list(parts)
    first = parts[0]["visible"]
    visible = np.logical_or.reduce([part["visible"].values for part in parts])
    return [part.assign(visible=(first.dims, visible)) for part in parts]


def _pad_tokens(part: xr.Dataset, lengths: dict[str, int]) -> xr.Dataset:
    """Pad the axes `query` and `key` to the given lengths; a picture is left out."""
    if "example" in part.dims:
        raise InputError(
            "Maps of several examples that are put together must have the same query tokens and key tokens, but these "
            "differ. View one trace through all lenses."
        )
    counts = {f"{side}_count": ("lens", [part.sizes[side]] * part.sizes["lens"]) for side in lengths}
    image = [name for name in ("picture", "key_row", "key_column") if name in part.variables]
    without_image = part.drop_vars(image)
    padded: dict[Any, xr.Variable] = {}
    for name, variable in without_image.variables.items():
        missing = {side: (0, size - part.sizes[side]) for side, size in lengths.items() if side in variable.dims}
        fill: Any = {"f": np.nan, "b": False, "i": -1, "u": 0}.get(variable.dtype.kind, "")
        padded[name] = variable.pad(missing, constant_values=fill) if missing else variable
        if missing and "lens" not in variable.dims:
            copies = np.stack([padded[name].values] * part.sizes["lens"])
            padded[name] = xr.Variable(("lens", *variable.dims), copies)
    coords = {name: padded[name] for name in without_image.coords}
    return xr.Dataset({name: padded[name] for name in without_image.data_vars}, {**coords, **counts}, part.attrs)
