"""The output of heads on other examples."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.core.edit import HeadEdit, LayerHeads
from headscope.core.errors import InputError


@dataclass(frozen=True)
class ResampleHeads(HeadEdit):
    """The chosen heads write what they wrote for another example of the batch: resampling ablation.

    `seed` decides which; it is never the example itself, and the same for all layers and heads. The first token gets
    the output for the other example's first token, and so on; where the other example is shorter, it starts again.
    """

    seed: int = 0

    cites = ("chan2022",)

    @property
    def breaks(self) -> frozenset[str]:
        """The model computes something else, which depends on the other examples of the batch."""
        return frozenset({"output", "batch"})

    def write(self, heads: LayerHeads, selected: list[int]) -> Float[Tensor, "batch selected query value"]:
        """Return the context of other examples."""
        batch = len(heads.context)
        if batch < 2:
            raise InputError(
                "resample_heads takes the output for another example of the batch, but this batch has only one. Run "
                "at least two together; with a batch size that leaves a single example for the last batch, change it."
            )
        donors = choose_donors(batch, self.seed).to(heads.context.device)
        context = heads.context[donors][:, selected]
        rows = align_rows(heads.real, donors)[:, None, :, None]
        return context.gather(2, rows.expand(context.shape))


def choose_donors(batch: int, seed: int) -> Int[Tensor, " batch"]:
    """Return another example for each: the next one on a random round through all."""
    order = torch.randperm(batch, generator=torch.Generator().manual_seed(seed))
    donors = torch.empty_like(order)
    donors[order] = order.roll(1)
    return donors


def align_rows(real: Bool[Tensor, "batch query"], donors: Int[Tensor, " batch"]) -> Int[Tensor, "batch query"]:
    """Return for the n-th real query of an example the row of its donor's n-th, counting on from the first again."""
    rank = (real.cumsum(-1) - 1).clamp(min=0)
    rows = (~real).to(torch.uint8).sort(dim=-1, stable=True).indices  # those of real queries first
    count = real.sum(-1, keepdim=True).clamp(min=1)
    return rows[donors].gather(1, rank % count[donors])
