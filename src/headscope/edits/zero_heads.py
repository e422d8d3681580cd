"""Heads without an output."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.edit import HeadEdit, LayerHeads


@dataclass(frozen=True)
class ZeroHeads(HeadEdit):
    """The chosen heads write nothing: zero ablation (Michel et al., 2019).

    The same as removing their part of the output projection's weight; its bias stays.
    """

    cites = ("michel2019",)

    @property
    def breaks(self) -> frozenset[str]:
        """A model without some heads computes something else."""
        return frozenset({"output"})

    def write(self, heads: LayerHeads, selected: list[int]) -> Float[Tensor, "batch selected query value"]:
        """Return zeros."""
        return torch.zeros_like(heads.context[:, selected])
