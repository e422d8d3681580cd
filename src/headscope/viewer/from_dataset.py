"""Sheets of the viewer from a saved Dataset: maps, or what was measured for every head."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.provenance import read_provenance
from headscope.plotting import selection
from headscope.results.select import further_axes, head_variables, restore_axes, select_variable
from headscope.results.summarize import format_count
from headscope.viewer.encode import Array
from headscope.viewer.sheet import LensMaps, PatchPicture, Scalar, Sheet, TokenRow

GRAPHS = ("edges", "capacities")
MAX_LABELS = 24
"""Labels along further axes of a measured variable; of one with more, no number by head is shown."""


def make_dataset_sheets(data: xr.Dataset, example: int = 0) -> list[Sheet]:
    """Return the sheets of a Dataset: one for its maps, or for each site that was measured; none for other results."""
    if {"weights", "layer", "head", "query", "key"} <= {*data.variables, *data.dims}:
        return _make_map_sheets(selection.select_example(data, example))
    return _make_measured_sheets(data) if head_variables(data) else []


def read_scalars(data: xr.Dataset) -> list[Scalar]:
    """Return what was measured for every head, for each lens and each label along further axes."""
    scalars: list[Scalar] = []
    for name in head_variables(data):
        if data[name].dtype.kind not in "biuf":  # names, such as those of clusters
            continue
        try:
            scalars += _read_variable(data, name)
        except InputError:  # numbers between two heads, or with axes that no grid shows
            continue
    return scalars


def _make_map_sheets(data: xr.Dataset) -> list[Sheet]:
    """Return one sheet, or one for each lens where these are of different texts or models."""
    restored = restore_axes(data)
    if any(f"{side}_count" in restored.coords for side in ("query", "key")):
        parts = [selection.select_lens(restored, str(name)) for name in restored["lens"].values]
        return [_make_map_sheet(part.expand_dims("lens"), name=str(part["lens"].item())) for part in parts]
    return [_make_map_sheet(restored)]


def _make_map_sheet(data: xr.Dataset, name: str | None = None) -> Sheet:
    facts = read_provenance(data)
    queries, keys = (_read_tokens(data, side) for side in ("query", "key"))
    text, pair = (str(data[key].item()) if key in data.coords else "" for key in ("text", "pair"))
    return Sheet(
        model=name or str(facts.get("model") or "model"),
        site=str(facts.get("site") or "self"),
        layers=data["layer"].values.tolist(),
        heads=data["head"].values.tolist(),
        queries=queries,
        keys=None if keys == queries else keys,
        text=text or " ".join(queries.text),
        pair=pair or None,
        visible=_read_visible(data),
        picture=_read_picture(data),
        lenses=[_read_lens(data, index) for index in range(data.sizes["lens"])],
        scalars=read_scalars(data),
        python='import headscope as hs\n\nmaps = hs.open_result("maps.nc")  # the file of this result\n',
        facts=facts,
    )


def _read_tokens(data: xr.Dataset, side: str) -> TokenRow:
    word = data[f"{side}_word"].values.tolist() if f"{side}_word" in data.coords else None
    return TokenRow(selection.token_texts(data, side), selection.special_tokens(data, side), word)


def _read_visible(data: xr.Dataset) -> list[Array]:
    if "visible" not in data:
        return []
    visible = data["visible"].isel(lens=0) if "lens" in data["visible"].dims else data["visible"]
    if "layer" not in visible.dims:
        return [visible.values.astype(bool)] * data.sizes["layer"]
    return list(visible.transpose("layer", "query", "key").values.astype(bool))


def _read_lens(data: xr.Dataset, index: int) -> LensMaps:
    maps = data.isel(lens=index)
    weights = maps["weights"].transpose("layer", "head", "query", "key")
    graph = next((name for name in GRAPHS if name in maps and bool(maps[name].notnull().any())), None)
    quantity = str(maps["quantity"].item()) if "quantity" in maps.coords else f"weight ({maps['lens'].item()})"
    return LensMaps(
        name=str(maps["lens"].item()),
        quantity=quantity,
        signed=selection.is_signed(maps),
        merged=data.sizes["head"] == 1 and bool(data["head"].attrs.get("long_name")),
        read_layer=lambda layer: weights.values[layer],
        read_head=lambda layer, head: weights.values[layer, head],
        note=selection.describe_maps(data.isel(lens=[index])),
        graph=graph,
        read_graph=None if graph is None else lambda layer: maps[graph].values[layer],
    )


def _read_picture(data: xr.Dataset) -> PatchPicture | None:
    if "picture" not in data or "key_row" not in data.coords:
        return None
    row, column = (data[f"key_{axis}"].values.tolist() for axis in ("row", "column"))
    pixels = data["picture"].transpose("row", "column", "colour").values
    if pixels.dtype != np.uint8:
        pixels = (255 * np.clip(pixels, 0, 1)).round().astype(np.uint8)
    rows, columns = data["picture"].attrs.get("patches", (max(row) + 1, max(column) + 1))
    return PatchPicture(pixels, int(rows), int(columns), row, column)


def _make_measured_sheets(data: xr.Dataset) -> list[Sheet]:
    """Return a sheet without maps for each site; results without sites have one."""
    facts = read_provenance(data)
    sites = [str(site) for site in np.atleast_1d(data["site"].values)] if "site" in data.coords else ["self"]
    return [_make_measured_sheet(data.isel(site=index) if "site" in data.dims else data, site, facts)
            for index, site in enumerate(sites)]  # fmt: skip


def _make_measured_sheet(data: xr.Dataset, site: str, facts: dict[str, Any]) -> Sheet:
    layers, heads = (np.atleast_1d(data[axis].values).astype(int).tolist() for axis in ("layer", "head"))
    return Sheet(
        model=str(facts.get("model") or "model"),
        site=site,
        layers=layers,
        heads=heads,
        queries=TokenRow([], []),
        scalars=read_scalars(data),
        python='import headscope as hs\n\ndata = hs.open_result("result.nc")  # the file of this result\n',
        facts=facts,
    )


def _read_variable(data: xr.Dataset, name: str) -> Iterator[Scalar]:
    """Return the numbers of one variable, for each lens and each label along its further axes."""
    if "pattern" in data[name].dims and f"{name}_p" not in data:
        yield from _read_classes(data, name)
    selected = select_variable(data, name)
    axes = further_axes(selected)
    if np.prod([selected.sizes[axis] for axis in axes], dtype=int) > MAX_LABELS or "other_head" in axes:
        return
    for place in product(*(range(selected.sizes[axis]) for axis in axes)):
        labels = [str(selected[axis].values[index]) for axis, index in zip(axes, place, strict=True)]
        part = selected.isel(dict(zip(axes, place, strict=True)))
        for lens in part["lens"].values:
            if not bool(part["value"].sel(lens=lens).notnull().any()):
                continue
            places = [f"{axis}={label}" for axis, label in zip(axes, labels, strict=True)]
            yield _make_scalar(part.sel(lens=lens), " ".join([name, *places]), str(lens) or None, labels)


def _make_scalar(part: xr.Dataset, name: str, lens: str | None, labels: Sequence[str]) -> Scalar:
    tables = {
        key: part[key].transpose("layer", "head").values.astype(float)
        for key in ("value", "low", "high")
        if key in part
    }
    label = f"{part.attrs['label']}: {', '.join(labels)}" if labels else str(part.attrs["label"])
    count = format_count(part) or None
    return Scalar(name, label, lens, tables["value"], tables.get("low"), tables.get("high"), count)


def _read_classes(data: xr.Dataset, name: str) -> Iterator[Scalar]:
    """Return the most frequent class of every head."""
    restored = restore_axes(data)
    names = [str(label) for label in restored["pattern"].values]
    for lens in restored["lens"].values:
        table = restored[name].sel(lens=lens).transpose("layer", "head", "pattern", ...)
        shares = table.values.reshape(*table.shape[:2], len(names), -1)[..., 0]
        known = np.isfinite(shares).any(-1)
        index = np.where(known, np.nan_to_num(shares, nan=-1).argmax(-1), np.nan)
        yield Scalar(f"{name} class", "most frequent pattern", str(lens) or None, index, classes=names)
