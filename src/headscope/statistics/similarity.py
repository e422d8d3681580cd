"""How alike the same head is in two models."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.errors import InputError
from headscope.maps.per_example import PerExample
from headscope.maps.rows import iterate_layers
from headscope.maps.similarity import cosine


@dataclass(frozen=True)
class Similarity(PerExample):
    """The cosine of a head's maps in two models, each laid out as one vector: before and after fine-tuning, say.

    Over the cells that a query sees; with `padded` over all that the maps hold, which differs for lenses that put
    weight on padding (Kovaleva et al., 2019, and Sun & Marasović, 2021, lay out padded maps).
    """

    padded: bool = False

    needs = frozenset({"maps", "against"})
    cites = ("kovaleva2019", "sun2021")

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """One cosine for each head."""
        model, against = batch.focus, batch.maps["against", batch.lens]
        if (model.layers, model.heads) != (against.layers, against.heads):
            raise InputError(
                f"'similarity' compares the same heads of two models, but one has {len(model.layers)} layers × "
                f"{len(model.heads)} heads, the other {len(against.layers)} × {len(against.heads)}. Choose layers and "
                "heads that both have."
            )
        found = [
            cosine(mine, theirs, torch.ones_like(visible) if self.padded else visible)
            for (mine, visible), (theirs, _) in zip(iterate_layers(model), iterate_layers(against), strict=True)
        ]
        return {"similarity": torch.stack(found, dim=1)}
