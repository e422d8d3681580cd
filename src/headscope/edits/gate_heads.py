"""Gates on heads."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from headscope.core.edit import HeadEdit, LayerHeads, SiteTensors
from headscope.core.errors import InputError


@dataclass(frozen=True)
class GateHeads(HeadEdit):
    """What the chosen heads write is multiplied by a gate, through which gradients flow (Michel et al., 2019).

    `gate` is a number for all of them, or a tensor `layer head`, or `batch layer head` with gates for each example; a
    model with several sites takes a dictionary of tensors by site. A tensor has an entry for each head of the site,
    also for heads that are not chosen, and a row for each layer up to the last, also for layers without attention.
    """

    gate: float | int | Tensor | Mapping[str, Tensor] | SiteTensors = 1.0

    cites = ("michel2019",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.gate, float | int):
            if not math.isfinite(self.gate):
                raise InputError(f"gate must be a finite number, but got {self.gate}.")
            return
        gates = self.gate if isinstance(self.gate, SiteTensors) else SiteTensors.from_argument(self.gate, "gate")
        for gate in gates.tensors.values():
            if gate.ndim not in (2, 3):
                raise InputError(
                    "gate must be a number or a tensor of shape [layer, head] or [batch, layer, head], but got one of "
                    f"shape {list(gate.shape)}."
                )
        object.__setattr__(self, "gate", gates)

    @property
    def breaks(self) -> frozenset[str]:
        """A gate of 1 changes nothing, and gates for each example are for one batch."""
        if not isinstance(self.gate, SiteTensors):
            return frozenset({"output"} if self.gate != 1 else ())
        return frozenset(
            {"output", "batch"} if any(gate.ndim == 3 for gate in self.gate.tensors.values()) else {"output"}
        )

    def check_sites(self, sites: Sequence[str]) -> None:
        """Raise InputError for sites that the model does not have or that have no gates."""
        selected = self.selection.find_sites(sites)
        if isinstance(self.gate, SiteTensors):
            self.gate.check_sites(selected, "gate")

    def check_heads(self, heads: Mapping[str, Mapping[int, int]]) -> None:
        """Raise InputError for heads that the model does not have, and for gates of layers that it does not have."""
        super().check_heads(heads)
        if isinstance(self.gate, SiteTensors):
            for site in self.selection.find_sites(list(heads)):
                if (layers := self.gate.find(site).shape[-2]) != (needed := max(heads[site]) + 1):
                    raise InputError(f"gate has {layers} layers, but '{site}' has {needed}.")

    def write(self, heads: LayerHeads, selected: list[int]) -> Float[Tensor, "batch selected query value"]:
        """Return the product of gate and context."""
        context = heads.context[:, selected]
        if isinstance(self.gate, float | int):
            return context * self.gate
        assert isinstance(self.gate, SiteTensors)
        gate = self.gate.find(heads.site)
        batch, count = heads.context.shape[:2]
        if gate.shape[-1] != count or gate.shape[-2] <= heads.layer or (gate.ndim == 3 and len(gate) != batch):
            raise InputError(
                f"gate has the shape {list(gate.shape)}, but layer {heads.layer} of '{heads.site}' has {count} heads, "
                f"and the batch {batch} examples. Its axes are [layer, head] or [batch, layer, head]."
            )
        return context * gate[..., heads.layer, :][..., selected][..., None, None].to(context.device)
