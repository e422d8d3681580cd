"""Attention modules that lack heads, where the module's own forward cannot do without them."""

import inspect
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from headscope.core.family import HeadWeights
from headscope.engine.pruning.kept_heads import KeptHeads


class PrunedAttention(nn.Module):
    """A mixin for attention modules with removed heads."""

    original: type[nn.Module]  # the class of the module before
    head_weights: HeadWeights
    projection: str | None  # the output projection in the module; None if it is elsewhere
    kept_heads: KeptHeads
    layer_idx: int
    config: Any

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name."""
        bound = inspect.signature(self.original.forward).bind(self, *args, **kwargs)
        bound.apply_defaults()
        arguments: dict[str, Any] = dict(list(bound.arguments.items())[1:])
        arguments.update(arguments.pop("kwargs", {}))
        return arguments


class SharedBias(PrunedAttention):
    """Attention with a bias on the scores that the first layer computes for all heads of all layers (T5)."""

    shared: Tensor | None = None  # the bias of all heads, while forward runs

    def compute_bias(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the bias of the heads that are left."""
        shared: Tensor = super().compute_bias(*args, **kwargs)  # type: ignore[misc]  # T5's own class is the next base
        self.shared = shared
        return self.kept_heads.select(shared)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute attention with the bias of the heads that are left; return the bias of all heads."""
        assert self.head_weights.bias is not None
        arguments = self._bind(args, kwargs)
        shared: Tensor | None = arguments[self.head_weights.bias]
        arguments[self.head_weights.bias] = None if shared is None else self.kept_heads.select(shared)
        try:
            output, _, weights = super().forward(**arguments)
            return output, self.shared if shared is None else shared, weights
        finally:
            self.shared = None


class RepeatedHeads(nn.Linear):
    """A projection that repeats some key-value heads, for groups of different sizes (GQA)."""

    repeats: list[int]  # the numbers of the heads, in the order of the output
    head_size: int

    def forward(self, hidden: Tensor) -> Tensor:
        """Project, and repeat heads."""
        projected = super().forward(hidden)
        heads = projected.view(*projected.shape[:-1], -1, self.head_size)
        return heads.index_select(-2, torch.tensor(self.repeats, device=heads.device)).flatten(-2)


@cache
def derive_class(
    mixin: type[PrunedAttention], original: type[nn.Module], facts: HeadWeights, projection: str | None
) -> type[nn.Module]:
    """Return a subclass of an attention module's class with the mixin, under the same name."""
    inside = None if projection is None or projection.startswith("..") else projection
    attributes = {"original": original, "head_weights": facts, "projection": inside, "__module__": original.__module__}
    return type(original.__name__, (mixin, original), attributes)


class EmptyAttention(PrunedAttention):
    """Attention without heads: what it writes is the bias of the output projection."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output projection of nothing, and weights of no heads."""
        arguments = self._bind(args, kwargs)
        hidden = next(iter(arguments.values()))
        keys, past = self._grow_cache(arguments, hidden)
        context, weights = self._attend(arguments, hidden, keys)
        output = self._project_nothing(hidden, context.flatten(2))
        if self.head_weights.bias is None:
            return output, weights
        bias = arguments[self.head_weights.bias]
        if bias is None and hasattr(self, "relative_attention_bias"):
            bias = self.compute_bias(hidden.shape[1], keys, past_seen_tokens=past)  # type: ignore[operator]  # T5's
        return output, bias, weights

    def _project_nothing(self, hidden: Tensor, context: Tensor) -> Tensor:
        """Return the bias of the output projection; a projection elsewhere gets an input without heads.

        The sum of nothing is zero. It is part of the result so that gradients of gates and attention exist.
        """
        if self.projection is None:
            return context
        bias: Tensor | None = getattr(self, self.projection).bias
        written = hidden.new_zeros(hidden.shape) if bias is None else bias.expand(hidden.shape)
        return written + context.sum(-1, keepdim=True)

    def _grow_cache(self, arguments: dict[str, Any], hidden: Tensor) -> tuple[int, int]:
        """Return the number of keys, and of those before this call; transformers reads both from the cache."""
        source, cache = _find_source(arguments), arguments.get("past_key_values")
        if source is not None or cache is None:
            return int((hidden if source is None else source).shape[1]), 0
        cache = getattr(cache, "self_attention_cache", cache)
        past = int(cache.get_seq_length(self.layer_idx))
        placeholder = hidden.new_zeros(len(hidden), 1, hidden.shape[1], 1)
        return int(cache.update(placeholder, placeholder, self.layer_idx)[0].shape[-2]), past

    def _attend(self, arguments: dict[str, Any], hidden: Tensor, keys: int) -> tuple[Tensor, Tensor]:
        """Return context and weights of no heads, from the attention interface, so that captures count this layer."""
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

        size = getattr(self, self.head_weights.size)
        queries = hidden.new_zeros(len(hidden), 0, hidden.shape[1], size)
        values = hidden.new_zeros(len(hidden), 0, keys, size)
        crosses = arguments.get("encoder_hidden_states") is not None and "encoder_attention_mask" in arguments
        mask = arguments.get("encoder_attention_mask" if crosses else "attention_mask", arguments.get("mask"))
        attend = ALL_ATTENTION_FUNCTIONS.get_interface("eager", eager_attention_forward)
        context, weights = attend(self, queries, values, values, mask)
        return context, weights


def _find_source(arguments: dict[str, Any]) -> Tensor | None:
    """Return what cross-attention attends to; None for self-attention."""
    source: Tensor | None = arguments.get("key_value_states", arguments.get("encoder_hidden_states"))
    return source


def eager_attention_forward(
    module: Any,  # noqa: ARG001  # the signature of attention functions
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,  # noqa: ARG001
    **options: Any,  # noqa: ARG001
) -> tuple[Tensor, Tensor]:
    """Return the context and the weights of no heads."""
    batch, _, queries, _ = query.shape
    return value.new_zeros(batch, queries, 0, value.shape[-1]), query.new_zeros(batch, 0, queries, key.shape[-2])
