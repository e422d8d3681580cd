"""Maximum flow of attention to the input tokens, through the layers below."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from headscope.core.catalog import lenses
from headscope.core.errors import InputError
from headscope.core.lens import Lens
from headscope.core.maps import Graph, Maps
from headscope.core.prose import count_noun
from headscope.core.spec import to_spec
from headscope.core.trace import Trace
from headscope.flow.graph import (
    Residual,
    Shares,
    ThroughResidual,
    divide_by_receptive_field,
    require_square,
    residual_graph,
    result_dtype,
    spread_uniformly,
    view_inner,
)
from headscope.flow.rollout import find_reachable
from headscope.flow.saturation import share_at_bound, share_same_for_sources
from headscope.flow.solver import flow_map, flow_maps

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Flow(ThroughResidual):
    """Attention flow (Abnar & Zuidema, 2020): the maximum flow from each position down to each input token.

    Edges between layers have the capacities that `rollout` multiplies: the attention averaged over `heads`, with the
    share `residual` in place (`measured`: as for `rollout`). `inner` is the lens whose weights they are; negative ones
    enter by their absolute values, `clip` sets them to 0, and each row is divided by its sum. "each" takes the edges of
    one head in the layer of the map, without the residual, and merged heads below. `depth="last"` gives the last layer
    only, in less time.

    Rows do not sum to 1; `normalize` divides them by their sums. `receptive_field` divides by the flow of uniform
    attention under the same mask first. Deep flows saturate: the diagnostics `at_bound` (share of pairs whose flow is
    all that leaves the source or enters the sink) and `same_for_sources` (share of tokens whose flow does not depend
    on the source) say how far, of the flows before any division.
    """

    residual: Residual = 0.5
    inner: Lens = field(default_factory=lambda: lenses.make("raw"))
    signed: Literal["absolute", "clip"] = "absolute"
    heads: Literal["mean", "each"] = "mean"
    depth: Literal["all", "last"] = "all"
    normalize: bool = False
    receptive_field: bool = False

    cites = ("abnar2020",)
    quantity = "attention flow"
    note = (
        "{at_bound:.0%} of flows as large as the edges at their ends allow, "
        "{same_for_sources:.0%} of tokens with the same flow from every source"
    )

    def __call__(self, trace: Trace) -> Maps:
        """Return the flow of every layer, or of the last."""
        maps = view_inner(trace, self.inner)
        _require_input(maps)
        if self.heads == "each" and maps.merged:
            raise InputError(
                f"heads='each' asks for the flow of each head, but the lens '{maps.lens}' gives one map per layer. "
                "Use an inner lens with a map per head, or heads='mean'."
            )
        visible = find_reachable(maps.visible)
        residual = self.read_residual(trace)
        layers = residual_graph(maps, residual=residual, signed=self.signed)
        flows, diagnostics = self._solve(maps, layers, visible)
        weights = self._divide(maps, flows, visible, residual)
        merged = self.heads == "mean"
        all_layers = replace(
            maps,
            parts=weights,
            lens=to_spec(self),
            signed=False,
            merged=merged,
            heads=(0,) if merged else maps.heads,
            visible=visible,
            diagnostics=diagnostics,
            graph=Graph("capacities", layers) if merged else None,  # one head has other edges
        )
        return all_layers if self.depth == "all" else all_layers.sel(layer=-1)

    def _solve(
        self, maps: Maps, layers: Sequence[Tensor], visible: Sequence[Tensor]
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Return the flows of each layer, zero outside of the tokens, and how far they saturate."""
        tops = layers
        if self.heads == "each":
            tops = residual_graph(maps, residual=0.0, signed=self.signed, per_head=True)
        flows = [torch.zeros(top.shape, dtype=torch.float64) for top in tops]
        table = np.full((2, len(maps.examples), len(tops), tops[0].shape[1]), np.nan)
        for row, real in enumerate(maps.queries.real.cpu()):
            cut = (slice(None), *np.ix_(*2 * (real.nonzero()[:, 0].numpy(),)))
            merged = np.concatenate([layer[row].detach().cpu().numpy()[cut] for layer in layers])
            heads = [top[row].detach().cpu().numpy()[cut] for top in tops]
            for index, solved in self._solve_example(merged, heads).items():
                flows[index][row][cut] = torch.from_numpy(solved)
                seen = visible[index][row].cpu().numpy()[cut[1:]]
                for head, (flow, top) in enumerate(zip(solved, heads[index], strict=True)):
                    lowest = merged[0] if index else top
                    table[0, row, index, head] = share_at_bound(flow, top, lowest, seen)
                    table[1, row, index, head] = share_same_for_sources(flow, seen)
        device = layers[0].device
        names = ("at_bound", "same_for_sources")
        diagnostics = {name: torch.from_numpy(column).to(device) for name, column in zip(names, table, strict=True)}
        return [flow.to(device) for flow in flows], diagnostics

    def _solve_example(self, merged: Array, heads: Sequence[Array]) -> dict[int, Array]:
        """Return the flows of one text by layer, `head query key`."""
        if self.depth == "all":
            return dict(enumerate(flow_maps(merged, None if self.heads == "mean" else heads)))
        last = len(merged) - 1
        return {last: np.stack([flow_map(np.concatenate([merged[:-1], top[None]])) for top in heads[last]])}

    def _divide(self, maps: Maps, flows: Sequence[Tensor], visible: Sequence[Tensor], residual: Shares) -> list[Tensor]:
        """Return the flows as weights: as they are, by row, or by receptive field, in the precision of the maps."""
        weights = list(flows)
        if self.receptive_field:
            uniform = spread_uniformly(maps)
            layers = residual_graph(uniform, residual=residual)
            pairs = zip(weights, self._solve(uniform, layers, visible)[0], strict=True)
            weights = [divide_by_receptive_field(*pair, normalize=True) for pair in pairs]
        elif self.normalize:
            weights = [flow / flow.sum(-1, keepdim=True).clamp(min=1e-300) for flow in weights]
        return [layer.to(result_dtype(maps)) for layer in weights]


def _require_input(maps: Maps) -> None:
    """Raise InputError unless the lowest layer is the one that reads the input."""
    if maps.layers[0] != 0:
        require_square(maps)
        count = count_noun(len(maps.layers), "layer")
        raise InputError(
            f"Attention flow ends at the input of layer 0, but the lowest of the {count} of this trace is "
            f"{maps.layers[0]}. Capture or measure all layers and select some afterwards."
        )
