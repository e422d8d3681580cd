"""Build a trace from a model and a cache of TransformerLens.

A cache that holds everything says of itself which keys each query sees, in its scores after the mask. What the model
is asked for is the output projection and, where the cache holds no pattern, how it computes one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.prose import join_words
from headscope.core.tokens import Tokens
from headscope.core.trace import Trace
from headscope.core.trace.from_qkv import add_context, check_context, compute_trace
from headscope.core.trace.from_tensors import build_trace, place_tokens

VALUES = re.compile(r"blocks\.(\d+)\.attn\.hook_v")


def read_cache(model: Any, cache: Any, tokens: Any, *, visible: Any = None) -> Trace:
    """See `Trace.from_transformer_lens`."""
    layers = _find_layers(model, cache)
    patterns = _read(cache, layers, "hook_pattern")
    values, context = (_read_heads(model, cache, layers, name) for name in ("hook_v", "hook_z"))
    assert values is not None
    masks = _read_masks(cache, layers) if visible is None else visible
    seen = masks[0].any(1) if isinstance(masks, list) and isinstance(masks[0], Tensor) else None
    side = _name_tokens(model, tokens, values[0].shape[0], values[0].shape[2], seen)
    output = [model.blocks[layer].attn.W_O.detach() for layer in layers]
    if patterns is None:
        rules = _read_rules(model, layers)
        queries, keys = _read_sides(model, cache, layers)
        if masks is not None:  # which hold the windows
            rules = {**rules, "window": None}
        masks = _read_direction(model) if masks is None else masks
        trace = compute_trace(queries, keys, values, side, visible=masks, context=context, output=output, **rules)
    else:
        masks = _make_masks(model, layers, side) if masks is None else masks
        trace = _from_patterns(patterns, values, side, masks, context, output)
    return replace(trace, layers=tuple(layers), modules=tuple(f"blocks.{layer}.attn" for layer in layers))


def _find_layers(model: Any, cache: Any) -> list[int]:
    """Return the numbers of the layers whose values a cache holds."""
    if not hasattr(model, "cfg") or not hasattr(model, "blocks") or not hasattr(cache, "keys"):
        raise InputError(
            f"Expected a model of TransformerLens and its cache, but got {type(model).__name__} and "
            f"{type(cache).__name__}. Make them with logits, cache = model.run_with_cache(tokens); TransformerLens is "
            "installed with pip install headscope[transformerlens]."
        )
    found = sorted(int(match[1]) for name in cache.keys() if (match := VALUES.fullmatch(name)))  # noqa: SIM118
    if not found:
        raise InputError(
            "This cache holds no values of attention (blocks.*.attn.hook_v). Run the model with a cache of everything, "
            "or let its names_filter pass hook_pattern, hook_attn_scores, hook_v and hook_z."
        )
    return found


def _read(cache: Any, layers: Sequence[int], name: str) -> list[Tensor] | None:
    """Return what a hook saw in each layer, with a batch axis; None if the cache does not hold it."""
    names = [f"blocks.{layer}.attn.{name}" for layer in layers]
    missing = [name for name in names if name not in cache.keys()]  # noqa: SIM118
    if len(missing) == len(names):
        return None
    if missing:
        raise InputError(f"This cache holds {name} of some layers only: not {join_words(missing, limit=4)}.")
    tensors = [cache[name].detach() for name in names]
    return tensors if getattr(cache, "has_batch_dim", True) else [tensor[None] for tensor in tensors]


def _read_heads(model: Any, cache: Any, layers: Sequence[int], name: str) -> list[Tensor] | None:
    """Return queries, keys, values or contexts as `batch head token size`; a bridge may have heads side by side."""
    tensors = _read(cache, layers, name)
    if tensors is None:
        return None
    config = model.cfg
    shared = name.endswith(("_v", "_k"))
    heads = (getattr(config, "n_key_value_heads", None) if shared else None) or config.n_heads
    apart = [tensor if tensor.ndim == 4 else tensor.reshape(*tensor.shape[:2], heads, -1) for tensor in tensors]
    return [tensor.transpose(1, 2) for tensor in apart]


def _read_masks(cache: Any, layers: Sequence[int]) -> list[Tensor] | None:
    """Return which keys each query sees, from the scores after the mask; None if the cache does not hold them."""
    scores = _read(cache, layers, "hook_attn_scores")
    if scores is None:
        return None
    masks = [layer > torch.finfo(layer.dtype).min / 2 for layer in scores]
    for layer, mask in zip(layers, masks, strict=True):
        if not torch.equal(mask, mask[:, :1].expand_as(mask)):
            raise InputError(f"In layer {layer} heads differ in the keys they see, which a trace cannot hold.")
    return [mask[:, 0] for mask in masks]


def _name_tokens(model: Any, tokens: Any, batch: int, width: int, seen: Bool[Tensor, "batch key"] | None) -> Tokens:
    """Return the tokens of each row: strings as given, ids by the tokenizer. Keys that no query sees are padding."""
    if isinstance(tokens, Tokens):
        return tokens
    real = torch.ones(batch, width, dtype=torch.bool) if seen is None else seen.cpu()
    if isinstance(tokens, Tensor):
        ids = (tokens if tokens.ndim == 2 else tokens[None]).cpu()
        if ids.shape != real.shape:
            raise InputError(f"tokens has shape {list(tokens.shape)}, but the cache is of {[batch, width]} tokens.")
        _check_padding(model, ids, real)
        rows = [_name_ids(model, row[mask]) for row, mask in zip(ids, real, strict=True)]
    else:
        flat = bool(tokens) and isinstance(tokens[0], str)
        rows = [list(row) for row in ([tokens] if flat else tokens)]
    return place_tokens(rows, real)


def _check_padding(model: Any, ids: Int[Tensor, "batch token"], real: Bool[Tensor, "batch token"]) -> None:
    """Raise InputError if rows end in padding that the model took for tokens."""
    pad = getattr(getattr(model, "tokenizer", None), "pad_token_id", None)
    if pad is None or len(ids) == 1:
        return
    if rows := ((ids[:, -1] == pad) & real[:, -1]).nonzero()[:, 0].tolist():
        raise InputError(
            f"Rows {join_words(rows, limit=4)} end in the token of padding, and the model was not told that it is "
            "padding. Run it with attention_mask=…, or give tokens as strings, a list for each row without padding."
        )


def _name_ids(model: Any, ids: Int[Tensor, " token"]) -> list[str]:
    tokenizer = getattr(model, "tokenizer", None)
    names = ids.tolist() if tokenizer is None else tokenizer.convert_ids_to_tokens(ids.tolist())
    return [str(name) for name in names]


def _from_patterns(
    patterns: Sequence[Tensor],
    values: Sequence[Tensor],
    side: Tokens,
    visible: Any,
    context: Sequence[Tensor] | None,
    output: Sequence[Tensor],
) -> Trace:
    """Return the trace of patterns as the model computed them, compared with what its heads wrote."""
    trace = build_trace(list(patterns), side, values=list(values), visible=visible, output=list(output))
    for layer, (pattern, mask) in enumerate(zip(patterns, trace.visible, strict=True)):
        rows = mask.any(-1)[:, None, :, None]
        if bool((pattern.masked_fill(mask[:, None], 0) * rows).any()):
            raise InputError(
                f"In hook_pattern of block {layer} of this cache queries attend to keys that visible= hides. Leave it "
                "out, and keep hook_attn_scores in the cache, which says which keys each query sees."
            )
    differences = [
        check_context(
            layer, *tensors, explain="hook_pattern times hook_v is not hook_z: did a hook change one of them?"
        )
        for layer, tensors in enumerate(zip(patterns, values, context or (), trace.visible, strict=False))
    ]
    groups = {pattern.shape[1] // value.shape[1] for pattern, value in zip(patterns, values, strict=True)}
    trace = replace(trace, group=groups.pop() if len(groups) == 1 else 1)
    return add_context(trace, {"attention": "hook_pattern of a TransformerLens cache"}, context, differences)


def _read_direction(model: Any) -> str:
    """Return "causal" or "all", as the config of a HookedTransformer says."""
    if not _is_hooked(model):
        raise InputError(
            f"The config of a {type(model).__name__} does not say which keys a query sees. Keep hook_attn_scores in "
            "the cache, or say visible='causal', visible='all', or give a boolean tensor for each layer."
        )
    return "causal" if model.cfg.attention_dir == "causal" else "all"


def _make_masks(model: Any, layers: Sequence[int], side: Tokens) -> list[Tensor]:
    """Return which keys each query sees, as the config of a HookedTransformer says."""
    batch, width = side.real.shape
    ones = torch.ones(batch, width, width, dtype=torch.bool)
    whole = ones.tril() if _read_direction(model) == "causal" else ones
    return [whole if window is None else whole.triu(1 - window) for window in _read_windows(model, layers)]


def _read_windows(model: Any, layers: Sequence[int]) -> list[int | None]:
    local = [model.blocks[layer].attn.attn_type == "local" for layer in layers]
    return [int(model.cfg.window_size) if is_local else None for is_local in local]


def _is_hooked(model: Any) -> bool:
    """Whether the model computes its scores by its own config, as HookedTransformer and HookedEncoder do."""
    return hasattr(model.blocks[0].attn, "attn_scale") and hasattr(model.blocks[0].attn, "attn_type")


def _read_rules(model: Any, layers: Sequence[int]) -> Mapping[str, Any]:
    """Return scale, soft cap, windows and sinks of a HookedTransformer."""
    config = model.cfg
    unknown = [name for name in ("use_logn_attn",) if getattr(config, name, False)]
    unknown += [config.positional_embedding_type] * (
        config.positional_embedding_type in ("alibi", "relative_positional_bias")
    )
    if not _is_hooked(model) or unknown:
        which = join_words(unknown) if unknown else f"a {type(model).__name__}"
        raise InputError(
            f"This cache holds no hook_pattern, and with {which} queries and keys alone do not say what it is. Run the "
            "model again with hook_pattern in the cache."
        )
    blocks = [model.blocks[layer].attn for layer in layers]
    cap = config.attn_scores_soft_cap
    sinks = [block.sinks.detach() for block in blocks] if getattr(config, "use_attention_sinks", False) else None
    windows = _read_windows(model, layers)
    return {
        "scale": [1 / float(block.attn_scale) for block in blocks],
        "soft_cap": float(cap) if cap > 0 else None,
        "window": windows if any(windows) else None,
        "sinks": sinks,
    }


def _read_sides(model: Any, cache: Any, layers: Sequence[int]) -> list[list[Tensor]]:
    """Return queries and keys as their products are taken."""
    rotated = "rot_" if model.cfg.positional_embedding_type == "rotary" else ""
    names = [f"hook_{rotated}q", f"hook_{rotated}k"]
    sides = [_read_heads(model, cache, layers, name) for name in names]
    if any(side is None for side in sides):
        raise InputError(
            f"This cache holds neither hook_pattern nor both of {join_words(names)}. Let names_filter pass "
            "hook_pattern."
        )
    return [side for side in sides if side is not None]
