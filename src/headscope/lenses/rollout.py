"""Attention to the input tokens, rolled out through the layers below."""

from dataclasses import dataclass, field, replace

from torch import Tensor

from headscope.core.catalog import lenses
from headscope.core.errors import InputError
from headscope.core.lens import Lens
from headscope.core.maps import Graph, Maps
from headscope.core.prose import count_noun
from headscope.core.spec import to_spec
from headscope.core.trace import Trace
from headscope.flow.graph import (
    Signed,
    ThroughLayers,
    divide_by_receptive_field,
    require_square,
    spread_uniformly,
    view_inner,
)
from headscope.flow.rollout import Heads, build_graph, find_reachable, roll_out


@dataclass(frozen=True)
class Rollout(ThroughLayers):
    """Attention rollout (Abnar & Zuidema, 2020): the product of the attention of all layers, down to the input.

    The map of layer i says how much of each input token is in each position above layer i, if every layer mixes
    positions by its attention, averaged over `heads`, and keeps the share `residual` in place. `start` is the lowest
    layer of the product. `inner` is the lens whose weights are multiplied. Negative weights enter by their absolute
    values, `clip` sets them to 0, and each row is divided by its sum; `signed` keeps signs and divides nothing.

    `heads`: "mean" gives one map per layer. "each" gives A(i, k)·rollout(i−1) for head k of layer i; "each_residual"
    adds the residual to the head's own weights too; "printed" is the formula in the paper's appendix.
    `receptive_field` divides by the rollout of uniform attention under the same mask, and each row by its sum.
    """

    residual: float = 0.5
    inner: Lens = field(default_factory=lambda: lenses.make("raw"))
    signed: Signed = "absolute"
    heads: Heads = "mean"
    start: int = 0
    receptive_field: bool = False

    cites = ("abnar2020",)
    quantity = "attention rollout"

    def __call__(self, trace: Trace) -> Maps:
        """Return the rollout of every layer from `start` on."""
        maps = self._select_layers(view_inner(trace, self.inner))
        graph, layers = self._roll_out(maps)
        if self.receptive_field:
            _, uniform = self._roll_out(spread_uniformly(maps))
            normalize = self.signed != "signed"
            layers = [
                divide_by_receptive_field(*pair, normalize=normalize) for pair in zip(layers, uniform, strict=True)
            ]
        return replace(
            maps,
            parts=layers,
            lens=to_spec(self),
            signed=maps.signed and self.signed == "signed",
            merged=self.heads == "mean",
            heads=(0,) if self.heads == "mean" else maps.heads,
            visible=find_reachable(maps.visible, self.heads),
            diagnostics={},
            graph=Graph("edges", graph) if self.heads == "mean" else None,  # one head has other edges
        )

    def _select_layers(self, maps: Maps) -> Maps:
        """Return the maps from layer `start` on."""
        if self.start not in maps.layers:
            require_square(maps)
            count = count_noun(len(maps.layers), "layer")
            raise InputError(
                f"The rollout starts at layer {self.start}, but the lowest of the {count} of this trace is "
                f"{maps.layers[0]}. Capture or measure all layers and select some afterwards, or give "
                f"start={maps.layers[0]}."
            )
        return maps if self.start == maps.layers[0] else maps.sel(layer=slice(self.start, None))

    def _roll_out(self, maps: Maps) -> tuple[list[Tensor], list[Tensor]]:
        """Return the graph of merged heads, and the rollout of every layer."""
        graph = build_graph(maps, residual=self.residual, signed=self.signed, heads=self.heads)
        return graph, roll_out(maps, graph, residual=self.residual, signed=self.signed, heads=self.heads)
