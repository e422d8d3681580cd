"""From answers to numbers: accuracy by part, seeds that failed, and how often the choice follows the cue."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.estimate import with_interval
from headscope.core.prose import count_noun
from headscope.uncertainty.bootstrap import percentile_interval
from headscope.uncertainty.crossed import bootstrap_crossed
from headscope.uncertainty.intervals import wilson_intervals
from headscope_studies.argument_cues.parts import ALL, BALANCED

CASES = ("right", "wrong", "absent")
"""Where the cue points: to the right answer, to another, or nowhere."""

Array = np.ndarray[Any, np.dtype[np.float64]]
Key = tuple[str, str]
"""A part, and what is counted of it: all points, those with the cue, or the points of a case."""

Sum = dict[Key, float]
"""Factors of means that are added."""


def find_failed(answers: xr.Dataset) -> xr.DataArray:
    """Return which networks failed: their accuracy on training examples is not shown to be above chance.

    The lower end of Wilson's 95 % interval of that accuracy is at most the chance of the training data. One that was
    not run counts as failed.
    """
    checked = answers["checked"].values
    right = np.round(answers["learned"].fillna(0).values * checked)
    low, _ = wilson_intervals(right, checked)
    return answers["checked"].copy(data=~(low > float(answers["train_chance"])))


def summarise_answers(answers: xr.Dataset) -> xr.Dataset:
    """Return the numbers of every network, part and set, with intervals over seeds and points.

    Means are over the seeds that did not fail; intervals are of a bootstrap that draws seeds and points, and all copies
    of a point together. `accuracy_mean`, `_median`, `_max` and `_min` are over all seeds, failed ones included.
    `above_chance_change` is accuracy less chance, `gain_change` that less the accuracy with the first part,
    `unexplained_change` what the whole input gains beyond the gains of its single texts. `follow` is the share of
    points with the cue where the answer is the one it points to; `follow_change` is that less its share by chance, of a
    classification less its share without the cue. `where` is the accuracy where the cue points right, wrong or nowhere,
    and `cue_effect_change` right less wrong.
    """
    failed = find_failed(answers)
    tables = [
        _summarise_set(answers, failed, network, name).expand_dims(network=[network], set=[name])
        for network in answers["network"].values.tolist()
        for name in answers["set"].values.tolist()
    ]
    numbers = xr.combine_by_coords(tables, combine_attrs="drop", data_vars="all")
    assert isinstance(numbers, xr.Dataset)
    numbers = numbers.sel(network=answers["network"], set=answers["set"], part=answers["part"])
    known = answers["checked"] > 0
    counts = {"failed": (failed & known).sum("seed"), "seeds": known.sum("seed"), "chance": answers["chance"]}
    return numbers.assign(counts).merge(_summarise_seeds(answers)).merge(_summarise_cue(answers))


def count_seeds(numbers: xr.Dataset) -> str:
    """Return the number of seeds in words, such as 10 seeds, or 2 to 10 seeds where it is not the same for all."""
    counts = sorted({int(count) for count in numbers["seeds"].values.ravel() if count > 0})
    return count_noun(counts[0], "seed") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"


def _summarise_set(answers: xr.Dataset, failed: xr.DataArray, network: str, name: str) -> xr.Dataset:
    """Return the numbers of one network on one set, along `part`."""
    points = answers.sel(network=network).isel(point=np.flatnonzero(answers["of"].values == name))
    parts = answers["part"].values.tolist()
    tables = dict(_tabulate(points, failed.sel(network=network), parts))
    draws = bootstrap_crossed(tables) if tables else {}
    means = {key: _mean(table) for key, table in tables.items()}
    chance, choice = float(answers["chance"].sel(set=name)), int(answers["choices"]) > 0
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for part in parts:
        for title, (terms, less) in _list_sums(part, parts, chance, choice=choice).items():
            rows.setdefault(title, []).append(_combine(terms, less, means, draws))
    return _to_dataset(rows, parts)


def _list_sums(part: str, parts: list[str], chance: float, *, choice: bool) -> dict[str, tuple[Sum, float]]:
    """Return what is computed of one part: sums of means with factors, and a number that is taken off."""
    own, first = (part, "all"), (parts[0], "all")
    texts = [(other, "all") for other in parts[1:] if other not in (ALL, BALANCED)]
    beyond: Sum = {own: 1.0, **dict.fromkeys(texts, -1.0), first: len(texts) - 1.0}
    elsewhere: Sum = {} if choice else {(part, "elsewhere"): -1.0}
    sums: dict[str, tuple[Sum, float]] = {
        "accuracy": ({own: 1.0}, 0.0),
        "above_chance_change": ({own: 1.0}, chance),
        "gain_change": ({own: 1.0, first: -1.0} if part != parts[0] else {}, 0.0),
        "unexplained_change": (beyond if part == ALL and choice and len(texts) > 1 else {}, 0.0),
        "follow": ({(part, "follow"): 1.0}, 0.0),
        "follow_change": ({(part, "follow"): 1.0, **elsewhere}, chance if choice else 0.0),
        "cue_effect_change": ({(part, "right"): 1.0, (part, "wrong"): -1.0}, 0.0),
    }
    return sums | {f"where {case}": ({(part, case): 1.0}, 0.0) for case in CASES}


def _tabulate(points: xr.Dataset, failed: xr.DataArray, parts: list[str]) -> Iterator[tuple[Key, Array]]:
    """Yield tables of seeds and groups of copies by part and by what is counted, without seeds that failed."""
    label, cue, group = (points[name].values for name in ("label", "cue", "group"))
    masks = {"all": label >= 0, "right": cue == label, "wrong": (cue >= 0) & (cue != label), "absent": cue < 0}
    pointed = int(cue.max())  # of a classification all point to one class
    for part in parts:
        worked = np.flatnonzero(~failed.sel(part=part).values.astype(bool))
        if not len(worked):
            continue
        predicted = points["prediction"].sel(part=part).transpose("seed", "point").values[worked]
        for name, mask in masks.items():
            yield (part, name), _average_groups(np.where(mask, predicted == label, np.nan), group)
        yield (part, "follow"), _average_groups(np.where(cue >= 0, predicted == cue, np.nan), group)
        yield (part, "elsewhere"), _average_groups(np.where(cue < 0, predicted == pointed, np.nan), group)


def _average_groups(values: Array, group: np.ndarray[Any, np.dtype[np.int64]]) -> Array:
    """Return the mean over the points of each group, `seed group`; NaN where none has a value.

    Copies of a point are one observation.
    """
    _, index = np.unique(group, return_inverse=True)
    known = np.isfinite(values)
    total, count = (
        np.stack([np.bincount(index, row) for row in table])
        for table in (np.where(known, values, 0.0), known.astype(float))
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Array = total / count
    return means


def _mean(table: Array) -> float:
    return float(np.nanmean(table)) if np.isfinite(table).any() else np.nan


def _combine(
    terms: Sum, less: float, means: Mapping[Key, float], draws: Mapping[Key, Array]
) -> tuple[float, float, float]:
    """Return a sum of means with its interval; NaN where one of them is not known, and for no terms."""
    if not terms or not set(terms) <= set(means):
        return np.nan, np.nan, np.nan
    value = sum(factor * means[key] for key, factor in terms.items()) - less
    drawn = np.sum([factor * draws[key] for key, factor in terms.items()], axis=0) - less
    low, high = percentile_interval(drawn, ignore_nan=True)
    return value, float(low), float(high)


def _to_dataset(rows: Mapping[str, list[tuple[float, float, float]]], parts: list[str]) -> xr.Dataset:
    variables: dict[str, Any] = {}
    for title, values in rows.items():
        table = np.array(values)
        if title.startswith("where "):
            continue
        variables |= with_interval(title, ("part",), table.T)
    where = np.array([rows[f"where {case}"] for case in CASES])  # case part end
    variables |= with_interval("where", ("case", "part"), np.moveaxis(where, -1, 0))
    return xr.Dataset(variables, {"part": parts, "case": list(CASES)})


def _summarise_seeds(answers: xr.Dataset) -> xr.Dataset:
    """Return mean, median, largest and smallest accuracy over all seeds, and that on training examples."""
    sets = []
    for name in answers["set"].values.tolist():
        points = answers.isel(point=np.flatnonzero(answers["of"].values == name))
        right = (points["prediction"] == points["label"]).mean("point")
        sets.append(right.where(answers["checked"] > 0).expand_dims(set=[name]))
    accuracy = xr.concat(sets, "set").drop_vars("of", errors="ignore")
    reduced = {name: getattr(accuracy, name)("seed") for name in ("mean", "median", "max", "min")}
    values = {f"accuracy_{name}": table for name, table in reduced.items()}
    every = xr.Dataset(
        {"run_accuracy": accuracy, "run_learned": answers["learned"], "run_failed": find_failed(answers)}
    )
    return xr.Dataset(values).merge(every.rename(seed="run"))  # each is no result of its own, as seeds elsewhere are


def _summarise_cue(answers: xr.Dataset) -> xr.Dataset:
    """Return productivity and coverage of the cue in every set, with Wilson's intervals."""
    counts = []
    for name in answers["set"].values.tolist():
        points = answers.isel(point=np.flatnonzero(answers["of"].values == name))
        applies = points["cue"].values >= 0
        right = applies & (points["cue"].values == points["label"].values)
        counts.append((int(right.sum()), int(applies.sum()), len(applies)))
    right, applies, n = np.array(counts).T
    variables: dict[str, Any] = {"points": ("set", n), "applicability": ("set", applies)}
    for title, part, whole in (("cue_productivity", right, applies), ("cue_coverage", applies, n)):
        low, high = wilson_intervals(part, whole)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = part / whole
        variables |= with_interval(title, ("set",), (value, low, high))
    return xr.Dataset(variables, {"set": answers["set"].values})
