"""What a head mainly does, from what was measured of it."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.prose import join_words
from headscope.results.select import is_merged

HALF = 0.5
BROAD = 0.1  # of Clark et al. (2019): no key has more than this weight
OFFSETS = {"previous": -1, "itself": 0, "next": 1}
ROLES = {"[CLS]": "cls", "[SEP]": "sep"}
BROAD_NAME, OTHER, RAW = "broad", "other", "raw"


def label_behaviour(data: xr.Dataset) -> xr.DataArray | None:
    """Return a name for each lens, layer and head; None for data without `offsets`, `special_tokens` and `peak`.

    It is that of raw attention for every lens, where raw attention was measured and the lens does not merge heads, and
    else of the lens itself; the attribute `lens` says which. The thresholds are those of raw attention: weights of
    other lenses are smaller, and nearly all of their heads are "broad".

    It is where more than half of a head's weight goes: the previous token, itself, the next token, [CLS] or [SEP] (from
    other tokens); else "broad" where the mean largest weight of a row is at most 0.1; else "other".
    """
    shares = {name: share.transpose("lens", "layer", "head") for name, share in _measured_shares(data).items()}
    if not shares and "peak" not in data:
        return None
    measured = [*shares.values(), *([data["peak"].transpose("lens", "layer", "head")] if "peak" in data else [])]
    labels = np.full(measured[0].shape, OTHER, dtype=object)
    if "peak" in data:
        labels[measured[-1].values <= BROAD] = BROAD_NAME
    if shares:
        stacked = np.nan_to_num(np.stack([share.values for share in shares.values()]))
        names = np.array(list(shares), dtype=object)[stacked.argmax(0)]
        labels = np.where(stacked.max(0) > HALF, names, labels)
    table = xr.DataArray(labels, measured[0].coords, measured[0].dims).reset_coords(drop=True)
    return _label_as_raw(table, [is_merged(measured[0].sel(lens=lens)) for lens in measured[0]["lens"].values])


def _label_as_raw(labels: xr.DataArray, merged: Sequence[bool]) -> xr.DataArray:
    """Give every lens with a map for each head the names of raw attention."""
    if RAW not in labels["lens"].values:
        return labels
    own = xr.DataArray(list(merged), {"lens": labels["lens"]}, ("lens",))
    return labels.where(own, labels.sel(lens=RAW, drop=True)).transpose(*labels.dims).assign_attrs(lens=RAW)


def describe_behaviour(selected: xr.Dataset) -> str:
    """Return which attention the behaviour of one lens is read from, and that all heads have one name, if so."""
    names = selected["behaviour"].values.ravel()
    heads = names[np.isfinite(selected["leaf"].values.ravel())] if "leaf" in selected else names
    lens = selected["behaviour"].attrs.get("lens")
    source = f"Behaviour of {lens} attention." if lens else ""
    same = f"All {len(heads)} heads are of one kind: {heads[0]}." if len(set(heads)) == 1 < len(heads) else ""
    return " ".join(filter(None, [source, same]))


def read_behaviour(behaviour: xr.DataArray, distances: xr.DataArray) -> xr.DataArray:
    """Return a user's names for every lens, layer and head; raise InputError where one is missing."""
    heads = distances.isel(other_layer=0, other_head=0, drop=True)
    if not {"layer", "head"} <= set(behaviour.dims) <= set(heads.dims):
        raise InputError(
            "behaviour must have the axes layer and head, and may have lens, but it has "
            f"{join_words(behaviour.dims)}. Name every head."
        )
    for axis in behaviour.dims:
        if lacking := [label for label in heads[axis].values.tolist() if label not in behaviour[axis].values.tolist()]:
            raise InputError(f"behaviour has no name for {axis} {join_words(lacking, limit=8)}. Name every head.")
    names = behaviour.astype(object).sel({axis: heads[axis] for axis in behaviour.dims})
    return names.broadcast_like(heads).transpose("lens", "layer", "head").reset_coords(drop=True)


def _measured_shares(data: xr.Dataset) -> Mapping[str, xr.DataArray]:
    """Return the mean weights on neighbors and special tokens, by the name of the behaviour."""
    shares: dict[str, xr.DataArray] = {}
    if "offsets" in data:
        offsets = set(data["offset"].values.tolist())
        shares |= {name: data["offsets"].sel(offset=offset) for name, offset in OFFSETS.items() if offset in offsets}
    if "special_tokens" in data and "several" not in data["special_tokens"].dims:
        table, roles = data["special_tokens"], set(data["role"].values.tolist())
        if "others" in data["source"].values:
            table = table.sel(source="others")
            shares |= {name: table.sel(role=role) for name, role in ROLES.items() if role in roles}
    return {name: share.reset_coords(drop=True) for name, share in shares.items()}
