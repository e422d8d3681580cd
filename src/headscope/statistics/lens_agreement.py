"""How far two lenses agree on a head."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.catalog import lenses
from headscope.core.lens import Lens
from headscope.core.maps import Maps
from headscope.core.spec import to_spec
from headscope.maps.per_example import PerExample
from headscope.maps.rows import iterate_layers
from headscope.maps.similarity import cosine, spearman


def norm_lens() -> Lens:
    """The lens that Sun & Marasović (2021) ask to compare effective attention with."""
    made: Lens = lenses.make("norm")
    return made


@dataclass(frozen=True)
class LensAgreement(PerExample):
    """The cosine of a head's map with its map through the `other` lens, over the cells that a query sees.

    `lens_agreement_rank` is Spearman's rank correlation of the same cells. A lens that merges heads is compared with
    every head of the other.
    """

    other: Lens = field(default_factory=norm_lens)

    cites = ("kobayashi2020", "sun2021")

    def lenses(self, lens: Lens) -> Sequence[Lens]:
        """The other lens."""
        return () if self.other == lens else (self.other,)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[int]]:
        """The heads of the lens that does not merge them."""
        return {"head": max(batch.focus.heads, self._maps(batch).heads, key=len)}

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Both for each map."""
        other, found = self._maps(batch), []
        for (mine, visible), (theirs, _) in zip(iterate_layers(batch.focus), iterate_layers(other), strict=True):
            theirs = mine if other is batch.focus else theirs
            found.append((cosine(mine, theirs, visible), spearman(mine, theirs, visible)))
        angles, ranked = (torch.stack(each, dim=1) for each in zip(*found, strict=True))
        return {"lens_agreement": angles, "lens_agreement_rank": ranked}

    def _maps(self, batch: Batch) -> Maps:
        return batch.maps["model", to_spec(self.other)]
