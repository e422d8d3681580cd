"""XLNet."""

from typing import Any

from torch import Tensor

from headscope.core.family import Family, Hooks


def heads_first(projected: Tensor, heads: int) -> Tensor:  # noqa: ARG001  # the parameter has the heads already
    """From key batch head value."""
    return projected.permute(1, 2, 0, 3)


def content_stream(returned: Any) -> Tensor | None:
    """From query key batch head; with two streams (`target_mapping`) the content stream, which comes first."""
    if len(returned) < 3:
        return None
    weights: Tensor = returned[2][0] if isinstance(returned[2], tuple) else returned[2]
    return weights.permute(2, 3, 0, 1)


def where_zero(module: Any, mask: Tensor | None, query: int, key: int) -> Tensor | None:  # noqa: ARG001  # one signature
    """Its mask is query key batch head, and 1 where a key is hidden."""
    return None if mask is None else mask.permute(2, 3, 0, 1) == 0


class Xlnet(Family):
    """Time stands before the batch, and projections are bare parameters."""

    kinds = ("xlnet",)
    projection = "o"
    hooks = Hooks(
        "XLNetRelativeAttention",
        values="v",
        mask="attn_mask_h",
        split=heads_first,
        weights=content_stream,
        visible=where_zero,
    )
