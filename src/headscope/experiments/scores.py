"""Scores of a model on its task under edits of its attention, and how its predictions change."""

from collections.abc import Mapping, Sequence
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


def score_edits(
    model: Model, examples: Sequence[Example], edits: Mapping[str, Any], *, axis: str = "lens", **options: Any
) -> xr.Dataset:
    """Score a model under each edit; the first is the baseline that the others are compared with.

    `edits` are by the labels that they get along `axis`; None is the model as it is. `options` are those of `hs.score`.
    The change of the score has a paired bootstrap interval.
    """
    scored = {name: score(model, list(examples), edit=edit, **options) for name, edit in edits.items()}
    baseline = next(iter(scored.values()))
    metric = str(read_provenance(baseline)["main"])
    rows = [_compare(baseline, other, metric) for other in scored.values()]
    variables: dict[str, Any] = {name: (axis, [row[name] for row in rows]) for name in rows[0]}
    variables["majority"] = float(baseline["majority"]) if "majority" in baseline else np.nan
    return xr.Dataset(variables, coords={axis: list(scored)}, attrs={"metric": metric})


def _compare(baseline: xr.Dataset, other: xr.Dataset, metric: str) -> dict[str, float]:
    outputs = "logits" if "logits" in baseline else "prediction"
    difference = np.abs(other[outputs].values.astype(float) - baseline[outputs].values.astype(float))
    low, high = percentile_interval(_bootstrap_change(baseline, other, metric))
    return {
        "score": float(other[metric]),
        "score_low": float(other[f"{metric}_low"]),
        "score_high": float(other[f"{metric}_high"]),
        "score_change": float(other[metric]) - float(baseline[metric]),
        "score_change_low": float(low),
        "score_change_high": float(high),
        "output_change": float(difference.max()),
        **_compare_predictions(baseline, other),
    }


def _compare_predictions(baseline: xr.Dataset, other: xr.Dataset) -> dict[str, float]:
    """Return how many predictions change, and the largest lead of the best class among them; NaN for regression."""
    if "logits" not in baseline:
        return {"changed": np.nan, "changed_margin": np.nan}
    changed = baseline["prediction"].values != other["prediction"].values
    ordered = np.sort(baseline["logits"].values.astype(float), axis=-1)
    lead = (ordered[:, -1] - ordered[:, -2])[changed]
    return {"changed": float(changed.sum()), "changed_margin": float(lead.max()) if len(lead) else 0.0}


def _bootstrap_change(baseline: xr.Dataset, other: xr.Dataset, metric: str) -> Array:
    """Return the change of the score over draws of the same examples for both."""
    compute = {"accuracy": _accuracy, "pearson": pearson}[metric]

    def change(label: Array, before: Array, after: Array) -> Array:
        difference: Array = compute(label, after) - compute(label, before)
        return difference

    columns = (baseline["label"], baseline["prediction"], other["prediction"])
    return bootstrap_metric(change, *(column.values.astype(float) for column in columns), draws=metrics.DRAWS)


def _accuracy(label: Array, prediction: Array) -> Any:
    return (label == prediction).mean(-1)
