"""How well lenses agree with effects: from sampled edges to one number for each example, layer, lens and effect."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.uncertainty.correlation import spearman

Padded = Float[np.ndarray, "row key"]
"""A number for each sampled key of each row; NaN behind the last key of shorter rows."""


@dataclass(frozen=True)
class SampledRows:
    """Sampled edges, row by row."""

    example: Int[np.ndarray, " row"]  # the place of its example
    layer: Int[np.ndarray, " row"]  # the place of its layer
    stratum: Padded  # number of keys that an edge stands for
    effects: Float[np.ndarray, "effect row key"]
    lenses: Float[np.ndarray, "lens row key"]
    examples: int
    layers: int

    def average(self, values: Float[np.ndarray, " row"]) -> Float[np.ndarray, "example layer"]:
        """Return the mean over the rows of each example and layer; NaN values are left out."""
        finite = np.isfinite(values)
        total = self.add(np.where(finite, values, 0.0))
        with np.errstate(invalid="ignore"):
            mean: Any = total / self.add(finite.astype(float))
        return np.asarray(mean)

    def add(self, values: Float[np.ndarray, " row"]) -> Float[np.ndarray, "example layer"]:
        """Return the sum over the rows of each example and layer."""
        table = np.zeros((self.examples, self.layers))
        np.add.at(table, (self.example, self.layer), values)
        return table


def pad_rows(
    table: Float[np.ndarray, "edge column"],
    columns: Sequence[str],
    effects: Sequence[str],
    lenses: Sequence[str],
    layers: Sequence[int],
    examples: int,
) -> SampledRows:
    """Return edges that lie one after the other, those of a row together, row by row."""
    by_name = dict(zip(columns, table.T, strict=True))
    places = np.stack([by_name["example"], by_name["row"]]).astype(np.int64)
    _, first, row = np.unique(places, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(row, kind="stable")
    counts = np.bincount(row, minlength=len(first))
    at = np.empty(len(row), np.int64)
    at[order] = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = int(counts.max(initial=1))

    def pad(names: Sequence[str]) -> Float[np.ndarray, "column row key"]:
        padded = np.full((len(names), len(first), width), np.nan)
        for index, name in enumerate(names):
            padded[index, row, at] = by_name[name]
        return padded

    layer = np.searchsorted(np.array(layers), by_name["layer"][first].astype(np.int64))
    example = by_name["example"][first].astype(np.int64)
    (stratum,) = pad(["stratum"])
    return SampledRows(example, layer, stratum, pad(effects), pad(lenses), examples, len(layers))


def rank_rows(lens: Padded, effect: Padded, least: int) -> Float[np.ndarray, " row"]:
    """Return the rank correlation of each row; NaN with fewer than `least` keys, or where either side is constant."""
    return _map_rows(lens, effect, least, spearman)


def top_share_rows(lens: Padded, effect: Padded, least: int, top: int) -> Float[np.ndarray, " row"]:
    """Return the share of the effect of each row's keys that the `top` largest by the lens have.

    Of keys with the same weight each is as likely to be among the largest. NaN where nothing has an effect.
    """

    def share(weights: Padded, effects: Padded) -> Float[np.ndarray, " row"]:
        cut = -np.sort(-weights, axis=-1)[:, top - 1 : top]
        above, equal = weights > cut, weights == cut
        part = (top - above.sum(-1)) / equal.sum(-1)
        covered = (effects * above).sum(-1) + part * (effects * equal).sum(-1)
        total = effects.sum(-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(total > 0, covered / total, np.nan))

    return _map_rows(lens, effect, max(least, top), share)


def chance_rows(effect: Padded, least: int, top: int) -> Float[np.ndarray, " row"]:
    """Return the expected share of the effect that `top` keys in random order have, exactly top / keys."""

    def share(_: Padded, effects: Padded) -> Float[np.ndarray, " row"]:
        return np.where(effects.sum(-1) > 0, top / effects.shape[-1], np.nan)

    return _map_rows(effect, effect, max(least, top), share)


def _map_rows(lens: Padded, effect: Padded, least: int, function: Any) -> Float[np.ndarray, " row"]:
    """Return a function of the known keys of each row, of all rows with as many of them at a time."""
    known = np.isfinite(lens) & np.isfinite(effect)
    counts, result = known.sum(-1), np.full(len(lens), np.nan)
    order = np.argsort(~known, axis=-1, kind="stable")  # known keys first
    for count in np.unique(counts[counts >= max(least, 1)]):
        rows = counts == count
        at = order[rows, :count]
        result[rows] = function(np.take_along_axis(lens[rows], at, -1), np.take_along_axis(effect[rows], at, -1))
    return result


def hidden_mass(
    rows: SampledRows, lens: Padded, without: Bool[np.ndarray, "row key"], known: Bool[np.ndarray, "row key"]
) -> Float[np.ndarray, "example layer"]:
    """Return the share of a lens's mass on edges without an effect, estimated from the sample.

    Each sampled weight counts as often as the keys of its stratum, so that numerator and denominator are unbiased
    estimates of the mass of the sampled rows (Horvitz–Thompson); rows are sampled with the same probability.
    """
    known = known & np.isfinite(lens)
    mass = np.where(known, rows.stratum * np.abs(lens), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share: Any = rows.add((mass * without).sum(-1)) / rows.add(mass.sum(-1))
    return np.asarray(share)
