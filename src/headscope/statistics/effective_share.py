"""Share of a head's attention that affects its output."""

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
    """Return the effective lens with the `keys` of an effective or null lens; the default one for any other lens."""
    name, parameters = parse_spec(lens)
    lens_object: Lens = lenses.make("effective", **(parameters if name in ("effective", "null") else {}))
    return lens_object


@dataclass(frozen=True)
class EffectiveShare(PerExample):
    """‖A_eff‖ / ‖A‖ of every head, whichever lens is measured; 1 where effective and raw attention are equal."""

    scope = "layer"
    cites = ("brunner2020", "sun2021")

    def lenses(self, lens: Lens) -> Sequence[Lens]:
        """Return the effective lens, unless it is the measured lens."""
        wanted = effective_for(to_spec(lens))
        return () if wanted == lens else (wanted,)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[int]]:
        """Return the heads of the effective lens; the measured lens may merge heads."""
        return {"head": self._maps(batch).heads}

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the share of each map, a diagnostic of the effective lens."""
        return {"effective_share": self._maps(batch).diagnostics["share"]}

    def _maps(self, batch: Batch) -> Maps:
        return batch.maps["model", to_spec(effective_for(batch.lens))]
