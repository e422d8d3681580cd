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
        """Compute attention with the own heads' part of the bias; return the bias of all heads."""
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
    """A projection to key-value heads that gives some of them several times, for groups of different sizes (GQA)."""

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
    """Return a class with the name and the methods of an attention module, changed by the mixin."""
    inside = None if projection is None or projection.startswith("..") else projection
    attributes = {"original": original, "head_weights": facts, "projection": inside, "__module__": original.__module__}
    return type(original.__name__, (mixin, original), attributes)
