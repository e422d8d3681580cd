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
from headscope.uncertainty.bootstrap import percentile_interval
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
    label = baseline["label"].values
    draws = np.random.default_rng(0).integers(0, len(label), (metrics.DRAWS, len(label)))
    compute = {"accuracy": _accuracy, "pearson": _pearson}[metric]
    before, after = (compute(label, data["prediction"].values, draws) for data in (baseline, other))
    change: Array = after - before
    return change


def _accuracy(label: Any, prediction: Any, draws: Any) -> Any:
    return (label == prediction).astype(float)[draws].mean(-1)


def _pearson(label: Any, prediction: Any, draws: Any) -> Any:
    x, y = (values.astype(float)[draws] for values in (label, prediction))
    x, y = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    return (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))
