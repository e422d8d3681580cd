"""The part of attention that the output never sees."""

from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.core.lens import Lens
from headscope.core.maps import Factored, Maps, make_maps
from headscope.core.spec import check_choices, to_spec
from headscope.core.trace import Trace
from headscope.effective.layers import NEEDS, Keys, compute_layers


@dataclass(frozen=True)
class Null(Lens):
    """Attention minus effective attention: what a picture of A shows and the head's output never sees.

    It multiplies V to zero. The `share` that comes with it is its own size over that of A.
    """

    keys: Keys = "visible"

    cites = ("brunner2020", "sun2021")
    quantity = "attention that never reaches the output"

    def __post_init__(self) -> None:
        check_choices(self)

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
        parts: list[Tensor] = []
        tables: list[dict[str, Tensor]] = []
        for attention, found in zip(trace.attention, compute_layers(trace, self.keys), strict=True):
            effective = found.part.weights if isinstance(found.part, Factored) else found.part
            rest = attention.to(effective) - effective
            size, whole = (torch.linalg.vector_norm(each, dim=(-2, -1)) for each in (rest, attention.to(effective)))
            parts.append(rest)
            tables.append({**found.diagnostics, "share": torch.where(whole > 0, size / whole, size)})
        diagnostics = {name: torch.stack([table[name] for table in tables], dim=1) for name in tables[0]}
        return make_maps(trace, parts, to_spec(self), signed=True, diagnostics=diagnostics)
