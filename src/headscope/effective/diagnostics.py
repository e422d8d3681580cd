"""Diagnostics of effective attention: what must be known to trust it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from headscope.core.maps import LazyTensors
from headscope.core.maps.factored import Factored
from headscope.core.trace import at_least_float32


@dataclass(frozen=True)
class EffectiveLayer:
    """Effective attention of a layer, and its diagnostics by name."""

    maps: Tensor | Factored
    diagnostics: Mapping[str, Tensor]  # batch head

    @property
    def weights(self) -> Tensor:
        """The whole maps."""
        return self.maps.weights if isinstance(self.maps, Factored) else self.maps


def describe(
    count: Tensor, rank: Tensor, residual: Callable[[], Tensor], share: Callable[[], Tensor]
) -> Mapping[str, Tensor]:
    """Return the diagnostics under the names that users see; costly ones are computed on first access."""
    return LazyTensors(
        {"n": lambda: count, "rank": lambda: rank, "share": share, "null": lambda: count - rank, "residual": residual}
    )


def stack_diagnostics(layers: Sequence[EffectiveLayer]) -> Mapping[str, Tensor]:
    """Return the diagnostics of all layers, `batch layer head`."""

    def stack(name: str) -> Tensor:
        return torch.stack([layer.diagnostics[name] for layer in layers], dim=1)

    return LazyTensors({name: partial(stack, name) for name in layers[0].diagnostics})


def factored_residual(left: Tensor, right: Tensor, values: Tensor, target: Tensor) -> Tensor:
    """Return ‖B·Qᵀ·V − A·V‖ / ‖A·V‖ from the factors, which costs far less than from the maps."""
    change = (left @ (right.mT @ values)).sub_(target)
    return divide(frobenius_norm(change), frobenius_norm(target))


def dense_residual(effective: Tensor, values: Tensor, attention: Tensor) -> Tensor:
    """Return ‖A_eff·V − A·V‖ / ‖A·V‖."""
    values = at_least_float32(values)
    target = at_least_float32(attention) @ values
    return divide(frobenius_norm(effective @ values - target), frobenius_norm(target))


def frobenius_norm(matrix: Tensor) -> Tensor:
    """Return the norm over the last two axes, row by row first: rows are contiguous, matrices may not be."""
    norm: Tensor = torch.linalg.vector_norm(torch.linalg.vector_norm(at_least_float32(matrix), dim=-1), dim=-1)
    return norm


def divide(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Return numerator / denominator, and the numerator where the denominator is 0."""
    return torch.where(denominator > 0, numerator / denominator, numerator)


def effective_share(norm_of: Tensor, attention: Tensor, count: Tensor, rank: Tensor) -> Tensor:
    """Return ‖A_eff‖ / ‖A‖ from a tensor of the norm of A_eff; exactly 1 where every visible key counts."""
    return torch.where(rank == count, 1.0, divide(frobenius_norm(norm_of), frobenius_norm(attention)))
