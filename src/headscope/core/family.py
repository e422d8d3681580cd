"""What headscope must know about one kind of model."""

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor


def split_heads(projected: Float[Tensor, "batch token _"], heads: int) -> Float[Tensor, "batch head token value"]:
    """A projection's output cut into heads that lie side by side, as most kinds have it."""
    return projected.reshape(*projected.shape[:-1], heads, -1).transpose(1, 2)


def last_returned(returned: Any) -> Tensor | None:
    """The weights, where a module returns them last and as [batch, head, query, key]; None where it returns none."""
    weights: Tensor | None = returned[-1]
    return weights


def as_given(module: Any, mask: Tensor | None, query: int, key: int) -> Tensor | None:  # noqa: ARG001  # one signature
    """The mask as the module got it: additive, or None where every query sees every key."""
    return mask


@dataclass(frozen=True)
class Hooks:
    """Where forward hooks find what a kind computes without the library's attention interface."""

    module: str
    """The class of the attention modules."""

    values: str
    """The value projection in such a module: a layer, or a bare parameter that is applied to the module's input."""

    mask: str = "attention_mask"
    """The argument of the module's forward that hides keys."""

    split: Callable[[Tensor, int], Tensor] = split_heads
    """From what the value projection gave and the number of heads to [batch, head, key, value]."""

    weights: Callable[[Any], Tensor | None] = last_returned
    """From what the module returned, asked for its weights, to [batch, head, query, key]."""

    visible: Callable[[Any, Tensor | None, int, int], Tensor | None] = as_given
    """From the module, its mask and the numbers of queries and keys to a mask that is additive, or true where seen."""


class Family(ABC):
    """The few facts one kind of model needs beyond the common mechanism.

    Attention and values come through the library's own attention interface and need no facts at all. A family says
    where the output projection stands, which module belongs to which site, and how many positions go unused; and for
    a kind that bypasses the interface, where hooks find its attention and values.
    """

    kinds: ClassVar[tuple[str, ...]]
    """The `config.model_type` values this family covers."""

    projection: ClassVar[str | None]
    """The way from the attention module to its output projection, `..` going up; None = not known."""

    hooks: ClassVar[Hooks | None] = None
    """How to capture a kind that bypasses the library's attention interface; None = it goes through it."""

    sites: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Which part of a module's name means which site, first match wins; no match means "self"."""

    unused_positions: ClassVar[int] = 0
    """How many of `max_position_embeddings` no token can have (RoBERTa counts from the padding index)."""

    def site(self, module: str) -> str:
        """The attention site that a module of this name belongs to."""
        parts = module.split(".")
        return next((site for part, site in self.sites if part in parts), "self")
