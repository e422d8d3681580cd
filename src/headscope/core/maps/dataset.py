"""Maps as xarray Datasets and pandas tables."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
import xarray as xr

from headscope.core.catalog import lenses
from headscope.core.errors import InputError, UnknownName
from headscope.core.example import Example
from headscope.core.spec import parse_spec
from headscope.core.tokens import Tokens, token_labels
from headscope.core.trace import at_least_float32
from headscope.core.trace.nan_attention import HeadLabels, warn_about_weights

if TYPE_CHECKING:
    from headscope.core.maps import Maps

FILL: dict[str, Any] = {"f": np.nan, "b": False, "i": -1, "O": ""}
"""What stands behind the tokens of a shorter example, by kind of dtype."""


def make_dataset(maps: "Maps", example: int) -> xr.Dataset:
    """Return one example, padding cut away."""
    if not -len(maps.examples) <= example < len(maps.examples):
        raise InputError(f"There is no example {example}: these maps hold {len(maps.examples)}, counted from 0.")
    rows, columns = (side.real[example].cpu() for side in (maps.queries, maps.keys))
    cut = (slice(None), rows.nonzero()[:, 0][:, None], columns.nonzero()[:, 0])
    layers = [at_least_float32(maps.layer(label)[example].detach()).cpu()[cut] for label in maps.layers]
    weights = torch.stack(layers)
    if maps.visible[0].is_cuda:  # on a CPU the capture checks
        warn_about_weights(weights, HeadLabels([maps.examples[example].id], maps.layers, maps.heads, maps.pruned))
    visible = [mask[example].cpu()[cut[1:]] for mask in maps.visible]
    picture, places = _picture(maps.examples[example], int(columns.sum()))
    return xr.Dataset(
        {
            "weights": (("lens", "layer", "head", "query", "key"), weights.numpy()[None]),
            "visible": (("layer", "query", "key"), torch.stack(visible).numpy()),
            **{
                name: (("lens", "layer", "head"), table[example].cpu().numpy()[None])
                for name, table in maps.diagnostics.items()
            },
            **_graph(maps, example, cut[1:]),
            **picture,
        },
        coords={
            "lens": [maps.lens],
            "signed": ("lens", [maps.signed]),
            "quantity": (
                "lens",
                np.array([_describe_lens(maps.lens, "quantity") or f"weight ({maps.lens})"], dtype=object),
            ),
            **(
                {"note": ("lens", np.array([note], dtype=object))}
                if (note := _describe_lens(maps.lens, "note"))
                else {}
            ),
            "layer": ("layer", list(maps.layers), _describe_axis(maps, "layer")),
            "head": ("head", list(maps.heads), _describe_axis(maps, "head")),
            **_side("query", maps.queries, example),
            **_side("key", maps.keys, example),
            **places,
        },
        attrs={"headscope": _describe(maps, example=maps.examples[example].id)},
    )


def make_batch_dataset(maps: "Maps") -> xr.Dataset:
    """Return all examples along the dimension `example`, shorter ones filled up at their end."""
    singles = [make_dataset(maps, example) for example in range(len(maps.examples))]
    sizes = {side: max(single.sizes[side] for single in singles) for side in ("query", "key")}
    variables: dict[Any, Any] = {}
    for name, variable in singles[0].variables.items():
        if name in singles[0].data_vars or set(sizes) & set(variable.dims):
            alike = all(name in single and single[name].attrs == variable.attrs for single in singles)
            arrays = [_fill_up(single[name], sizes) for single in singles] if alike else []
            if len({array.shape for array in arrays}) == 1:  # pictures may differ in size; those are left out
                variables[name] = (("example", *variable.dims), np.stack(arrays), variable.attrs)
        else:
            variables[name] = variable
    pairs = [example.pair or "" for example in maps.examples]
    coords = {
        "example": token_labels([example.id for example in maps.examples]),
        "text": ("example", token_labels([example.text for example in maps.examples])),
        **({"pair": ("example", token_labels(pairs))} if any(pairs) else {}),
        **{f"{side}_count": ("example", [single.sizes[side] for single in singles]) for side in sizes},
    }
    data = xr.Dataset({name: variables[name] for name in singles[0].data_vars if name in variables}, coords)
    data = data.assign_coords({name: variables[name] for name in singles[0].coords if name in variables})
    return data.assign_attrs(headscope=_describe(maps, n=len(maps.examples)))


def make_dataframe(maps: "Maps") -> pd.DataFrame:
    """Return a row for each visible pair of query and key, by example, layer and head."""
    tables = [_tabulate(make_dataset(maps, row), example.id) for row, example in enumerate(maps.examples)]
    return pd.concat(tables, ignore_index=True)


def _tabulate(data: xr.Dataset, example: str) -> pd.DataFrame:
    weights = data["weights"].values[0]
    visible = np.broadcast_to(data["visible"].values[:, None], weights.shape)
    layer, head, query, key = visible.nonzero()
    return pd.DataFrame(
        {
            "lens": str(data["lens"].values[0]),
            "example": example,
            "layer": data["layer"].values[layer],
            "head": data["head"].values[head],
            "query": query,
            "key": key,
            "query_token": data["query_token"].values[query],
            "key_token": data["key_token"].values[key],
            "weights": weights[visible],
        }
    )


def _graph(maps: "Maps", example: int, cut: tuple[torch.Tensor, ...]) -> dict[str, Any]:
    """Return the edges between layers under the name of their kind, `lens layer query key`."""
    if maps.graph is None:
        return {}
    layers = [at_least_float32(layer[example, 0].detach()).cpu()[cut] for layer in maps.graph.layers]
    return {maps.graph.kind: (("lens", "layer", "query", "key"), torch.stack(layers).numpy()[None])}


def _describe(maps: "Maps", **facts: Any) -> str:
    """Return the provenance: the model, the lens, the site and further facts."""
    source_facts = maps.source.facts if maps.source is not None else {}
    return json.dumps(
        {**source_facts, "lenses": [maps.lens], "site": maps.site, **facts}, sort_keys=True, ensure_ascii=False
    )


def _describe_axis(maps: "Maps", axis: str) -> dict[str, str]:
    """Return what one label along an axis stands for, if that is not one layer or head."""
    merged = {"head": "heads merged"} if maps.merged else {}
    names = {**merged, **maps.averaged}
    return {"long_name": names[axis]} if axis in names else {}


def _fill_up(table: xr.DataArray, sizes: dict[str, int]) -> np.ndarray[Any, np.dtype[Any]]:
    """Return an array that is as long as the longest example along its token axes."""
    widths = [(0, sizes.get(str(dim), size) - size) for dim, size in table.sizes.items()]
    return np.pad(table.values, widths, constant_values=FILL.get(table.dtype.kind, 0))


def _describe_lens(lens: str, attribute: str) -> str:
    """Return what the class of a lens says of its weights (`quantity`), or of its maps (`note`)."""
    try:
        return str(getattr(lenses.find(parse_spec(lens)[0]), attribute, ""))
    except UnknownName:  # maps of a lens that is not in the catalog, made by hand
        return ""


def _side(name: str, tokens: Tokens, example: int) -> dict[str, Any]:
    real = tokens.real[example].cpu()
    text = [piece for piece, is_real in zip(_padded(tokens, example), real.tolist(), strict=True) if is_real]
    return {
        f"{name}_token": (name, token_labels(text)),
        f"{name}_special": (name, tokens.special[example].cpu()[real].numpy()),
        f"{name}_segment": (name, tokens.segment[example].cpu()[real].numpy()),
        f"{name}_word": (name, tokens.word[example].cpu()[real].numpy()),
    }


def _padded(tokens: Tokens, example: int) -> list[str]:
    """Return the row's text as wide as its tensors, real tokens in their places."""
    pieces = iter(tokens.text[example])
    return [next(pieces, "") if real else "" for real in tokens.real[example].tolist()]


def _picture(example: Example, keys: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the picture that a capture put into its example, and where each key lies in it; -1 outside of it."""
    if (places := example.place_patches(keys)) is None:
        return {}, {}
    row, column = places
    picture = (("row", "column", "colour"), example.columns["picture"], {"patches": list(example.columns["patches"])})
    return {"picture": picture}, {"key_row": ("key", row), "key_column": ("key", column)}
