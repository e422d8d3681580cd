"""What must be known to trust a layer's effective attention."""

from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.core.maps import Factored


@dataclass(frozen=True)
class EffectiveLayer:
    """The effective attention of a layer, and its diagnostics by name."""

    part: Tensor | Factored
    diagnostics: dict[str, Tensor]  # batch head


def diagnostics(count: Tensor, rank: Tensor, residual: Tensor, share: Tensor) -> dict[str, Tensor]:
    """The five of them, under the names that users see."""
    return {"n": count, "rank": rank, "null": count - rank, "residual": residual, "share": share}


def residual_of(left: Tensor, right: Tensor, values: Tensor, target: Tensor) -> Tensor:
    """‖B·Qᵀ·V − A·V‖ / ‖A·V‖, from the thin factors, which is far cheaper than from the maps."""
    change = (left @ (right.mT @ values)).sub_(target)
    return ratio(size(change), size(target))


def size(matrix: Tensor) -> Tensor:
    """The Frobenius norm, row by row first: rows lie together in memory, whole matrices may not."""
    found: Tensor = torch.linalg.vector_norm(torch.linalg.vector_norm(matrix, dim=-1), dim=-1)
    return found


def ratio(part: Tensor, whole: Tensor) -> Tensor:
    """part / whole, where nothing out of nothing is nothing."""
    return torch.where(whole > 0, part / whole, part)


def widened(tensor: Tensor) -> Tensor:
    """At least float32: half precision is for storing weights, not for projecting them."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()
