"""What headscope must know about one kind of model."""

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar


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
    """The facts about one kind of model that its code does not show while it runs.

    Capturing needs none. A family says how many positions are unused, and for models whose heads can be removed where
    the weights of the heads are.
    """

    kinds: ClassVar[tuple[str, ...]]
    """The `config.model_type` values of this family."""

    projection: ClassVar[str | None] = None
    """The path from the attention module to its output projection, `..` for the parent; None to find it by data flow.
    To remove heads it must be known before the model runs."""

    sites: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Pairs of a part of a module's name and its site, for models whose names mislead; the first match counts."""

    unused_positions: ClassVar[int] = 0
    """How many of `max_position_embeddings` no token can have (RoBERTa counts from the padding index)."""

    head_weights: ClassVar[HeadWeights | None] = None
    """Where the weights of the heads are; None if heads cannot be removed (`hs.prune`)."""
