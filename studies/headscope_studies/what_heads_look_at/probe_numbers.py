"""Results of probes as numbers that claims are judged on: along `task`, with intervals, n and documents.

`n` counts words or mentions; intervals are those of a bootstrap of documents, and are widened for their number.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.reporting.frames import ENDS
from headscope_studies.what_heads_look_at.surface import name_head

ALL = "all"


def number_relations(dependency: xr.Dataset) -> xr.Dataset:
    """Return the gain of the best head over the best fixed offset, along `task`, which are relations."""
    names = [name for name in dependency["relation"].values if str(name) != ALL]
    part = dependency.sel(task="dependency", relation=names, drop=True).rename(relation="task")
    best = [describe_best(part.sel(task=name)) for name in names]
    gains = {f"gain_change{end}": part[f"gain{end}"] for end in ENDS}
    accuracy = {f"{name}{end}": part[f"accuracy{end}"].sel(predictor=predictor, drop=True)
                for name, predictor in (("head", "head"), ("offset", "fixed_offset")) for end in ENDS}  # fmt: skip
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
    """Return the accuracy of the best head on all relations, and the gains of trained probes, of one treebank.

    `attention_gain_change` is over the best fixed offsets; `words_gain_change` is that of attention and words over
    attention alone, with both intervals added as those of independent numbers.
    """
    whole = dependency.sel(task="dependency", relation=ALL, drop=True)
    numbers: dict[str, Any] = {f"head_accuracy{end}": whole[f"accuracy{end}"].sel(predictor="head") for end in ENDS}
    first, second = (None if part is None else part.sel(relation=ALL).isel(task=0) for part in (attention, words))
    for end in ENDS:
        numbers[f"attention_gain_change{end}"] = np.nan if first is None else float(first[f"gain{end}"])
    numbers |= dict(zip((f"words_gain_change{end}" for end in ENDS), _subtract(first, second), strict=True))
    plain = {key: float(value) for key, value in numbers.items()}
    counts = {"n": int(_count(whole)), "documents": int(whole["documents"])}
    return xr.Dataset(plain).assign(counts).expand_dims(task=[name])


def number_coreference(results: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the gains of one head over the nearest mention, a match of head words and rules, along `task`."""
    parts = []
    for name, result in results.items():
        part = result.sel(task="coreference", kind=ALL, drop=True)
        over = {baseline: part.sel(baseline=baseline) for baseline in ("nearest", "head_match", "rules")}
        values = {f"nearest_gain_change{end}": float(over["nearest"][f"gain_over{end}"]) for end in ENDS}
        values |= {f"match_gain_change{end}": float(over["head_match"][f"gain_over{end}"]) for end in ENDS}
        values |= {f"rules_gain{end}": float(over["rules"][f"gain_over{end}"]) for end in ENDS}
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
    ends = [[float(part[f"accuracy{end}"].sel(predictor="probe")) for end in ENDS] for part in (first, second)]
    (before, low, high), (after, least, most) = ends
    below, above = np.hypot(after - least, high - before), np.hypot(most - after, before - low)
    return after - before, after - before - float(below), after - before + float(above)
