"""The output projection of an attention module: the linear layer that reads what its heads computed.

It is found by data flow: in the first pass that is recorded, inputs of linear layers are compared with the context of
the attention module that ran last. Where something else comes between, such as a gate or a normalisation, no layer
reads the context itself, and there is none.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headscope.core.errors import CaptureError
from headscope.engine.model import Model
from headscope.engine.offloaded import read_weight
from headscope.engine.pruning.cut_layers import expand_matrix
from headscope.engine.pruning.kept_heads import find_kept_heads
from headscope.engine.recording.recorder import Recorder, find_module

_found: WeakKeyDictionary[Any, dict[str, str | None]] = WeakKeyDictionary()
"""By network and name of an attention module: the name of its output projection, None if it has none."""


@contextmanager
def search_projections(model: Model, recorder: Recorder) -> Iterator[None]:
    """Find the output projections of the attention modules that run in a block."""
    table, calls = _found.setdefault(model.network, {}), list[tuple[str, Tensor]]()

    def note(module: str, context: Tensor) -> None:
        table.setdefault(module, None)
        if calls and find_module(calls[0][0]) != find_module(module):
            calls.clear()
        calls.append((module, context))

    def compare(layer: Any, args: tuple[Any, ...]) -> None:
        if not args or not isinstance(args[0], Tensor):
            return
        for module, context in calls:
            if _is_context(args[0], context):
                name, known = recorder.names[layer], table[module]
                if known is None or not name.startswith(f"{known}."):  # else a part of it, as of an adapter's layer
                    table[module] = name

    recorder.on_context = note
    with ExitStack() as stack:
        for layer in filter(_is_linear, recorder.names):
            stack.enter_context(layer.register_forward_pre_hook(compare))
        yield
    recorder.on_context = None


def _is_linear(module: Any) -> bool:
    """Return True for linear layers, of whatever class, and for those that an adapter wraps."""
    weight = module._parameters.get("weight")
    return hasattr(module, "base_layer") or (
        weight is not None and weight.ndim == 2 and type(module) is not nn.Embedding
    )


def _is_context(tensor: Tensor, context: Float[Tensor, "batch head query value"]) -> bool:
    """Return True if a tensor holds the heads of a context side by side: `batch query _`, or `query batch _`."""
    batch, heads, queries, size = context.shape
    if tensor.shape[-1] != heads * size or tensor.numel() != context.numel() or not tensor.is_floating_point():
        return False
    joined = context.transpose(1, 2).flatten(2)
    layouts = (joined, joined.transpose(0, 1)) if tensor.shape[:2] == (queries, batch) else (joined,)
    return any(_same_numbers(tensor, layout.reshape(tensor.shape).to(tensor.dtype)) for layout in layouts)


def _same_numbers(left: Tensor, right: Tensor) -> bool:
    return bool(torch.equal(left.nan_to_num(), right.nan_to_num())) and bool(left.any())


def has_projection(model: Model, module: str) -> bool:
    """Return True if the output projection of an attention module is known."""
    return model.family.projection is not None or _found.get(model.network, {}).get(module) is not None


def known_projections(model: Model) -> list[str]:
    """Return the attention modules that have run and whose output projections are known."""
    return [module for module in _found.get(model.network, {}) if has_projection(model, module)]


def output_bias(model: Model, module: str) -> Float[Tensor, " hidden"] | None:
    """Return the bias of an output projection; None if it has none, or is a bare parameter (XLNet)."""
    bias = getattr(find_projection(model, module), "bias", None)
    return bias.detach() if isinstance(bias, Tensor) else None


def output_slices(
    model: Model, module: str, heads: Sequence[int], head_count: int
) -> Float[Tensor, "head value hidden"]:
    """Return W_O sliced by heads: each head's context times its slice, summed over heads, is the attention output."""
    layer = _load_parameter(model, find_projection(model, module))
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
        matrix = expand_matrix(layer, _input_by_output(layer, weight))
        slices = _split_heads(matrix, head_count, model, module)
    return slices if list(heads) == list(range(head_count)) else slices[torch.tensor(heads, device=slices.device)]


def _load_parameter(model: Model, layer: Any) -> Any:
    """Return a projection; a bare parameter that is offloaded with its values."""
    if not isinstance(layer, Tensor) or not layer.is_meta:
        return layer
    parents = (part for part in model.network.modules() if any(own is layer for own in part._parameters.values()))
    parent = next(parents)
    return read_weight(parent, next(name for name, own in parent._parameters.items() if own is layer))


def _split_heads(
    matrix: Float[Tensor, "input output"], head_count: int, model: Model, module: str
) -> Float[Tensor, "head value hidden"]:
    """Return the part of each head; that of a pruned head is zero."""
    attention = _follow(model.network, find_module(module).split("."))
    kept_heads = find_kept_heads(attention)
    if kept_heads is None or kept_heads.in_place:
        return matrix.reshape(head_count, -1, matrix.shape[-1])
    assert model.family.head_weights is not None
    size = getattr(attention, model.family.head_weights.size)
    return kept_heads.expand(matrix.reshape(1, len(kept_heads.heads), size, matrix.shape[-1]))[0]


def find_projection(model: Model, module: str) -> Any:
    """Return the output projection of an attention module: a layer, or a bare parameter (XLNet)."""
    # torch.compile's wrapper, `_orig_mod`, has the same submodules
    path = [segment for segment in find_module(module).split(".") if segment != "_orig_mod"]
    if model.family.projection is not None:
        for step in model.family.projection.split("/"):
            path = path[:-1] if step == ".." else [*path, step]
        return _follow(model.network, path)
    table = _found.get(model.network, {})
    if (name := table.get(module)) is not None:
        return _follow(model.network, name.split("."))
    if module not in table:
        raise CaptureError(
            f"The output projection of {module} is found when the model runs, and it has not run yet. Capture a text "
            "first."
        )
    raise CaptureError(
        f"{describe_lack(module)} Capture with keep=('attention', 'values'), and use a lens that needs no output "
        "projection."
    )


def describe_lack(module: str) -> str:
    """Return why an attention module has no output projection."""
    return (
        f"In {module} no linear layer reads what the heads computed: something comes between, such as a gate or a "
        "normalisation, so no part of the output belongs to one head."
    )


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
    return type(layer).__name__ == "Conv1D"  # GPT-2, also without some heads; weight: input × output
