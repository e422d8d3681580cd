"""What headscope must know about one kind of model."""

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor


def split_heads(projected: Float[Tensor, "batch token _"], heads: int) -> Float[Tensor, "batch head token value"]:
    """Split the output of a projection into heads, which are adjacent in most models."""
    return projected.reshape(*projected.shape[:-1], heads, -1).transpose(1, 2)


def last_output(outputs: Any) -> Tensor | None:
    """Return the weights [batch, head, query, key] of a module that returns them last; None if it returns none."""
    weights: Tensor | None = outputs[-1]
    return weights


def same_mask(module: Any, mask: Tensor | None, query: int, key: int) -> Tensor | None:  # noqa: ARG001  # one signature
    """Return the mask that the module was given: additive, or None if every query sees every key."""
    return mask


@dataclass(frozen=True)
class Hooks:
    """Where forward hooks find attention and values in models that bypass the library's attention interface."""

    module: str
    """The class of the attention modules."""

    values: str
    """The value projection in such a module: a layer, or a bare parameter that is applied to the module's input."""

    mask: str = "attention_mask"
    """The argument of the module's forward that hides keys."""

    split: Callable[[Tensor, int], Tensor] = split_heads
    """From the value projection's output and the number of heads to [batch, head, key, value]."""

    weights: Callable[[Any], Tensor | None] = last_output
    """From the module's outputs, with output_attentions=True, to [batch, head, query, key]."""

    visible: Callable[[Any, Tensor | None, int, int], Tensor | None] = same_mask
    """From the module, its mask and the numbers of queries and keys to an additive or boolean (True: visible) mask."""

    editable: bool = False
    """Whether the module first returns what its linear output projection writes, and nothing else: it can be edited."""


@dataclass(frozen=True)
class HeadWeights:
    """Where the weights of the heads are in an attention module, so that heads can be removed."""

    projections: tuple[str, ...]
    """The layers that compute queries, keys and values, whose outputs hold the heads one after the other. One of them
    may compute several of the three, one after the other; those that a module does not have are left out."""

    size: str
    """The attribute that holds the dimension of a head."""

    counts: tuple[str, ...] = ()
    """Attributes that hold the number of heads."""

    widths: tuple[str, ...] = ()
    """Attributes that hold the number of heads times the dimension of a head."""

    group: str | None = None
    """The attribute that holds the number of query heads for each key-value head (GQA)."""

    bias: str | None = None
    """The argument of forward with a bias on the scores, [1, head, query, key], that the first layer computes with
    `compute_bias` and forward returns second, for the next layer."""

    config: tuple[str, str, str] | None = None
    """Entries of the config with the numbers of query heads and of key-value heads, and the dimension of a head, where
    all three can be chosen; where all layers keep equally many heads, `from_pretrained` then reads a pruned model."""

    kinds: tuple[str, ...] = ()
    """The kinds of the family that these facts are for; empty for all."""


class Family(ABC):
    """The facts about one kind of model that capturing needs.

    Attention and values come through the library's attention interface and need no facts. A family says where the
    output projection is and how many positions are unused; for models whose heads can be removed, where their weights
    are; and for models that bypass the interface, where hooks find attention and values.
    """

    kinds: ClassVar[tuple[str, ...]]
    """The `config.model_type` values of this family."""

    projection: ClassVar[str | None]
    """The path from the attention module to its output projection, `..` for the parent; None if it is not known."""

    hooks: ClassVar[Hooks | None] = None
    """How to capture models that bypass the library's attention interface; None for those that use it."""

    sites: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Pairs of a part of a module's name and its site, for models whose names mislead; the first match counts."""

    unused_positions: ClassVar[int] = 0
    """How many of `max_position_embeddings` no token can have (RoBERTa counts from the padding index)."""

    head_weights: ClassVar[HeadWeights | None] = None
    """Where the weights of the heads are; None if heads cannot be removed (`hs.prune`)."""
