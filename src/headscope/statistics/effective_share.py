"""How much of a head's attention reaches its output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.catalog import lenses
from headscope.core.lens import Lens
from headscope.core.maps import Maps
from headscope.core.spec import parse_spec, to_spec
from headscope.maps.per_example import PerExample


def effective_for(lens: str) -> Lens:
    """The effective lens that goes with a lens: itself, or that with the same keys as the null lens, or the default."""
    name, parameters = parse_spec(lens)
    found: Lens = lenses.make("effective", **(parameters if name in ("effective", "null") else {}))
    return found


@dataclass(frozen=True)
class EffectiveShare(PerExample):
    """‖A_eff‖ / ‖A‖ of every head, whichever lens is measured: 1 is a head all of whose attention counts."""

    cites = ("brunner2020", "sun2021")

    def lenses(self, lens: Lens) -> Sequence[Lens]:
        """The effective lens, where that is not the one that is measured."""
        wanted = effective_for(to_spec(lens))
        return () if wanted == lens else (wanted,)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[int]]:
        """The heads that the effective lens has, for the one that is measured may merge them."""
        return {"head": self._maps(batch).heads}

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """One share for each map, as the effective lens reports it."""
        return {"effective_share": self._maps(batch).diagnostics["share"]}

    def _maps(self, batch: Batch) -> Maps:
        return batch.maps["model", to_spec(effective_for(batch.lens))]
