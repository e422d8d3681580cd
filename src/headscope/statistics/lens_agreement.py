"""Agreement of a head's maps through two lenses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.catalog import lenses
from headscope.core.lens import Lens
from headscope.core.maps import Maps
from headscope.core.spec import to_spec
from headscope.maps.per_example import PerExample
from headscope.maps.rows import iterate_layers
from headscope.maps.similarity import cosine_similarity, rank_correlation


@dataclass(frozen=True)
class LensAgreement(PerExample):
    """Cosine similarity of a head's map with its map through the `other` lens, over the visible cells.

    `lens_agreement_rank` is Spearman's rank correlation of the same cells. If one lens merges heads, its map is
    compared with every head of the other.
    """

    other: Lens = field(default_factory=lambda: lenses.make("norm"))  # as Sun & Marasović (2021) propose

    scope = "layer"
    cites = ("kobayashi2020", "sun2021")
    quantities: ClassVar = {
        "lens_agreement": "agreement of lenses",
        "lens_agreement_rank": "rank agreement of lenses",
    }

    def lenses(self, lens: Lens) -> Sequence[Lens]:
        """Return the other lens."""
        return () if self.other == lens else (self.other,)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[int]]:
        """Return the heads of the lens that does not merge them."""
        return {"head": max(batch.focus.heads, self._maps(batch).heads, key=len)}

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the cosine similarity and the rank correlation of each map."""
        other = self._maps(batch)
        cosines, ranks = [], []
        for (left, visible), (right, _) in zip(iterate_layers(batch.focus), iterate_layers(other), strict=True):
            right = left if other is batch.focus else right
            cosines.append(cosine_similarity(left, right, visible))
            ranks.append(rank_correlation(left, right, visible))
        return {"lens_agreement": torch.stack(cosines, dim=1), "lens_agreement_rank": torch.stack(ranks, dim=1)}

    def _maps(self, batch: Batch) -> Maps:
        return batch.maps["model", to_spec(self.other)]
