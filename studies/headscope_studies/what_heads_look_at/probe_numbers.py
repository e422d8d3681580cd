"""Results of probes as numbers that claims are judged on: along `task`, with intervals, n and documents.

`n` counts words or mentions; intervals are those of a bootstrap of documents, and are widened for their number.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.estimate import estimate, name_ends
from headscope_studies.what_heads_look_at.surface import name_head

ALL = "all"
SAME = 1e-3
"""Baselines whose accuracies differ by less are counted once."""


def number_relations(dependency: xr.Dataset) -> xr.Dataset:
    """Return the gain of the best head over the best fixed offset, along `task`, which are relations."""
    names = [name for name in dependency["relation"].values if str(name) != ALL]
    part = dependency.sel(task="dependency", relation=names, drop=True).rename(relation="task")
    best = [describe_best(part.sel(task=name)) for name in names]
    gains = name_ends("gain_change", estimate(part, "gain").ends)
    accuracy = name_ends("head", estimate(part.sel(predictor="head", drop=True), "accuracy").ends)
    accuracy |= name_ends("offset", estimate(part.sel(predictor="fixed_offset", drop=True), "accuracy").ends)
    p = {name: part[name] for name in ("gain_p", "gain_p_adjusted") if name in part}
    numbers = xr.Dataset({**gains, **accuracy, **p, "best": ("task", np.array(best))})
    return numbers.assign(n=_count(part), documents=part["documents"]).drop_attrs()


def describe_best(relation: xr.Dataset) -> str:
    """Return the best head of one relation, its direction, and the best offset: L3H7 dependent → head; offset 1."""
    head = name_head(int(relation["best_layer"]), int(relation["best_head"]))
    return f"{head} {relation['best_direction'].values}; offset {int(relation['best_offset'])}"


def number_trees(
    dependency: xr.Dataset, attention: xr.Dataset | None, words: xr.Dataset | None, name: str
) -> xr.Dataset:
    """Return the gain of the best head over right-branching, and the gains of trained probes, of one treebank.

    `attention_gain_change` is over the best fixed offsets; `distance_gain_change` is what attention adds to words and
    distances; `words_gain_change` is that of attention and words over attention alone.
    """
    whole = dependency.sel(task="dependency", relation=ALL, drop=True)
    first, second = (None if part is None else part.sel(relation=ALL).isel(task=0) for part in (attention, words))
    numbers = name_ends("branching_gain", find_gain(whole, "right_branching"))
    numbers |= name_ends("attention_gain_change", find_gain(first, "fixed_offset"))
    numbers |= name_ends("distance_gain_change", find_gain(second, "distances"))
    numbers |= name_ends("words_gain_change", _subtract(first, second))
    plain = {key: float(value) for key, value in numbers.items()}
    counts = {"n": int(_count(whole)), "documents": int(whole["documents"])}
    return xr.Dataset(plain).assign(counts).expand_dims(task=[name])


def find_gain(whole: xr.Dataset | None, baseline: str) -> tuple[float, float, float]:
    """Return the accuracy of the first predictor over that of a baseline, with an interval; NaN where one is missing.

    The interval is that of a paired bootstrap where it was stored, as it is for `fixed_offset` and whatever answers as
    it does; otherwise both intervals are added as those of independent numbers, which makes it too wide.
    """
    if whole is None or baseline not in whole["predictor"] or np.isnan(whole["accuracy"].sel(predictor=baseline)):
        return np.nan, np.nan, np.nan
    if "gain_over" in whole and baseline in whole["baseline"]:
        value, low, high = map(float, estimate(whole, "gain_over").sel(baseline=baseline).ends)
        return value, low, high
    accuracy = whole["accuracy"]
    if float(accuracy.sel(predictor=baseline)) == float(accuracy.sel(predictor="fixed_offset")):
        value, low, high = map(float, estimate(whole, "gain").ends)
        return value, low, high
    first, second = (
        estimate(whole, "accuracy").sel(predictor=name) for name in (whole["predictor"].values[0], baseline)
    )
    return _subtract_ends(second.ends, first.ends)


def number_coreference(results: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the gains of one head over the nearest mention, a match of head words and rules, along `task`.

    A baseline that is right as often as the nearest mention is no baseline of its own, and its gain is NaN: without
    words to match, as in GAP, three gains would be one fact.
    """
    parts = []
    for name, result in results.items():
        part = result.sel(task="coreference", kind=ALL, drop=True)
        gain = estimate(part, "gain_over")
        values: dict[str, float] = {}
        names = {"nearest_gain_change": "nearest", "match_gain_change": "head_match", "rules_gain": "rules"}
        nearest = float(part["accuracy"].sel(predictor="nearest"))
        for quantity, baseline in names.items():
            same = baseline != "nearest" and abs(float(part["accuracy"].sel(predictor=baseline)) - nearest) < SAME
            ends = [np.nan] * 3 if same else map(float, gain.sel(baseline=baseline).ends)
            values |= name_ends(quantity, ends)
        counts = {"n": int(_count(part)), "documents": int(part["documents"])}
        parts.append(xr.Dataset(values).assign(counts).expand_dims(task=[name]))
    return xr.concat(parts, "task")


def _count(part: xr.Dataset) -> xr.DataArray:
    """Return how many words or mentions the accuracies are of."""
    count = part["accuracy_n"]
    return count.isel(predictor=0, drop=True) if "predictor" in count.dims else count


def _subtract(first: xr.Dataset | None, second: xr.Dataset | None) -> tuple[float, float, float]:
    """Return the accuracy of the second probe minus that of the first, with an interval."""
    if first is None or second is None:
        return np.nan, np.nan, np.nan
    before, after = (estimate(part, "accuracy").sel(predictor="probe").ends for part in (first, second))
    return _subtract_ends(before, after)


def _subtract_ends(first: Iterable[Any], second: Iterable[Any]) -> tuple[float, float, float]:
    """Return the second number minus the first, with both intervals added as those of independent numbers."""
    (before, low, high), (after, least, most) = (map(float, ends) for ends in (first, second))
    below, above = np.hypot(after - least, high - before), np.hypot(most - after, before - low)
    return after - before, after - before - float(below), after - before + float(above)
