"""A trace from bare tensors, checked before it is believed."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.core.trace import Trace


def build_trace(
    attentions: Any, tokens: Any, *, values: Any = None, visible: Any = None, output: Any = None, keys: Any = None
) -> Trace:
    """See `Trace.of`."""
    attention = [_attention(each, layer) for layer, each in enumerate(_layers(attentions, "attentions"))]
    batch, heads, queries, width = attention[0].shape
    for layer, each in enumerate(attention):
        if each.shape != attention[0].shape:
            raise InputError(
                f"attentions[{layer}] has shape {list(each.shape)}, but attentions[0] has {list(attention[0].shape)}. "
                "Give the layers of one site; other sites make a trace of their own."
            )
    asking = _tokens(tokens, batch, queries, "tokens", attention[0].device)
    asked = asking if keys is None else _tokens(keys, batch, width, "keys", attention[0].device)
    if width != asked.real.shape[1]:
        raise InputError(f"The maps are {queries} × {width}; give the tokens attended to as keys=…")
    real = asking.real[:, :, None] & asked.real[:, None, :]
    seen = [each & real for each in _visible(visible, attention, real)]
    held = {"attention"} | ({"values"} if values is not None else set()) | ({"output"} if output is not None else set())
    return Trace(
        site="self" if keys is None else "cross",
        layers=tuple(range(len(attention))),
        heads=tuple(range(heads)),
        attention=[each * mask[:, None] for each, mask in zip(attention, seen, strict=True)],
        visible=seen,
        queries=asking,
        keys=asked,
        examples=tuple(Example(str(row), " ".join(asking.text[row])) for row in range(batch)),
        values=None if values is None else _values(values, attention, asked),
        output=None if output is None else _matching(output, "output", attention, (heads, None, None)),
        held=frozenset(held),
    )


def _layers(given: Any, name: str) -> list[Tensor]:
    if isinstance(given, Tensor):
        given = [given]
    if not isinstance(given, Sequence) or not len(given):
        raise InputError(
            f"{name} must be a sequence with one tensor per layer, but got {given!r}. A model that runs with sdpa "
            "returns no attentions: load it with hs.load and use hs.capture instead."
        )
    tensors = [torch.as_tensor(each).detach() for each in given]
    for layer, each in enumerate(tensors):
        if not each.is_floating_point():
            raise InputError(f"{name}[{layer}] holds {each.dtype}, not floating-point numbers.")
        if not torch.isfinite(each).all():
            count = int((~torch.isfinite(each)).sum())
            raise InputError(f"{name}[{layer}] holds {count} values that are NaN or infinite. Mend them first.")
    return tensors


def _attention(each: Tensor, layer: int) -> Tensor:
    each = each[None] if each.ndim == 3 else each
    if each.ndim != 4 or 0 in each.shape:
        raise InputError(f"attentions[{layer}] has shape {list(each.shape)}, not [batch, head, query, key].")
    if each.min() < 0 or each.sum(-1).max() > 1.02:  # 1.02: bfloat16 rows of a softmax
        raise InputError(
            f"attentions[{layer}] is no attention: weights must be at least 0 and rows sum to at most 1, but the least "
            f"is {each.min():.3g} and the largest sum {each.sum(-1).max():.3g}. Are these scores before the softmax?"
        )
    return each


def _tokens(given: Any, batch: int, width: int, name: str, device: torch.device) -> Tokens:
    tokens = given if isinstance(given, Tokens) else Tokens.of(given, width=width)
    rows, longest = len(tokens.text), max(map(len, tokens.text))
    if rows != batch or longest > width or tokens.real.shape[1] != width:
        raise InputError(
            f"{name} has {rows} row(s) of up to {longest} tokens, but the maps are for {batch} row(s) of {width}."
        )
    moved = replace(tokens, role=tokens.roles)
    return Tokens(moved.text, *(getattr(moved, each.name).to(device) for each in fields(moved)[1:]))


def _visible(given: Any, attention: list[Tensor], real: Tensor) -> list[Tensor]:
    queries, width = attention[0].shape[-2:]
    if given is None:
        above = torch.ones(queries, width, dtype=torch.bool).triu(1 + width - queries).to(real.device)
        if min(queries, width) > 2 and not any((each.masked_fill(~above, 0) != 0).any() for each in attention):
            raise InputError(
                "No token here attends to a later one, so this looks like a causal model, and which keys a query can "
                "see changes the answer. Say visible='causal' or visible='all'."
            )
        given = "all"
    if isinstance(given, str):
        if given not in ("all", "causal"):
            raise InputError(f"visible must be 'all', 'causal' or a boolean tensor, but got {given!r}.")
        mask = torch.ones_like(real)
        given = mask if given == "all" else mask.tril(width - queries)
    per_layer = list(given) if isinstance(given, list | tuple) else [given] * len(attention)
    masks = [torch.as_tensor(each).to(real.device) for each in per_layer]
    if len(masks) != len(attention) or any(each.dtype != torch.bool or each.shape != real.shape for each in masks):
        raise InputError(
            f"visible must be boolean of shape {list(real.shape)}, for all layers or one for each of {len(attention)}, "
            f"but got {[(str(each.dtype), list(each.shape)) for each in masks]}."
        )
    return masks


def _values(given: Any, attention: list[Tensor], keys: Tokens) -> list[Tensor]:
    batch, heads, _, width = attention[0].shape
    values = [each[None] if each.ndim == 3 else each for each in _layers(given, "values")]
    repeated = []
    for each in values:
        shared = heads % each.shape[1] == 0 if each.ndim == 4 else False
        repeated.append(each.repeat_interleave(heads // each.shape[1], dim=1) if shared else each)
    _matching(repeated, "values", attention, (batch, heads, width, None))
    return [each * keys.real[:, None, :, None] for each in repeated]


def _matching(given: Any, name: str, attention: list[Tensor], shape: tuple[int | None, ...]) -> list[Tensor]:
    tensors = _layers(given, name)
    wanted = "[" + ", ".join("any" if size is None else str(size) for size in shape) + "]"
    if len(tensors) != len(attention):
        raise InputError(f"{name} has {len(tensors)} layer(s), but attentions has {len(attention)}.")
    for layer, each in enumerate(tensors):
        fits = each.ndim == len(shape) and all(
            size in (None, real) for size, real in zip(shape, each.shape, strict=True)
        )
        if not fits:
            raise InputError(f"{name}[{layer}] has shape {list(each.shape)}, not {wanted} as the attentions ask.")
    return tensors
