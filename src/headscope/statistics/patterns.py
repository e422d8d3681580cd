"""The shape of every head's maps: vertical, diagonal, both, block or heterogeneous."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.example import Example
from headscope.core.maps import Maps
from headscope.core.state import Moments, State
from headscope.core.tokens import Tokens
from headscope.maps.per_example import PerExample
from headscope.maps.rows import absolute_weights, iterate_layers
from headscope.patterns import shares
from headscope.patterns.classify.classify import check, classify, patterns

if TYPE_CHECKING:
    import xarray as xr


def classes_of(
    weights: Float[Tensor, "batch head token token"],
    real: Tensor,
    segments: Tensor,
    classifier: str,
) -> Float[Tensor, "batch head pattern"]:
    """1 for the likeliest class of each map, 0 for the others; NaN where a map has none."""
    batch, heads, wide, _ = weights.shape
    there, text = (each[:, None].expand(-1, heads, -1).reshape(-1, wide) for each in (real, segments))
    likely = classify(weights.reshape(-1, wide, wide), there, text, classifier)
    best = likely.argmax(-1, keepdim=True) == torch.arange(likely.shape[-1], device=likely.device)
    chosen = best.to(likely).masked_fill(likely.isnan(), torch.nan)
    return chosen.view(batch, heads, -1)


@dataclass(frozen=True)
class Patterns(PerExample):
    """The share of examples in which a head's map is vertical, diagonal, both, block or heterogeneous.

    Judged on |w| over real tokens (Kovaleva et al., 2019), by "cnn", "rules", "both", or a .safetensors file of
    `headscope patterns train`; "both" counts maps on which the first two differ as a class of their own, `unsure`.
    Cross attention and maps of fewer than four tokens have no such shape: they are NaN. Labels and training are of
    encoders' maps; what the classes mean for causal ones is for the reader to judge.

    `patterns_share`, and `patterns_layer_share` for each layer, are shares over heads with the classifier's own errors
    taken out. Their intervals hold these errors and the examples, as if all heads erred together.
    """

    classifier: str = "cnn"

    cites = ("kovaleva2019",)
    quantities: ClassVar = {
        "patterns": "share of examples",
        "patterns_share": "share of maps",
        "patterns_layer_share": "share of maps",
    }

    def __post_init__(self) -> None:
        check(self.classifier)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        """The classes."""
        return {"pattern": patterns(self.classifier)}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Which keys are real, and of which text of a pair."""
        return keys.real.cpu(), keys.segment.cpu()

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """One class for every map."""
        maps, (real, segments) = batch.focus, self.known(batch)
        if not _square(maps):
            return {"patterns": self._nothing(maps)}
        found = [
            classes_of(absolute_weights(weights, visible), real, segments, self.classifier)
            for weights, visible in iterate_layers(maps)
        ]
        return {"patterns": torch.stack(found, dim=1)}

    def finish(self, state: State) -> "xr.Dataset":
        """The share of examples by layer, head and class; and over heads, with the classifier's errors taken out."""
        found = super().finish(state)
        moments = state.leaves["patterns"]
        assert isinstance(moments, Moments)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(moments.n > 0, moments.mean, np.nan)
            variance = np.where(moments.n > 1, moments.square / (moments.n - 1) / moments.n, np.nan)
        layer = shares.pooled(mean, variance)
        whole = shares.pooled(mean.reshape(-1, mean.shape[-1]), variance.reshape(-1, mean.shape[-1]))
        counted, error = (np.concatenate([one, other[None]]) for one, other in zip(layer, whole, strict=True))
        ends = shares.corrected(counted, error, shares.errors_of(self.classifier))
        for ending, each in zip(("", "_low", "_high"), ends, strict=True):
            named = shares.named(each, self.classifier)
            found[f"patterns_layer_share{ending}"] = (("layer", "pattern"), named[:-1])
            found[f"patterns_share{ending}"] = (("pattern",), named[-1])
        for name in ("patterns_layer_share", "patterns_share"):
            found[name].attrs["long_name"] = self.quantities[name]
        return found

    def _nothing(self, maps: Maps) -> Tensor:
        shape = (len(maps.examples), len(maps.layers), len(maps.heads), len(patterns(self.classifier)))
        return torch.full(shape, torch.nan, device=maps.visible[0].device)


def _square(maps: Maps) -> bool:
    """Whether queries and keys are the same tokens."""
    return maps.site != "cross" and maps.queries.real.shape == maps.keys.real.shape
