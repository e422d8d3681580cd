"""Share of a head's attention that affects its output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.catalog import lenses
from headscope.core.lens import Lens
from headscope.core.maps import Maps
from headscope.core.spec import parse_spec, to_spec
from headscope.maps.row_wise import RowWise
from headscope.maps.rows import Sums, iterate_layers


def effective_for(lens: str) -> Lens:
    """Return the effective lens with the `keys` of an effective or null lens; the default one for any other lens."""
    name, parameters = parse_spec(lens)
    lens_object: Lens = lenses.make("effective", **(parameters if name in ("effective", "null") else {}))
    return lens_object


@dataclass(frozen=True)
class EffectiveShare(RowWise):
    """‖A_eff‖ / ‖A‖ of every head, whichever lens is measured; 1 where effective and raw attention are equal."""

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

    def sums(self, batch: Batch) -> Mapping[str, Sums]:
        """Return ‖A_eff‖² and ‖A‖² of some rows, whose raw maps a batch has; the same number where nothing is lost."""
        raw = batch.maps["model", to_spec(lenses.make("raw"))]
        norms = [torch.linalg.vector_norm(weights, dim=-1) for weights, _ in iterate_layers(raw)]
        total = torch.stack([rows.double().square().sum(-1) for rows in norms], dim=1)  # batch layer head
        return {"effective_share": Sums(self.values(batch)["effective_share"].double().square() * total, total)}

    def finish_sums(self, sums: Mapping[str, Sums], batch: Batch) -> Mapping[str, Tensor]:  # noqa: ARG002
        """Return the share of each map; 0 where there is no attention."""
        return {
            name: (entry.total / entry.count.masked_fill(entry.count == 0, 1)).sqrt() for name, entry in sums.items()
        }

    def _maps(self, batch: Batch) -> Maps:
        return batch.maps["model", to_spec(effective_for(batch.lens))]
