"""Attention to the input tokens, rolled out through the layers below."""

from dataclasses import dataclass, field, replace

from torch import Tensor

from headscope.core.catalog import lenses
from headscope.core.lens import Lens
from headscope.core.maps import Graph, Maps
from headscope.core.spec import to_spec
from headscope.core.trace import Trace
from headscope.flow.graph import (
    Residual,
    Shares,
    Signed,
    ThroughResidual,
    divide_by_receptive_field,
    select_from,
    spread_uniformly,
    view_inner,
)
from headscope.flow.rollout import Heads, build_graph, find_reachable, roll_out


@dataclass(frozen=True)
class Rollout(ThroughResidual):
    """Attention rollout (Abnar & Zuidema, 2020): the product of the attention of all layers, down to the input.

    The map of layer i says how much of each input token is in each position above layer i, if every layer mixes
    positions by its attention, averaged over `heads`, and keeps the share `residual` in place. `start` is the lowest
    layer of the product. `inner` is the lens whose weights are multiplied. Negative weights enter by their absolute
    values, `clip` sets them to 0, and each row is divided by its sum; `signed` keeps signs and divides nothing.

    `heads`: "mean" gives one map per layer. "each" gives A(i, k)·rollout(i−1) for head k of layer i; "each_residual"
    adds the residual to the head's own weights too; "printed" is the formula in the paper's appendix.
    `residual=measured` takes what stays in place of each query from its mixing ratio r (`norm:residual=true`): the
    diagonal of its row is 1 − r, and the weights of other tokens are divided by their sum to weigh r. An `inner` lens
    that has the residual connection in its weights (`alti`, `norm:residual=true`) goes with `residual=0`.
    `receptive_field` divides by the rollout of uniform attention under the same mask, and each row by its sum.
    """

    residual: Residual = 0.5
    inner: Lens = field(default_factory=lambda: lenses.make("raw"))
    signed: Signed = "absolute"
    heads: Heads = "mean"
    start: int = 0
    receptive_field: bool = False

    cites = ("abnar2020", "kobayashi2021")
    quantity = "attention rollout"

    def __call__(self, trace: Trace) -> Maps:
        """Return the rollout of every layer from `start` on."""
        maps = select_from(view_inner(trace, self.inner), self.start, "rollout")
        residual = self.read_residual(trace)
        graph, layers = self._roll_out(maps, residual)
        if self.receptive_field:
            _, uniform = self._roll_out(spread_uniformly(maps), residual)
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

    def _roll_out(self, maps: Maps, residual: Shares) -> tuple[list[Tensor], list[Tensor]]:
        """Return the graph of merged heads, and the rollout of every layer."""
        graph = build_graph(maps, residual=residual, signed=self.signed, heads=self.heads)
        return graph, roll_out(maps, graph, residual=residual, signed=self.signed, heads=self.heads)
