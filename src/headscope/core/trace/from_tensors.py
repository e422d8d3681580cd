"""Build a trace from tensors, and check them."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.core.trace import Trace


def build_trace(
    attentions: Any,
    tokens: Any,
    *,
    values: Any = None,
    visible: Any = None,
    output: Any = None,
    keys: Any = None,
    gradient: Any = None,
) -> Trace:
    """See `Trace.of`."""
    attention = [_check_attention(tensor, layer) for layer, tensor in enumerate(to_layers(attentions, "attentions"))]
    shape, device = attention[0].shape, attention[0].device
    for layer, tensor in enumerate(attention):
        if tensor.shape != shape:
            raise InputError(
                f"attentions[{layer}] has shape {list(tensor.shape)}, but attentions[0] has {list(shape)}. "
                "Give the layers of one site; other sites make a trace of their own."
            )
    batch, heads, queries, width = shape
    query_tokens = to_tokens(tokens, batch, queries, "tokens", device)
    key_tokens = query_tokens if keys is None else to_tokens(keys, batch, width, "keys", device)
    if width != key_tokens.real.shape[1]:
        raise InputError(f"The maps are {queries} × {width}; give the tokens attended to as keys=…")
    real = query_tokens.real[:, :, None] & key_tokens.real[:, None, :]
    visible = _assume_all(attention, real) if visible is None else visible
    given = to_masks(visible, len(attention), real)
    joined = {id(mask): mask & real for mask in given}  # layers that share a mask share the tensor
    masks = [joined[id(mask)] for mask in given]
    optional = {"values": values, "output": output, "gradient": gradient}
    return Trace(
        site="self" if keys is None else "cross",
        layers=tuple(range(len(attention))),
        heads=tuple(range(heads)),
        attention=[tensor * mask[:, None] for tensor, mask in zip(attention, masks, strict=True)],
        visible=masks,
        queries=query_tokens,
        keys=key_tokens,
        examples=tuple(Example(str(row), " ".join(query_tokens.text[row])) for row in range(batch)),
        values=None if values is None else _to_values(values, attention, key_tokens),
        output=None if output is None else check_shapes(output, "output", attention, (heads, None, None)),
        gradient=None if gradient is None else _to_gradient(gradient, attention, masks),
        held=frozenset({"attention", *(name for name, tensors in optional.items() if tensors is not None)}),
    )


def to_layers(layers: Any, name: str) -> list[Tensor]:
    """Return one finite tensor of floating-point numbers per layer."""
    if isinstance(layers, Tensor):
        layers = [layers]
    if not isinstance(layers, Sequence) or not len(layers):
        raise InputError(
            f"{name} must be a sequence with one tensor per layer, but got {layers!r}. A model that runs with sdpa "
            "returns no attentions: load it with hs.load and use hs.capture instead."
        )
    tensors = [torch.as_tensor(layer).detach() for layer in layers]
    for layer, tensor in enumerate(tensors):
        if not tensor.is_floating_point():
            raise InputError(f"{name}[{layer}] holds {tensor.dtype}, not floating-point numbers.")
        if not torch.isfinite(tensor).all():
            count = int((~torch.isfinite(tensor)).sum())
            raise InputError(f"{name}[{layer}] holds {count} values that are NaN or infinite. Mend them first.")
    return tensors


def _check_attention(tensor: Tensor, layer: int) -> Tensor:
    tensor = tensor[None] if tensor.ndim == 3 else tensor
    if tensor.ndim != 4 or 0 in tensor.shape:
        raise InputError(f"attentions[{layer}] has shape {list(tensor.shape)}, not [batch, head, query, key].")
    if tensor.min() < 0 or tensor.sum(-1).max() > 1.02:  # 1.02: bfloat16 rows of a softmax
        raise InputError(
            f"attentions[{layer}] is no attention: weights must be at least 0 and rows sum to at most 1, but the least "
            f"is {tensor.min():.3g} and the largest sum {tensor.sum(-1).max():.3g}. Are these scores before the "
            "softmax?"
        )
    return tensor


def to_tokens(tokens: Any, batch: int, width: int, name: str, device: torch.device) -> Tokens:
    """Return tokens on a device; raise InputError unless they fit the maps."""
    tokens = tokens if isinstance(tokens, Tokens) else Tokens.of(tokens, width=width)
    rows, longest = len(tokens.text), max(map(len, tokens.text))
    if rows != batch or longest > width or tokens.real.shape[1] != width:
        raise InputError(
            f"{name} has {rows} row(s) of up to {longest} tokens, but the maps are for {batch} row(s) of {width}."
        )
    tokens = replace(tokens, role=tokens.roles)
    tables = {field.name: getattr(tokens, field.name) for field in fields(tokens)[1:]}
    moved: Any = {name: None if table is None else table.to(device) for name, table in tables.items()}
    return Tokens(tokens.text, **moved)


def place_tokens(rows: Sequence[Sequence[str]], real: Bool[Tensor, "batch token"]) -> Tokens:
    """Return the tokens of rows at their places, which are on the right where the model pads on the left.

    Rows that are shorter than `real` says end in padding that the model was not told of.

    >>> place_tokens([["a"], ["b", "c"]], torch.tensor([[False, True], [True, True]])).real.tolist()
    [[False, True], [True, True]]
    """
    tokens = Tokens.of(rows, width=real.shape[1])
    if tokens.real.sum(-1).tolist() != real.sum(-1).tolist():
        return tokens
    special, segment, word = torch.zeros_like(real), torch.full(real.shape, -1), torch.full(real.shape, -1)
    for table, placed in ((tokens.special, special), (tokens.segment, segment)):
        placed[real] = table[tokens.real]
    return Tokens(tokens.text, real, special, segment, word)


def _assume_all(attention: list[Tensor], real: Tensor) -> str:
    """Return "all" where `visible` is not given; raise InputError if attention looks causal."""
    queries, width = real.shape[1:]
    future = torch.ones(queries, width, dtype=torch.bool).triu(1 + width - queries).to(real.device)
    if min(queries, width) > 2 and not any((tensor * future).any() for tensor in attention):
        raise InputError(
            "No token here attends to a later one, so this looks like a causal model, and which keys a query can "
            "see changes the answer. Say visible='causal' or visible='all'."
        )
    return "all"


def to_masks(visible: Any, layers: int, real: Tensor) -> list[Tensor]:
    """Return one mask per layer from "all", "causal", one tensor, or one for each layer."""
    if isinstance(visible, str):
        if visible not in ("all", "causal"):
            raise InputError(f"visible must be 'all', 'causal' or a boolean tensor, but got {visible!r}.")
        ones = torch.ones_like(real)
        visible = ones if visible == "all" else ones.tril(real.shape[2] - real.shape[1])
    per_layer = list(visible) if isinstance(visible, list | tuple) else [visible] * layers
    masks = [torch.as_tensor(mask).to(real.device) for mask in per_layer]
    if len(masks) != layers or any(mask.dtype != torch.bool or mask.shape != real.shape for mask in masks):
        raise InputError(
            f"visible must be boolean of shape {list(real.shape)}, for all layers or one for each of {layers}, "
            f"but got {[(str(mask.dtype), list(mask.shape)) for mask in masks]}."
        )
    return masks


def _to_values(values: Any, attention: list[Tensor], keys: Tokens) -> list[Tensor]:
    """Return one tensor per layer, with shared value heads repeated and zeros for padding."""
    batch, heads, _, width = attention[0].shape
    tensors = [tensor[None] if tensor.ndim == 3 else tensor for tensor in to_layers(values, "values")]
    for layer, tensor in enumerate(tensors):
        if tensor.ndim == 4 and heads % tensor.shape[1] == 0:
            tensors[layer] = tensor.repeat_interleave(heads // tensor.shape[1], dim=1)
    check_shapes(tensors, "values", attention, (batch, heads, width, None))
    return [tensor * keys.real[:, None, :, None] for tensor in tensors]


def _to_gradient(gradient: Any, attention: list[Tensor], masks: list[Tensor]) -> list[Tensor]:
    """Return one tensor per layer, with zeros for keys that are not visible."""
    tensors = [tensor[None] if tensor.ndim == 3 else tensor for tensor in to_layers(gradient, "gradient")]
    check_shapes(tensors, "gradient", attention, tuple(attention[0].shape))
    return [tensor * mask[:, None] for tensor, mask in zip(tensors, masks, strict=True)]


def check_shapes(layers: Any, name: str, attention: list[Tensor], shape: tuple[int | None, ...]) -> list[Tensor]:
    """Return one tensor per layer; None in `shape` stands for any size."""
    tensors = to_layers(layers, name)
    if len(tensors) != len(attention):
        raise InputError(f"{name} has {len(tensors)} layer(s), but attentions has {len(attention)}.")
    expected = "[" + ", ".join("any" if size is None else str(size) for size in shape) + "]"
    for layer, tensor in enumerate(tensors):
        sizes = zip(shape, tensor.shape, strict=False)
        if tensor.ndim != len(shape) or any(size not in (None, actual) for size, actual in sizes):
            raise InputError(f"{name}[{layer}] has shape {list(tensor.shape)}, not {expected} as the attentions ask.")
    return tensors
