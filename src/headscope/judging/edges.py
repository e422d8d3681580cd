"""The edges of a batch, what their removal does, and what each lens says of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from headscope.core.maps import Maps
from headscope.core.trace import Trace
from headscope.engine.batch import Inputs
from headscope.judging.interventions import EFFECTS, Interventions
from headscope.judging.lenses import JudgedLens, read_edges
from headscope.judging.sampling import EdgeTable, SamplePlan, draw_rows, tabulate_edges

PLACES = ("example", "row", "layer", "head", "query", "key", "stratum")
"""Where an edge is; `stratum` is the number of keys of its row that it stands for."""

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class EdgeJudge:
    """Removes sampled edges from every batch, and keeps one line for each edge."""

    interventions: Interventions
    lenses: Sequence[JudgedLens]
    plan: SamplePlan

    @property
    def columns(self) -> list[str]:
        """What the columns of an edge are: its place, the effects, the weights of the lenses."""
        return [*PLACES, *EFFECTS, *(lens.name for lens in self.lenses)]

    def __call__(self, inputs: Inputs, trace: Trace, maps: Mapping[str, Maps], examples: Sequence[int]) -> Array:
        """Return the edges of a batch, `edge column`; `examples` are the numbers of its examples."""
        lines = []
        with self.interventions.open(inputs, trace) as passes:
            tables = tabulate_edges(draw_rows(trace, self.plan, passes.find_only_queries()))
            for layer, edges in tables.items():
                effects = passes.remove(layer, edges)
                lines.append(self._tabulate(trace, layer, edges, effects, maps, examples))
        return np.concatenate([np.zeros((0, len(self.columns))), *lines])

    def _tabulate(
        self,
        trace: Trace,
        layer: int,
        edges: EdgeTable,
        effects: Mapping[str, torch.Tensor],
        maps: Mapping[str, Maps],
        examples: Sequence[int],
    ) -> Array:
        """Return the edges of one layer, example by example."""
        heads = torch.tensor([*trace.heads, -1])[edges.head]  # the last for all heads
        numbers = torch.tensor(examples).expand_as(edges.key)
        places = [numbers, edges.row, torch.full_like(edges.key, layer), heads, edges.query, edges.key, edges.size]
        nothing = torch.full(edges.key.shape, torch.nan, dtype=torch.float64)
        said = [read_edges(maps[lens.name], layer, edges, merged=self.plan.merged) for lens in self.lenses]
        columns = [*places, *(effects.get(name, nothing) for name in EFFECTS), *said]
        table = torch.stack([column.double() for column in columns], -1).transpose(0, 1)
        kept: Array = table[edges.present.T].numpy()
        return kept
