"""The part of attention that the output never sees."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.core.lens import Lens
from headscope.core.maps import Maps, make_maps
from headscope.core.trace import Trace
from headscope.effective.diagnostics import EffectiveLayer, divide, frobenius_norm
from headscope.effective.layers import NEEDS, Keys, LayerBlocks, compute_layers


@dataclass(frozen=True)
class Null(Lens):
    """Attention minus effective attention: what a picture of A shows and the head's output never sees.

    It multiplies V to zero. The `share` that comes with it is its own size over that of A.
    """

    keys: Keys = "visible"

    scope = "layer"
    row_wise = True
    cites = ("brunner2020", "sun2021")
    quantity = "attention that never reaches the output"

    @property
    def needs(self) -> frozenset[str]:
        """The values too, and those of padding where padding takes part."""
        return NEEDS[self.keys]

    @property
    def breaks(self) -> frozenset[str]:
        """The laws that taking padding for keys breaks."""
        return frozenset() if self.keys == "visible" else frozenset({"padding", "visibility", "batch"})

    def __call__(self, trace: Trace) -> Maps:
        """What effective attention leaves over, layer by layer."""
        return self._subtract(trace, compute_layers(trace, self.keys))

    def start_rows(self, layer: Trace) -> Callable[[Trace], Maps]:
        """Return the lens for some queries at a time; all share the bases of the values."""
        project = LayerBlocks(layer, self.keys)
        return lambda block: self._subtract(block, [project(block)])

    def _subtract(self, trace: Trace, layers: Iterable[EffectiveLayer]) -> Maps:
        remainders: list[Tensor] = []
        tables: list[dict[str, Tensor]] = []
        for attention, layer in zip(trace.attention, layers, strict=True):
            effective = layer.weights
            raw = attention.to(effective)
            remainders.append(raw - effective)
            share = divide(frobenius_norm(remainders[-1]), frobenius_norm(raw))
            tables.append({**layer.diagnostics, "share": share})
        diagnostics = {name: torch.stack([table[name] for table in tables], dim=1) for name in tables[0]}
        return make_maps(trace, remainders, self, signed=True, diagnostics=diagnostics)
