"""Effects of heads on a score: how many matter, whether two orders of heads agree, and effects on parts of the data."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from headscope.ablation.head_importance import head_importance
from headscope.core.estimate import estimate, take_interval, with_interval
from headscope.core.example import Example
from headscope.engine.model import Model
from headscope.uncertainty.bootstrap import bootstrap_metric, percentile_interval
from headscope.uncertainty.corrections import correct_p_values
from headscope.uncertainty.correlation import pearson, spearman
from headscope.uncertainty.intervals import student_margin, wilson_interval
from headscope_studies.sixteen_heads.claims import COMPARED

DRAWS = 1000
PARTS = ("groups", "halves")
Ends = tuple[float, float, float]
"""A number and the ends of its 95 % interval."""


def share_of(mask: Any) -> Ends:
    """Return the share of True with Wilson's interval."""
    counted = np.asarray(mask, bool)
    return (float(counted.mean()), *wilson_interval(int(counted.sum()), counted.size))


def correlate_heads(
    first: Any, second: Any, correlation: Callable[..., Float[np.ndarray, "*draws"]] = spearman
) -> Ends:
    """Return the correlation of two tables of heads, with its percentile interval by a bootstrap of heads.

    Heads that either table has no number for are left out; with fewer than three there is no correlation.
    """
    x, y = (np.asarray(table, float).ravel() for table in (first, second))
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < 3:
        return np.nan, np.nan, np.nan
    draws = bootstrap_metric(correlation, x[known], y[known], draws=DRAWS)
    low, high = percentile_interval(draws, ignore_nan=True)
    return float(correlation(x[known], y[known])), float(low), float(high)


def compare_orders(curves: xr.Dataset) -> Ends:
    """Return how much more of the score pruning by importance keeps than a random order does, at half of the heads.

    The margins of both add as independent ones: that of the score, and Student's for one more random order, which is
    what an order by importance that says nothing would be.
    """
    ordered = curves.sel(pruned=COMPARED, order="importance")
    random = curves["half_change"].values
    change, low, high = map(float, estimate(ordered, "pruned_change").ends)
    spread = np.std(random, ddof=1) * np.sqrt(len(random) + 1)
    reach = float(np.hypot((high - low) / 2, student_margin(spread, float(len(random)))))
    gain = change - float(np.mean(random))
    return gain, gain - reach, gain + reach


def effects_on(ablation: xr.Dataset, examples: Sequence[Example], rows: Bool[np.ndarray, " example"]) -> xr.DataArray:
    """Return the change of the score by each head on a part of the examples, from the predictions of `hs.ablate`.

    Accuracy for classes, Pearson's correlation for numbers.
    """
    labels = np.array([example.label for example in examples])[rows]
    after = ablation["prediction"].transpose("layer", "head", "example").values[..., rows]
    before = ablation["prediction_whole"].values[rows]
    if np.issubdtype(before.dtype, np.floating):
        wide = np.broadcast_to(labels.astype(float), after.shape)
        change = pearson(after.astype(float), wide) - pearson(before.astype(float), labels.astype(float))
    else:
        change = (after == labels).mean(-1) - (before == labels).mean()
    coords = {name: ablation[name] for name in ("layer", "head")}
    return xr.DataArray(change, coords, ("layer", "head"))


def choose_best(ablation: xr.Dataset) -> dict[int, int]:
    """Return the head of each layer that alone scores best, from `hs.ablate` with all heads of a layer but one removed.

    Layers without any head are left out.
    """
    scores = ablation["ablated"].transpose("layer", "head").dropna("layer", how="all")
    best = scores.fillna(-np.inf).argmax("head")
    return {int(layer): int(scores["head"][index]) for layer, index in zip(scores["layer"], best, strict=True)}


def name_all_but(best: Mapping[int, int]) -> list[str]:
    """Return the sets of heads that leave one head in a layer, such as L3-L3H7.

    >>> name_all_but({0: 2, 1: 0})
    ['L0-L0H2', 'L1-L1H0']
    """
    return [f"L{layer}-L{layer}H{head}" for layer, head in best.items()]


def judge_best(best: Mapping[int, int], judged: xr.Dataset) -> xr.Dataset:
    """Return the change of the score with the best head of each layer alone, with Holm's p-values over layers.

    `judged` is the result of `hs.ablate` with the sets of `name_all_but`, on other examples than the heads were chosen.
    """
    table = take_interval(judged, "change", "best_change").drop_vars("heads").rename(heads="layer")
    p = judged["change_p"].values.astype(float)
    return table.assign(
        best_head=("layer", np.array(list(best.values()), float)),
        best_p=("layer", p),
        best_p_adjusted=("layer", correct_p_values(p)),
    ).assign_coords(layer=list(best))


def split_parts(examples: Sequence[Example], group: str) -> dict[str, dict[str, Any]]:
    """Return pairs of parts of the data as masks by name: the two largest groups of a column, and two halves."""
    labels = np.array([str(example.columns.get(group, "")) for example in examples])
    names, counts = np.unique(labels[labels != ""], return_counts=True)
    largest = [str(name) for name in names[np.argsort(-counts, kind="stable")][:2]]
    even = np.arange(len(examples)) % 2 == 0
    pairs: dict[str, dict[str, Any]] = {"halves": {"first half": even, "second half": ~even}}
    if len(largest) == 2 and min((labels == name).sum() for name in largest) > 2:
        pairs["groups"] = {name: labels == name for name in largest}
    return pairs


def compare_parts(
    model: Model, examples: Sequence[Example], ablation: xr.Dataset, pairs: Mapping[str, Any], **options: Any
) -> xr.Dataset:
    """Return effects and importance of every head on both parts of each pair, and their correlations over heads."""
    tables, texts, correlations = [], [], []
    for parts in PARTS:
        masks = pairs.get(parts, {})
        effects = [effects_on(ablation, examples, mask) for mask in masks.values()]
        chosen = [[example for example, take in zip(examples, mask, strict=True) if take] for mask in masks.values()]
        weights = [head_importance(model, part, **options)["head_importance"] for part in chosen]
        empty = xr.full_like(ablation["change"], np.nan).drop_attrs()
        tables.append(xr.concat(effects or [empty, empty], "side"))
        texts.append([f"{name} (n = {int(mask.sum())})" for name, mask in masks.items()] or ["", ""])
        correlations.append(
            [
                correlate_heads(effects[0], effects[1], pearson) if effects else (np.nan,) * 3,
                correlate_heads(weights[0], weights[1]) if weights else (np.nan,) * 3,
            ]
        )
    ends = np.array(correlations)  # parts quantity end
    variables = with_interval("effect_correlation", ("parts",), ends[:, 0].T)
    variables |= with_interval("importance_correlation", ("parts",), ends[:, 1].T)
    effect = xr.concat(tables, xr.Variable("parts", list(PARTS))).rename("effect").drop_attrs()
    return effect.to_dataset().assign(variables).assign(part_name=(("parts", "side"), np.array(texts)))
