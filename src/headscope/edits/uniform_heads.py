"""Uniform attention in place of attention."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from headscope.core.edit import HeadEdit, LayerHeads
from headscope.core.trace import Visible


@dataclass(frozen=True)
class UniformHeads(HeadEdit):
    """The chosen heads attend to all visible keys alike, which disables them (Kovaleva et al., 2019).

    Each query gives 1/n to each of the n keys that it sees: the real tokens, and in a decoder those so far.
    """

    cites = ("kovaleva2019",)

    @property
    def breaks(self) -> frozenset[str]:
        """The model computes something else."""
        return frozenset({"output"})

    def write(self, heads: LayerHeads, selected: list[int]) -> Float[Tensor, "batch selected query value"]:
        """Return the mean of the visible values."""
        values = heads.values[:, selected]
        return uniform_attention(heads.visible).to(values.dtype)[:, None] @ values


def uniform_attention(visible: Visible) -> Float[Tensor, "batch query key"]:
    """Return the same weight for each key that a query sees; 0 for the others, and where it sees none."""
    return visible / visible.sum(-1, keepdim=True).clamp(min=1)
