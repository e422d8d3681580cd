"""Effective attention in place of attention."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.edit import Edit, LayerHeads, check_layers
from headscope.core.spec import check_choices
from headscope.effective.layers import Keys
from headscope.effective.output import compute_output


@dataclass(frozen=True)
class EffectiveAttention(Edit):
    """Each head writes A_eff·V instead of A·V (Brunner et al., 2020).

    With `keys="visible"` and `keys="padded"` that is the same to rounding, which shows that the rest of A never
    mattered. With `keys="paper"`, the code of Sun & Marasović (2021), it is not, and the model computes something else.
    After another edit, which may have changed what heads write, the difference A_eff·V - A·V is added to that.
    """

    keys: Keys = "visible"
    layers: tuple[int, ...] | None = None

    cites = ("brunner2020", "sun2021")

    def __post_init__(self) -> None:
        check_choices(self)
        check_layers(self.layers)

    @property
    def breaks(self) -> frozenset[str]:
        """The published code changes the output, by padding and by one rank for a batch."""
        return frozenset({"output", "padding", "batch"} if self.keys == "paper" else ())

    def __call__(self, heads: LayerHeads) -> Float[Tensor, "batch head query value"]:
        """A_eff·V, from A and V alone, or what an edit before wrote and the difference that A_eff makes."""
        exact = self.keys != "paper"
        graded = torch.is_grad_enabled()
        with torch.set_grad_enabled(graded and not exact):
            written = compute_output(heads, self.keys).to(heads.context.dtype)
        if heads.product is not None:
            difference = written - heads.product
            return heads.context + (difference.detach() if exact else difference)
        if not (exact and graded):
            return written
        same = heads.attention @ heads.values
        return same + (written - same).detach()  # A_eff·V is A·V for every A and V, and so is its gradient
