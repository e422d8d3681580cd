"""Build a trace from calls of the attention functions of transformers, as nnsight saves them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.tokens import Tokens
from headscope.core.trace import Trace
from headscope.core.trace.from_qkv import compute_trace
from headscope.core.trace.from_tensors import place_tokens

NAMES = ("module", "query", "key", "value", "attention_mask")
"""The arguments of an attention function, in their order."""


@dataclass(frozen=True)
class AttentionArguments:
    """What one layer's attention function was given, and what it returned."""

    layer: int
    module: Any
    query: Float[Tensor, "batch head query size"]
    key: Float[Tensor, "batch _ key size"]
    value: Float[Tensor, "batch _ key value"]
    mask: Tensor | None
    options: Mapping[str, Any]
    context: Float[Tensor, "batch head query value"]

    @property
    def scale(self) -> float:
        """What products of queries and keys are multiplied with."""
        scale = self.options.get("scaling")
        if scale is None:
            raise InputError(
                f"The call of layer {self.layer} names no scaling, and it is not guessed: give its tensors to "
                "hs.Trace.from_qkv with a scale."
            )
        return float(scale)

    def visible(self) -> Bool[Tensor, "batch query key"]:
        """Return which keys each query sees: what the mask shows or, without one, whether the module is causal."""
        batch, _, queries, _ = self.query.shape
        keys, device = self.key.shape[2], self.query.device
        ones = torch.ones(batch, queries, keys, dtype=torch.bool, device=device)
        if self.mask is not None and self.mask.ndim == 4:
            seen = self._seen()
            if not torch.equal(seen, seen[:, :1].expand_as(seen)):
                raise InputError(f"In layer {self.layer} heads differ in the keys they see, which a trace cannot hold.")
            return seen[:, 0].expand(batch, queries, keys)
        causal = self.options.get("is_causal")
        causal = getattr(self.module, "is_causal", True) if causal is None else causal
        if causal and queries > 1:
            ones = ones.tril(keys - queries)
            window = self.options.get("sliding_window")
            ones = ones if window is None else ones.triu(keys - queries + 1 - int(window))
        return ones if self.mask is None else ones & self.mask[:, None, :keys].bool()  # as flash attention takes it

    def bias(self) -> Float[Tensor, "_ _ query key"] | None:
        """Return what a mask of numbers adds to the scores of visible keys; None where that is 0 everywhere."""
        if self.mask is None or self.mask.ndim != 4 or not self.mask.is_floating_point():
            return None
        added = self.mask[..., : self.key.shape[2]].masked_fill(~self._seen(), 0)
        return added if bool(added.any()) else None

    def _seen(self) -> Bool[Tensor, "_ _ query key"]:
        assert self.mask is not None
        mask = self.mask[..., : self.key.shape[2]]
        return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2


def read_calls(calls: Any, tokens: Any, *, output: Any = None, key_tokens: Any = None) -> Trace:
    """See `Trace.from_nnsight`."""
    if not isinstance(calls, Sequence) or not calls:
        raise InputError(f"calls must be a list with (inputs, output) for each layer, but got {calls!r}.")
    layers = [_read_call(call, layer) for layer, call in enumerate(calls)]
    shared: dict[Any, Tensor] = {}  # layers often share a mask
    keys = [(id(layer.mask), layer.options.get("sliding_window")) for layer in layers]
    masks = [shared.setdefault(key, layer.visible()) for key, layer in zip(keys, layers, strict=True)]
    caps, sinks = ([layer.options.get(name) for layer in layers] for name in ("softcap", "s_aux"))
    biases = [layer.bias() for layer in layers]
    seen = masks[0].any(1).cpu()  # of padding that no query sees
    return compute_trace(
        [layer.query for layer in layers],
        [layer.key for layer in layers],
        [layer.value for layer in layers],
        _place(tokens, seen) if key_tokens is None else tokens,
        scale=[layer.scale for layer in layers],
        visible=masks,
        soft_cap=caps if any(cap is not None for cap in caps) else None,
        sinks=sinks if any(sink is not None for sink in sinks) else None,
        bias=biases if any(bias is not None for bias in biases) else None,
        context=[layer.context for layer in layers],
        output=output,
        key_tokens=None if key_tokens is None else _place(key_tokens, seen),
    )


def _place(tokens: Any, seen: Bool[Tensor, "batch key"]) -> Tokens:
    if isinstance(tokens, Tokens):
        return tokens
    rows = [tokens] if bool(tokens) and isinstance(tokens[0], str) else tokens
    return place_tokens(rows, seen)


def _read_call(call: Any, layer: int) -> AttentionArguments:
    """Return what was saved of one layer by its names."""
    try:
        (args, options), (context, *_) = call
        named = {**dict(zip(NAMES, args, strict=False)), **options}
        tensors = {name: named.pop(name).detach() for name in NAMES[1:4]}
        module, mask = named.pop("module", None), named.pop("attention_mask", None)
        context = context.detach().transpose(1, 2)  # attention functions return it as `batch query head value`
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(
            f"calls[{layer}] is not (inputs, output) of an attention function. Save both of the line that calls "
            "attention_interface, which print(module.source) shows: (line.inputs, line.output)."
        ) from error
    return AttentionArguments(layer, module, **tensors, mask=mask, options=named, context=context)
