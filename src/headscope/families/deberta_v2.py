"""DeBERTa-v2 and v3."""

from typing import Any

from torch import Tensor

from headscope.core.family import Family, Hooks


def where_one(module: Any, mask: Tensor | None, query: int, key: int) -> Tensor | None:  # noqa: ARG001  # one signature
    """Its mask is 1 where a query sees a key."""
    return None if mask is None else mask.bool()


class DebertaV2(Family):
    """Content and relative position make the scores apart; the values are plain. Output projection as BERT."""

    kinds = ("deberta-v2",)
    projection = "../output/dense"
    hooks = Hooks("DisentangledSelfAttention", values="value_proj", visible=where_one)
