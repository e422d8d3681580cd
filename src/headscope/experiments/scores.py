"""Scores of a model on its task under edits of its attention, and how its predictions change."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.example import Example
from headscope.engine.model import Model
from headscope.results.stamp import read_provenance
from headscope.training import metrics
from headscope.training.score import score
from headscope.uncertainty.bootstrap import bootstrap_metric, percentile_interval
from headscope.uncertainty.correlation import pearson
from headscope.uncertainty.intervals import Array

METRICS: dict[str, Callable[..., Any]] = {
    "accuracy": lambda label, prediction: (label == prediction).mean(-1),
    "pearson": pearson,
}


def score_edits(model: Model, examples: Sequence[Example], edits: Mapping[str, Any], **options: Any) -> xr.Dataset:
    """Score a model under each edit; the first is the baseline that the others are compared with.

    `edits` are by the labels that they get along `lens`; None is the model as it is. `options` are those of `hs.score`.
    The change of the score has a paired bootstrap interval.
    """
    scored = {name: score(model, list(examples), edit=edit, **options) for name, edit in edits.items()}
    baseline = next(iter(scored.values()))
    metric = str(read_provenance(baseline)["main"])
    rows = [_compare(baseline, other, metric) for other in scored.values()]
    variables: dict[str, Any] = {name: ("lens", [row[name] for row in rows]) for name in rows[0]}
    variables["majority"] = float(baseline["majority"]) if "majority" in baseline else np.nan
    return xr.Dataset(variables, coords={"lens": list(scored)}, attrs={"metric": metric})


def _compare(baseline: xr.Dataset, other: xr.Dataset, metric: str) -> dict[str, float]:
    """Return score and outputs beside those of the baseline; what only classes have is NaN for regression."""
    outputs = "logits" if "logits" in baseline else "prediction"
    before, after = (data[outputs].values.astype(float) for data in (baseline, other))
    drawn = _bootstrap_change(METRICS[metric], baseline["label"], baseline["prediction"], other["prediction"])
    low, high = percentile_interval(drawn)
    changed, ordered = baseline["prediction"].values != other["prediction"].values, np.sort(before, axis=-1)
    lead = (ordered[changed, -1] - ordered[changed, -2]) if "logits" in baseline else None
    return {
        "score": float(other[metric]),
        "score_low": float(other[f"{metric}_low"]),
        "score_high": float(other[f"{metric}_high"]),
        "score_change": float(other[metric]) - float(baseline[metric]),
        "score_change_low": float(low),
        "score_change_high": float(high),
        "output_change": float(np.abs(after - before).max()),
        "changed": np.nan if lead is None else float(len(lead)),
        "changed_margin": np.nan if lead is None else float(lead.max(initial=0.0)),
    }


def _bootstrap_change(metric: Callable[..., Any], *columns: xr.DataArray) -> Array:
    """Return the change of a metric over draws of the same examples, from label, prediction before and after."""

    def change(label: Array, before: Array, after: Array) -> Any:
        return metric(label, after) - metric(label, before)

    return bootstrap_metric(change, *(column.values.astype(float) for column in columns), draws=metrics.DRAWS)
