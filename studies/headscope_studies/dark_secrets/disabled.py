"""Scores of a model with one head or one layer disabled at a time, as claims take them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.ablation.ablate import ablate
from headscope.core.estimate import ENDS, estimate, with_interval
from headscope.core.example import Example
from headscope.core.provenance import read_provenance
from headscope.engine.model import Model
from headscope.training.metrics import DRAWS, SEED, make_accuracy, make_pearson
from headscope.uncertainty.bootstrap import percentile_interval
from headscope.uncertainty.corrections import LEVEL, simultaneous_factor
from headscope.uncertainty.paired import bootstrap_change, least_margin

METRICS = {"accuracy": make_accuracy, "pearson": make_pearson}

DISABLED = "uniform_heads"
"""The edit that disables a head: uniform attention over the real keys."""

SETS = {"head": "heads", "layer": "layers"}
DIMS = {"head": ("layer", "head"), "layer": ("layer",)}


def disable(model: Model, examples: Sequence[Example], **options: Any) -> xr.Dataset:
    """Score a model with each head and each layer disabled; `options` are those of `hs.ablate`.

    `head_change` and `layer_change` are those of the score, with paired intervals and the corrected p-value. The best
    of them, `best_head_change` and `best_layer_change`, have the interval of the best of all (`find_best`).
    `mean_head_change` is the mean over heads.
    """
    changes = []
    for kind, sets in SETS.items():
        ablated = ablate(model, list(examples), edit=DISABLED, sets=sets, **options)
        changes.append(summarise_changes(ablated, kind))
        if kind == "head":
            changes.append(average_changes(ablated))
    return xr.merge(changes)


def summarise_changes(ablated: xr.Dataset, kind: str) -> xr.Dataset:
    """Return the changes of the score, and the best of them with its interval."""
    names = {f"change{end}": f"{kind}_change{end}" for end in (*ENDS, "_p", "_p_adjusted")}
    changes = ablated[list(names)].rename(names).transpose(*DIMS[kind]).reset_coords(drop=True)
    metric = str(read_provenance(ablated)["main"])
    return changes.merge(find_best(changes, kind, int(ablated.sizes["example"]), metric))


def find_best(changes: xr.Dataset, kind: str, n: int, metric: str) -> xr.Dataset:
    """Return the best change of all heads or layers, with the interval of the best of all.

    It runs from the largest lower to the largest upper end of intervals that hold for all of them together. Those of
    changes of accuracy are at least as wide as that of no changed prediction (`least_margin`).
    """
    value, low, high = (end.values.astype(float) for end in estimate(changes, f"{kind}_change").ends)
    least = least_margin(n) if metric == "accuracy" else 0.0
    factor = simultaneous_factor(value.size, n)
    below, above = (factor * np.maximum(margin, least) for margin in (value - low, high - value))
    ends = value.max(), (value - below).max(), (value + above).max()
    return xr.Dataset(with_interval(f"best_{kind}_change", (), map(np.asarray, ends)))


def average_changes(ablated: xr.Dataset) -> xr.Dataset:
    """Return the change of the score without one head, averaged over all heads, with its paired bootstrap interval."""
    make = METRICS[str(read_provenance(ablated)["main"])]
    label, whole = (ablated[name].values.astype(float) for name in ("label", "prediction_whole"))
    answers = ablated["prediction"].transpose("layer", "head", "example").values.astype(float).reshape(-1, len(label))
    before, after = make(label, whole), [make(label, prediction) for prediction in answers]
    assert before.from_sums is not None
    assert before.statistics is not None
    runs = np.stack([metric.statistics for metric in after if metric.statistics is not None], axis=1)
    sampled = bootstrap_change(before.statistics, runs, before.from_sums, draws=DRAWS, seed=SEED)
    ends = percentile_interval(sampled.mean(-1), ignore_nan=True)
    mean = np.mean([metric.value - before.value for metric in after])
    return xr.Dataset(with_interval("mean_head_change", (), (np.asarray(mean), *ends)))


def count_significant(task: xr.Dataset) -> tuple[int, int]:
    """Return without how many heads the score is significantly lower and higher; of several seeds, with each."""
    change, significant = task["head_change"], task["head_change_p_adjusted"] < LEVEL
    counts = []
    for sign in (-1, 1):
        mask = significant & (sign * change > 0)
        counts.append(int((mask.all("seed") if "seed" in mask.dims else mask).sum()))
    return counts[0], counts[1]


def count_raw(task: xr.Dataset) -> float:
    """Return the share of heads with p < 0.05 before correction, on average over seeds; NaN if it is not known."""
    p = task["head_change_p"] if "head_change_p" in task else np.nan * task["head_change"]
    return float((p < LEVEL).where(p.notnull()).mean())


def name_best(task: xr.Dataset, kind: str) -> str:
    """Return the head or layer without which the score is best, on average over seeds, such as L3H7."""
    changes = task[f"{kind}_change"].transpose(*DIMS[kind])
    index = np.unravel_index(int(np.nanargmax(changes.values)), changes.shape)
    return "".join(f"{dim[0].upper()}{int(changes[dim].values[at])}" for dim, at in zip(DIMS[kind], index, strict=True))
