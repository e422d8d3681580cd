"""What must be known to trust a layer's effective attention."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from headscope.core.maps import Factored
from headscope.effective.lazily import Lazily


@dataclass(frozen=True)
class EffectiveLayer:
    """The effective attention of a layer, and its diagnostics by name."""

    part: Tensor | Factored
    diagnostics: Mapping[str, Tensor]  # batch head


def diagnostics(
    count: Tensor, rank: Tensor, residual: Callable[[], Tensor], share: Callable[[], Tensor]
) -> Mapping[str, Tensor]:
    """The five of them, under the names that users see; what costs something, when it is asked for."""
    ready = {"n": count, "rank": rank}
    made: dict[str, Callable[[], Tensor]] = {name: partial(_same, each) for name, each in ready.items()}
    return Lazily({**made, "share": share, "null": lambda: count - rank, "residual": residual})


def stacked(layers: Sequence[EffectiveLayer]) -> Mapping[str, Tensor]:
    """The diagnostics of all layers, batch layer head."""

    def stack(name: str) -> Tensor:
        return torch.stack([each.diagnostics[name] for each in layers], dim=1)

    return Lazily({name: partial(stack, name) for name in layers[0].diagnostics})


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


def share_of(part: Tensor, whole: Tensor, count: Tensor, rank: Tensor) -> Tensor:
    """‖A_eff‖ / ‖A‖ from both sizes: exactly 1 where all that is seen counts."""
    return torch.where(rank == count, 1.0, ratio(part, whole))


def _same(tensor: Tensor) -> Tensor:
    return tensor
