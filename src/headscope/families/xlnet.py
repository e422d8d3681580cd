"""XLNet."""

from typing import Any

from torch import Tensor

from headscope.core.family import Family, Hooks


def heads_first(projected: Tensor, heads: int) -> Tensor:  # noqa: ARG001  # heads are an axis of the parameter
    """Permute from [key, batch, head, value]."""
    return projected.permute(1, 2, 0, 3)


def content_stream(outputs: Any) -> Tensor | None:
    """Permute from [query, key, batch, head]; of two streams (`target_mapping`) take the content stream, the first."""
    if len(outputs) < 3:
        return None
    weights: Tensor = outputs[2][0] if isinstance(outputs[2], tuple) else outputs[2]
    return weights.permute(2, 3, 0, 1)


def invert_mask(module: Any, mask: Tensor | None, query: int, key: int) -> Tensor | None:  # noqa: ARG001  # one signature
    """Permute from [query, key, batch, head] and invert: the mask is 1 where a key is hidden."""
    return None if mask is None else mask.permute(2, 3, 0, 1) == 0


class Xlnet(Family):
    """The token axis is before the batch axis, and projections are bare parameters."""

    kinds = ("xlnet",)
    projection = "o"
    hooks = Hooks(
        "XLNetRelativeAttention",
        values="v",
        mask="attn_mask_h",
        split=heads_first,
        weights=content_stream,
        visible=invert_mask,
    )
