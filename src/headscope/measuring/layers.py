"""Maps laid out for statistics: one layer alone, or the heads of all layers side by side."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from headscope.core.maps import Factored, Maps
from headscope.effective.lazily import Lazily

Every = Mapping[tuple[str, str], Maps]
"""The maps of a batch, by role and lens."""


def one_layer(maps: Every, label: int) -> dict[tuple[str, str], Maps]:
    """The maps of one layer, each computed once for all statistics."""
    found = {}
    for key, each in maps.items():
        place = each.layers.index(label)
        tables = Lazily({name: partial(_slice, each.diagnostics, name, place) for name in each.diagnostics})
        found[key] = replace(
            each, parts=[each.layer(label)], layers=(label,), visible=[each.visible[place]], diagnostics=tables
        )
    return found


def _slice(tables: Mapping[str, Tensor], name: str, place: int) -> Tensor:
    return tables[name][:, place : place + 1]


def side_by_side(maps: Every) -> dict[tuple[str, str], Maps] | None:
    """The heads of all layers as if they were of one: a GPU starts twelve times as few computations.

    None where heads are merged, or layers differ in their shape or in who sees whom.
    """
    every = list(maps.values())
    shapes = {
        tuple(part.left.shape[:3]) if isinstance(part, Factored) else tuple(part.shape[:3])
        for each in every
        for part in each.parts
    }
    masks = {id(mask) for each in every for mask in each.visible}
    if any(each.merged for each in every) or len(shapes) > 1 or len(masks) > 1:
        return None
    return {
        key: replace(
            each,
            parts=[torch.cat([each.layer(label) for label in each.layers], dim=1)],
            layers=(0,),
            heads=tuple(range(len(each.layers) * len(each.heads))),
            visible=each.visible[:1],
            diagnostics=Lazily({name: partial(_flat, each.diagnostics, name) for name in each.diagnostics}),
        )
        for key, each in maps.items()
    }


def _flat(tables: Mapping[str, Tensor], name: str) -> Tensor:
    return tables[name].flatten(1, 2)[:, None]
