"""Relevance of the input tokens for a prediction, followed through attention and its gradients."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.catalog import lenses
from headscope.core.lens import Lens
from headscope.core.maps import Graph, Maps, make_maps
from headscope.core.trace import Trace, at_least_float32
from headscope.flow.graph import ThroughLayers, check_all_tokens_are_there, require_square, select_from
from headscope.flow.rollout import find_reachable


def mean_positive(
    attention: Float[Tensor, "batch head query key"], gradient: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "batch 1 query key"]:
    """Return the mean over heads of max(0, A ⊙ ∇A), which is what a layer adds to the relevance."""
    return (at_least_float32(attention) * gradient).clamp_(min=0).mean(1, keepdim=True)


def accumulate(layers: Sequence[Float[Tensor, "batch 1 query key"]]) -> list[Float[Tensor, "batch 1 query key"]]:
    """Return R − I after each layer, where R ← R + Ā·R from the identity; without it, so that small parts are exact."""
    moved = [layers[0]]
    for layer in layers[1:]:
        moved.append(moved[-1] + layer + layer @ moved[-1])
    return moved


def share_of_others(relevance: Float[Tensor, "batch 1 query key"]) -> Float[Tensor, "batch 1"]:
    """Return the share of all relevance that is not on the diagonal."""
    itself = relevance.diagonal(dim1=-2, dim2=-1).sum(-1)
    return 1 - itself / relevance.sum((-2, -1))


@dataclass(frozen=True)
class Relevance(ThroughLayers):
    """Relevance of each input token for a prediction (Chefer et al., 2021): R ← R + Ā·R from layer to layer.

    Ā is the mean over heads of max(0, A ⊙ ∂target/∂A), and R begins as the identity at the input of layer `start`.
    The map of layer i is R after that layer; the paper reads the row of the token that predicts, such as [CLS], in the
    last layer. The target is that of `hs.capture(…, target=…)`. Rows are not divided by their sums, and each token
    begins with 1 of its own, which hides the rest where gradients are small: `identity=false` subtracts it. The
    diagnostic `others` is the share of all relevance, with the identity, that other tokens have; 0 if the gradients
    say nothing.
    """

    start: int = 0
    identity: bool = True

    cites = ("chefer2021",)
    quantity = "relevance"
    note = "{others:.1%} of all relevance is that of other tokens; each token's own starts at 1"

    @property
    def inner(self) -> Lens:  # type: ignore[override]  # a field of other lenses, here it cannot be chosen
        """Attention × gradient, whose positive part is followed."""
        lens: Lens = lenses.make("gradient:times_attention=true")
        return lens

    def __call__(self, trace: Trace) -> Maps:
        """Return the relevance after every layer from `start` on."""
        assert trace.gradient is not None
        check_all_tokens_are_there(trace)
        edges = [mean_positive(*layer) for layer in zip(trace.attention, trace.gradient, strict=True)]
        maps = select_from(make_maps(trace, edges, self, merged=True), self.start, "relevance")
        require_square(maps)
        hidden = [
            maps.layer(label).masked_fill(~seen[:, None], 0)
            for label, seen in zip(maps.layers, maps.visible, strict=True)
        ]
        identity = torch.diag_embed(maps.queries.real.to(hidden[0]))[:, None]
        moved = accumulate(hidden)
        relevance = [part + identity for part in moved]
        return replace(
            maps,
            parts=relevance if self.identity else moved,
            visible=find_reachable(maps.visible),
            diagnostics={"others": torch.stack([share_of_others(part) for part in relevance], dim=1)},
            graph=Graph("edges", [layer + identity for layer in hidden]) if self.identity else None,
        )
