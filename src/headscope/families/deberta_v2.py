"""DeBERTa-v2 and v3."""

from typing import Any

from torch import Tensor

from headscope.core.family import Family, Hooks


def to_bool(module: Any, mask: Tensor | None, query: int, key: int) -> Tensor | None:  # noqa: ARG001  # one signature
    """Return the mask, which is 1 where a query sees a key, as booleans."""
    return None if mask is None else mask.bool()


class DebertaV2(Family):
    """Scores are sums over content and relative position; values and output projection are as in BERT."""

    kinds = ("deberta-v2",)
    projection = "../output/dense"
    hooks = Hooks("DisentangledSelfAttention", values="value_proj", visible=to_bool)
