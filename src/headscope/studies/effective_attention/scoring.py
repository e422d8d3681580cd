"""The task's score with effective attention in place of attention, and what changes."""

from collections.abc import Sequence
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

EDITS = {
    "standard": None,
    "visible": "effective_attention",
    "padded": "effective_attention:keys=padded",
    "paper": "effective_attention:keys=paper",
}


def scores(model: Model, examples: Sequence[Example], max_length: int, *, progress: bool) -> xr.Dataset:
    """The score with every attention in place, and how outputs and predictions differ from standard attention's.

    All are filled up to `max_length` tokens, as the published code does, so that nothing but the attention differs.
    """
    found = {
        name: score(model, list(examples), edit=edit, max_length=max_length, pad_to=max_length, progress=progress)
        for name, edit in EDITS.items()
    }
    main = str(read_provenance(found["standard"])["main"])
    standard = found["standard"]
    lines = [_line(standard, each, main) for each in found.values()]
    held: dict[str, Any] = {name: ("lens", [line[name] for line in lines]) for name in lines[0]}
    held["majority"] = float(standard["majority"]) if "majority" in standard else np.nan
    return xr.Dataset(held, coords={"lens": list(found)}, attrs={"metric": main})


def _line(standard: xr.Dataset, other: xr.Dataset, main: str) -> dict[str, float]:
    """One attention against standard."""
    outputs = "logits" if "logits" in standard else "prediction"
    apart = np.abs(other[outputs].values.astype(float) - standard[outputs].values.astype(float))
    low, high = percentile_interval(_drawn_change(standard, other, main))
    line = {
        "score": float(other[main]),
        "score_low": float(other[f"{main}_low"]),
        "score_high": float(other[f"{main}_high"]),
        "score_change": float(other[main]) - float(standard[main]),
        "score_change_low": float(low),
        "score_change_high": float(high),
        "output_change": float(apart.max()),
    }
    return line | _changed(standard, other)


def _changed(standard: xr.Dataset, other: xr.Dataset) -> dict[str, float]:
    """How many predictions change, and by how much the best class led at most where one did.

    Numbers that are predicted have no classes to change between.
    """
    if "logits" not in standard:
        return {"changed": np.nan, "changed_margin": np.nan}
    changed = standard["prediction"].values != other["prediction"].values
    best = np.sort(standard["logits"].values.astype(float), axis=-1)
    lead = (best[:, -1] - best[:, -2])[changed]
    return {"changed": float(changed.sum()), "changed_margin": float(lead.max()) if len(lead) else 0.0}


def _drawn_change(standard: xr.Dataset, other: xr.Dataset, main: str) -> Array:
    """The change of the score over draws of the same examples for both."""
    label = standard["label"].values
    random = np.random.default_rng(0)
    places = random.integers(0, len(label), (metrics.DRAWS, len(label)))
    measure = {"accuracy": _accuracy, "pearson": _pearson}[main]
    first, second = (measure(label, each["prediction"].values)(places) for each in (standard, other))
    found: Array = second - first
    return found


def _accuracy(label: Any, prediction: Any) -> Any:
    right = (label == prediction).astype(float)
    return lambda places: right[places].mean(-1)


def _pearson(label: Any, prediction: Any) -> Any:
    def measured(places: Any) -> Array:
        x, y = (each.astype(float)[places] for each in (label, prediction))
        x, y = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
        found: Array = (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))
        return found

    return measured
