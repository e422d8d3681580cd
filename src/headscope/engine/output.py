"""The part of the output projection that belongs to each head."""

import copy
from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.errors import CaptureError
from headscope.engine.model import Model


def output_slices(model: Model, module: str, heads: Sequence[int], every: int) -> Float[Tensor, "head value hidden"]:
    """W_O cut by heads: what each head's context is multiplied with before the heads are summed."""
    found = projection(model, module)
    held = getattr(found, "weight", found)
    if _quantised(held):
        raise CaptureError(
            f"The output projection of {module} is quantised ({getattr(held, 'dtype', type(found).__name__)}). Load "
            "the model unquantised, or capture with keep=('attention', 'values')."
        )
    weight: Tensor = held.detach()
    if weight.ndim == 3:  # XLNet keeps it as hidden × head × value
        slices = weight.permute(1, 2, 0)
    else:
        into = _into(found, weight)
        slices = into.reshape(every, -1, into.shape[-1])
    return slices if list(heads) == list(range(every)) else slices[torch.tensor(heads, device=slices.device)]


def _quantised(weight: Any) -> bool:
    """Whether this is anything but plain numbers of two bytes or more: int8, packed, fp8, or none at all."""
    plain = type(weight) in (Tensor, torch.nn.Parameter)
    return not plain or not weight.is_floating_point() or weight.element_size() < 2


def _into(layer: Any, weight: Tensor) -> Float[Tensor, "input output"]:
    """The layer's matrix. One with an adapter (LoRA), or whose weights are kept elsewhere, is asked what it does."""
    if hasattr(layer, "base_layer") or weight.is_meta:
        asked = layer if weight.is_meta else copy.deepcopy(layer).eval()  # no dropout of the adapter
        place = getattr(getattr(layer, "_hf_hook", None), "execution_device", None) or weight.device
        width = weight.shape[0] if _transposed(getattr(layer, "base_layer", layer)) else weight.shape[1]
        unit = torch.eye(width, dtype=weight.dtype, device=place)
        with torch.no_grad():
            made: Tensor = asked(unit) - asked(torch.zeros_like(unit))
        return made
    return weight if _transposed(layer) else weight.mT


def _transposed(layer: Any) -> bool:
    return type(layer).__name__ == "Conv1D"  # GPT-2 keeps it as input × output


def projection(model: Model, module: str) -> Any:
    """The output projection that stands where the model's family says: a layer, or a bare parameter (XLNet)."""
    kind = model.network.config.model_type
    if model.family.projection is None:
        raise CaptureError(
            f"No family says where the output projection of model type '{kind}' stands. A family is one file; "
            "families/bert.py is the shortest example. Or capture with keep=('attention', 'values')."
        )
    path = module.split(".")
    for part in model.family.projection.split("/"):
        path = path[:-1] if part == ".." else [*path, part]
    return inside(model.network, ".".join(path))


def inside(module: Any, way: str) -> Any:
    """The layer or the bare parameter that stands at a dotted way inside a module."""
    return reduce(getattr, way.split("."), module)
