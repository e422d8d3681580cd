"""The result of judging lenses by edges: scores of lenses, by effect and layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.judging.edges import PLACES, Array
from headscope.judging.interventions import EFFECTS
from headscope.judging.scores import SampledRows, chance_rows, hidden_mass, pad_rows, rank_rows, top_share_rows
from headscope.judging.tables import Variables, average_layers, compare_lenses, summarize

DIMS = ("lens", "effect")
JUDGED_PICTURES = ("hidden", "score")
"""Effects with a threshold below which nothing changes."""


@dataclass(frozen=True)
class EdgeScoring:
    """What is computed of sampled edges."""

    lenses: Sequence[str]
    layers: Sequence[int]
    least: int
    top: int
    threshold: float
    judges: Sequence[str]  # edges, pictures

    def __call__(self, table: Array, examples: int) -> xr.Dataset:
        """Return the scores of the lenses from the edges of all examples, `edge column`."""
        columns = [*PLACES, *EFFECTS, *self.lenses]
        rows = pad_rows(table, columns, EFFECTS, self.lenses, self.layers, examples)
        variables: Variables = {}
        if "edges" in self.judges:
            variables |= self._score_edges(rows)
        if "pictures" in self.judges:
            variables |= self._score_pictures(rows)
        variables |= self._count(rows)
        coords = {"lens": list(self.lenses), "other_lens": list(self.lenses)}
        return xr.Dataset(variables, {**coords, "effect": list(EFFECTS), "layer": list(self.layers)})

    def list_edges(self, table: Array) -> xr.Dataset:
        """Return every edge, with its effects and the weights of the lenses."""
        named: dict[str, Any] = {f"edge_{name}": ("edge", table[:, at].astype(int)) for at, name in enumerate(PLACES)}
        start, end = len(PLACES), len(PLACES) + len(EFFECTS)
        named["edge_effect"] = (("edge", "effect"), table[:, start:end])
        named["edge_weight"] = (("edge", "lens"), table[:, end:])
        return xr.Dataset(named, {"lens": list(self.lenses), "effect": list(EFFECTS)})

    def _score_edges(self, rows: SampledRows) -> Variables:
        """Return rank correlations, and shares of the effect that the largest keys of each lens have."""
        ranks, shares = self._fill(rows), self._fill(rows)
        chance = np.full((rows.examples, len(EFFECTS), rows.layers), np.nan)
        for place, name in enumerate(EFFECTS):
            effect, signed = rows.effects[place], name == "score_signed"
            if not signed:
                chance[:, place] = rows.average(chance_rows(effect, self.least, self.top))
            for lens, weights in enumerate(rows.lenses):
                values = weights if signed else np.abs(weights)
                ranks[:, lens, place] = rows.average(rank_rows(values, effect, self.least))
                if not signed:
                    found = top_share_rows(values, effect, self.least, self.top)
                    shares[:, lens, place] = rows.average(found)
        what = f"share of the effect of the {self.top} largest keys"
        variables = self._report("rank_correlation", ranks, long_name="rank correlation with the effect")
        variables |= self._report("top_share", shares, long_name=what)
        variables |= summarize("top_share_chance", average_layers(chance), ("effect",), long_name=f"{what}, by chance")
        return variables | summarize("top_share_chance_layer", chance, ("effect", "layer"))

    def _score_pictures(self, rows: SampledRows) -> Variables:
        """Return the share of each lens's mass, and of all edges, whose removal changes nothing."""
        masses = self._fill(rows)
        edges = np.full((rows.examples, len(EFFECTS), rows.layers), np.nan)
        for place, name in enumerate(EFFECTS):
            if name not in JUDGED_PICTURES:
                continue
            effect = rows.effects[place]
            known, without = np.isfinite(effect), effect < self.threshold
            edges[:, place] = hidden_mass(rows, np.ones_like(effect), without, known)
            for lens, weights in enumerate(rows.lenses):
                masses[:, lens, place] = hidden_mass(rows, weights, without, known)
        what = "share of the weight on edges whose removal changes nothing"
        variables = self._report("mass_without_effect", masses, long_name=what)
        variables |= summarize(
            "edges_without_effect", average_layers(edges), ("effect",), long_name="share of edges without an effect"
        )
        return variables | summarize("edges_without_effect_layer", edges, ("effect", "layer"))

    def _fill(self, rows: SampledRows) -> Any:
        return np.full((rows.examples, len(self.lenses), len(EFFECTS), rows.layers), np.nan)

    def _report(self, name: str, values: Any, **attrs: Any) -> Variables:
        """Return the means of `example lens effect layer`, over all layers and by layer, and the paired differences."""
        overall = average_layers(values)
        return {
            **summarize(name, overall, DIMS, **attrs),
            **summarize(f"{name}_layer", values, (*DIMS, "layer"), **attrs),
            **compare_lenses(name, overall, DIMS),
            f"{name}_rows": (("example", *DIMS, "layer"), values),
        }

    def _count(self, rows: SampledRows) -> Variables:
        """Return the numbers of rows and edges, of those whose effect is not finite, and of rows without an effect."""
        present = np.isfinite(rows.stratum)
        missing = present & ~np.isfinite(rows.effects)
        known = np.isfinite(rows.effects)
        flat = known.any(-1) & (
            np.where(known, rows.effects, -np.inf).max(-1) == np.where(known, rows.effects, np.inf).min(-1)
        )
        measured = known.any((1, 2))
        return {
            "edges": ((), int(present.sum())),
            "row_count": ("layer", np.bincount(rows.layer, minlength=rows.layers)),
            "nan_edges": ("effect", np.where(measured, missing.sum((1, 2)), 0)),
            "nan_weights": ("lens", (present & ~np.isfinite(rows.lenses)).sum((1, 2))),
            "rows_without_effect": ("effect", flat.sum(-1)),
        }
