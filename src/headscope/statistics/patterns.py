"""The pattern class of every head's maps: vertical, diagonal, both, block or heterogeneous."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.estimate import name_ends
from headscope.core.example import Example
from headscope.core.state import Array, State
from headscope.core.tokens import Tokens
from headscope.maps.per_example import PerExample
from headscope.maps.rows import absolute_weights, iterate_layers
from headscope.patterns import shares
from headscope.patterns.classify.classify import check_classifier, class_names, classifier_files, classify

if TYPE_CHECKING:
    import xarray as xr


def predict_classes(
    weights: Float[Tensor, "batch head token token"],
    real: Tensor,
    segments: Tensor,
    classifier: str,
) -> Float[Tensor, "batch head pattern"]:
    """Return 1 for the most probable class of each map and 0 for the others; NaN where a map has no class."""
    batch, heads, width, _ = weights.shape
    real, segments = (tokens[:, None].expand(-1, heads, -1).reshape(-1, width) for tokens in (real, segments))
    probabilities = classify(weights.reshape(-1, width, width), real, segments, classifier)
    index = torch.arange(probabilities.shape[-1], device=probabilities.device)
    one_hot = (probabilities.argmax(-1, keepdim=True) == index).to(probabilities)
    return one_hot.masked_fill(probabilities.isnan(), torch.nan).view(batch, heads, -1)


@dataclass(frozen=True)
class Patterns(PerExample):
    """The share of examples in which a head's map is vertical, diagonal, both, block or heterogeneous.

    Maps are classified by |w| over real tokens (Kovaleva et al., 2019). The classifier is "cnn", "rules", "both", or a
    .safetensors file of `headscope patterns train`; "both" has a further class, `unsure`, for maps on which the first
    two disagree. Cross attention and maps of fewer than four tokens have no class: they are NaN. All labeled maps are
    of encoders; the classes were not defined for causal attention.

    `patterns_share`, and `patterns_layer_share` for each layer, are shares over heads, corrected for the errors of the
    classifier on labeled maps of the same lens; for a lens of which none was labeled, on those of all lenses. Their
    intervals cover the heads, the labeled maps, and the examples as if heads correlated fully.
    """

    classifier: str = "cnn"

    scope = "layer"
    cites = ("kovaleva2019",)
    quantities: ClassVar = {
        "patterns": "share of examples",
        "patterns_share": "share of maps",
        "patterns_layer_share": "share of maps",
    }

    def __post_init__(self) -> None:
        check_classifier(self.classifier)

    def files(self) -> Mapping[str, Path]:
        """Return the file of the classifier's networks."""
        return classifier_files(self.classifier)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        """Return the classes."""
        return {"pattern": class_names(self.classifier)}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return which keys are real, and the text of a pair that each belongs to."""
        return keys.real.cpu(), keys.segment.cpu()

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the class of every map, one-hot."""
        maps, (real, segments) = batch.focus, self.token_tables(batch)
        if maps.site.endswith("cross") or maps.queries.real.shape != maps.keys.real.shape:
            shape = (len(maps.examples), len(maps.layers), len(maps.heads), len(class_names(self.classifier)))
            return {"patterns": torch.full(shape, torch.nan, device=maps.visible[0].device)}
        layers = [
            predict_classes(absolute_weights(weights, visible), real, segments, self.classifier)
            for weights, visible in iterate_layers(maps)
        ]
        return {"patterns": torch.stack(layers, dim=1)}

    def finish(self, state: State) -> "xr.Dataset":
        """Return the share of examples by layer, head and class, and the corrected shares over heads."""
        data = super().finish(state)
        variance = data["patterns_sd"].values ** 2 / data["patterns_n"].values
        for name, values in share_heads(data["patterns"].values, variance, state.lens, self.classifier).items():
            data[name] = (("layer", "pattern")[-values.ndim :], values)
        for name in ("patterns_layer_share", "patterns_share"):
            data[name].attrs["long_name"] = self.quantities[name]
        return data


def share_heads(
    mean: Array,  # layer head prediction
    variance: Array,  # of the mean
    lens: str,
    classifier: str,
) -> dict[str, Array]:
    """Return the corrected shares over the heads of each layer and over all heads, with their intervals."""
    errors, classes = shares.read_errors(classifier), mean.shape[-1]
    groups = [*zip(mean, variance, strict=True), (mean.reshape(-1, classes), variance.reshape(-1, classes))]
    corrected = [_correct(*group, lens, errors) for group in groups]
    tables = [shares.append_unsure(np.stack(ends), classifier) for ends in zip(*corrected, strict=True)]
    by_layer = name_ends("patterns_layer_share", (table[:-1] for table in tables))
    return by_layer | name_ends("patterns_share", (table[-1] for table in tables))


def _correct(
    mean: Array,  # head prediction
    variance: Array,  # of the mean
    lens: str,
    errors: shares.Errors,
) -> tuple[Array, Array, Array]:
    """Return the corrected shares over heads and their interval; the errors of heads add as if fully correlated."""
    finite = np.isfinite(mean)
    error = np.where(finite, np.sqrt(variance), 0).sum(0) / np.maximum(finite.sum(0), 1)
    corrected = shares.correct_shares(mean[:, None], np.diag(error**2)[None, :, None], [lens], errors)
    return corrected.share[0], *(end[0] for end in corrected.interval())
