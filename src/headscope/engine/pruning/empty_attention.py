"""Attention modules without heads."""

from typing import Any

from torch import Tensor

from headscope.engine.pruning.attention import PrunedAttention


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
