"""Similarity of the same head in two models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.errors import InputError
from headscope.core.prose import count_noun
from headscope.maps.per_example import PerExample
from headscope.maps.rows import iterate_layers
from headscope.maps.similarity import cosine_similarity


@dataclass(frozen=True)
class Similarity(PerExample):
    """Cosine similarity of a head's flattened maps in two models, such as before and after fine-tuning.

    It covers the visible cells; with `padded`, all cells. The two differ for lenses that put weight on padding
    (Kovaleva et al., 2019, and Sun & Marasović, 2021, use padded maps).
    """

    padded: bool = False

    needs = frozenset({"maps", "against"})
    scope = "layer"
    cites = ("kovaleva2019", "sun2021")
    quantities: ClassVar = {"similarity": "similarity of maps"}

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the cosine similarity of each head."""
        model, against = batch.focus, batch.maps["against", batch.lens]
        if (model.layers, model.heads) != (against.layers, against.heads):
            raise InputError(
                f"'similarity' compares the same heads of two models, but one has "
                f"{count_noun(len(model.layers), 'layer')} × {count_noun(len(model.heads), 'head')}, the other "
                f"{len(against.layers)} × {len(against.heads)}. Choose layers and heads that both have."
            )
        layers = zip(iterate_layers(model), iterate_layers(against), strict=True)
        cosines = [
            cosine_similarity(left, right, torch.ones_like(visible) if self.padded else visible)
            for (left, visible), (right, _) in layers
        ]
        return {"similarity": torch.stack(cosines, dim=1)}
