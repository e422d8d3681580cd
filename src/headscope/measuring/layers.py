"""Lay maps out for statistics: one layer alone, or all layers as one layer with many heads."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from headscope.core.maps import LazyTensors, Maps
from headscope.core.maps.factored import Factored

MapsByLens = Mapping[tuple[str, str], Maps]
"""The maps of a batch, by role and lens."""


def select_layer(maps: MapsByLens, label: int) -> dict[tuple[str, str], Maps]:
    """Return the maps of one layer, each computed once for all statistics."""
    selected = {}
    for key, stack in maps.items():
        index = stack.layers.index(label)
        tables = LazyTensors({name: partial(_select, stack.diagnostics, name, index) for name in stack.diagnostics})
        selected[key] = replace(
            stack, parts=[stack.layer(label)], layers=(label,), visible=[stack.visible[index]], diagnostics=tables
        )
    return selected


def fold_layers(maps: MapsByLens) -> dict[tuple[str, str], Maps] | None:
    """Return the heads of all layers as the heads of one layer, so that a GPU launches fewer kernels.

    None where heads are merged, or where layers differ in shape or mask.
    """
    shapes = {
        tuple(layer.left.shape[:3]) if isinstance(layer, Factored) else tuple(layer.shape[:3])
        for stack in maps.values()
        for layer in stack.parts
    }
    masks = {id(mask) for stack in maps.values() for mask in stack.visible}
    if any(stack.merged for stack in maps.values()) or len(shapes) > 1 or len(masks) > 1:
        return None
    return {
        key: replace(
            stack,
            parts=[torch.cat([stack.layer(label) for label in stack.layers], dim=1)],
            layers=(0,),
            heads=tuple(range(len(stack.layers) * len(stack.heads))),
            visible=stack.visible[:1],
            diagnostics=LazyTensors({name: partial(_fold, stack.diagnostics, name) for name in stack.diagnostics}),
        )
        for key, stack in maps.items()
    }


def _select(tables: Mapping[str, Tensor], name: str, index: int) -> Tensor:
    return tables[name][:, index : index + 1]


def _fold(tables: Mapping[str, Tensor], name: str) -> Tensor:
    return tables[name].flatten(1, 2)[:, None]
