"""The slice of the output projection that belongs to each head."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.errors import CaptureError
from headscope.engine.model import Model
from headscope.engine.pruning.kept_heads import find_kept_heads


def output_slices(
    model: Model, module: str, heads: Sequence[int], head_count: int
) -> Float[Tensor, "head value hidden"]:
    """Return W_O sliced by heads: each head's context times its slice, summed over heads, is the attention output."""
    layer = find_projection(model, module)
    parameter = getattr(layer, "weight", layer)
    plain = type(parameter) in (Tensor, torch.nn.Parameter)
    if not plain or not parameter.is_floating_point() or parameter.element_size() < 2:  # int8, packed, fp8
        raise CaptureError(
            f"The output projection of {module} is quantised ({getattr(parameter, 'dtype', type(layer).__name__)}). "
            "Load the model unquantised, or capture with keep=('attention', 'values')."
        )
    weight: Tensor = parameter.detach()
    if weight.ndim == 3:  # XLNet: hidden × head × value
        slices = weight.permute(1, 2, 0)
    else:
        matrix = _input_by_output(layer, weight)
        slices = _split_heads(matrix, head_count, model, module)
    return slices if list(heads) == list(range(head_count)) else slices[torch.tensor(heads, device=slices.device)]


def _split_heads(
    matrix: Float[Tensor, "input output"], head_count: int, model: Model, module: str
) -> Float[Tensor, "head value hidden"]:
    """Return the part of each head; that of a pruned head is zero."""
    attention = _follow(model.network, module.split("."))
    kept_heads = find_kept_heads(attention)
    if kept_heads is None:
        return matrix.reshape(head_count, -1, matrix.shape[-1])
    assert model.family.head_weights is not None
    size = getattr(attention, model.family.head_weights.size)
    return kept_heads.expand(matrix.reshape(1, len(kept_heads.heads), size, matrix.shape[-1]))[0]


def find_projection(model: Model, module: str) -> Any:
    """Return the output projection of an attention module: a layer, or a bare parameter (XLNet)."""
    if model.family.projection is None:
        raise CaptureError(
            f"No family says where the output projection of model type '{model.network.config.model_type}' is. A "
            "family is one file; families/bert.py is the shortest example. Or capture with "
            "keep=('attention', 'values')."
        )
    # torch.compile's wrapper, `_orig_mod`, has the same submodules
    path = [segment for segment in module.split(".") if segment != "_orig_mod"]
    for step in model.family.projection.split("/"):
        path = path[:-1] if step == ".." else [*path, step]
    return _follow(model.network, path)


def _follow(network: Any, path: Sequence[str]) -> Any:
    """Return the module, or the bare parameter, at a path; faster than `get_submodule`, for every capture needs it."""
    module = network
    for name in path:
        module = module._modules[name] if name in module._modules else getattr(module, name)
    return module


def _input_by_output(layer: Any, weight: Tensor) -> Float[Tensor, "input output"]:
    """Return the layer's matrix; with an adapter (LoRA) or offloaded weights, what it does to the unit matrix."""
    if hasattr(layer, "base_layer") or weight.is_meta:
        frozen = layer if weight.is_meta else copy.deepcopy(layer).eval()  # without the adapter's dropout
        device = getattr(getattr(layer, "_hf_hook", None), "execution_device", None) or weight.device
        width = weight.shape[0] if _is_conv1d(getattr(layer, "base_layer", layer)) else weight.shape[1]
        unit = torch.eye(width, dtype=weight.dtype, device=device)
        with torch.no_grad():
            matrix: Tensor = frozen(unit) - frozen(torch.zeros_like(unit))  # without the bias
        return matrix
    return weight if _is_conv1d(layer) else weight.mT


def _is_conv1d(layer: Any) -> bool:
    return type(layer).__name__ == "Conv1D"  # GPT-2, weight: input × output
