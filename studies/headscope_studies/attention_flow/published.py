"""What the authors' script for SST-2 computes, and what each of its departures from the text changes.

`compute_corel_distilbert_sst.py` of the paper's repository gives Table 3: its log `correlations_bert_sst_max` has the
printed numbers of raw attention and rollout; no log has those of flow. The text describes the row of [CLS] and says
no more; the script takes another row, other tokens, another gradient and another formula. `STEPS` goes from the text
to the script, one departure after the other.

Lists of correlations are emptied between layers in this script. In the one for verbs, `run_bert_sv.py`, they are not;
nothing here repeats that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from scipy.stats import rankdata

from headscope.core.example import Example
from headscope.core.lens import view
from headscope.engine.capture import stream
from headscope.engine.importances import importances
from headscope.engine.model import Model
from headscope.flow.solver import flow_maps
from headscope.uncertainty.correlation import spearman
from headscope_studies.attention_flow.paper import SHOWN
from headscope_studies.attention_flow.prediction_rows import FEWEST, average_heads, find_prediction_tokens, round_ties


def read_last_logit(output: Any) -> Any:
    """Return the logit of the last class: the test set of SST-2 has −1 for a label, and their script indexes by it."""
    return output.logits[:, -1]


GRADIENTS: Mapping[str, tuple[str, Any]] = {
    "norm, right class": ("input_gradient", "label"),
    "norm, fixed logit": ("input_gradient", read_last_logit),
    "sum, fixed logit": ("input_gradient:kind=sum,at=embeddings", read_last_logit),
}
"""Importance methods with their targets."""


@dataclass(frozen=True)
class Comparison:
    """How attention is compared with importances: which gradient, which tokens, which row, which ranks."""

    gradient: str = "norm, right class"
    special: bool = False
    rows: Literal["prediction", "largest"] = "prediction"
    ranks: Literal["average", "dense"] = "average"


STEPS: Mapping[str, Comparison] = {
    "as the text says": Comparison(),
    "special tokens count": Comparison(special=True),
    "largest weight of all rows": Comparison(special=True, rows="largest"),
    "gradient of a fixed logit": Comparison("norm, fixed logit", special=True, rows="largest"),
    "sum of the gradient, at the embeddings' output": Comparison("sum, fixed logit", special=True, rows="largest"),
    "dense ranks: the script": Comparison("sum, fixed logit", special=True, rows="largest", ranks="dense"),
}
SCRIPT = list(STEPS)[-1]


@dataclass(frozen=True)
class Reading:
    """What the script keeps of an input: attention averaged over heads, and the size of the gradient of each token."""

    attention: Float[np.ndarray, "layer token token"]
    gradients: Mapping[str, Float[np.ndarray, " token"]]
    special: Bool[np.ndarray, " token"]
    prediction: int  # the token that the prediction is read from


def read_inputs(
    model: Model, examples: Sequence[Example], *, max_length: int | None, batch_size: int = 16
) -> list[Reading]:
    """Return the readings of examples, in their order."""
    options: dict[str, Any] = {"max_length": max_length, "batch_size": batch_size}
    measured = {
        name: importances(model, list(examples), method, target=target, **options)
        for name, (method, target) in GRADIENTS.items()
    }
    special = next(iter(measured.values())).special
    readings: list[Reading] = []
    for trace in stream(model, list(examples), keep=("attention",), **options):
        weights, places = average_heads(view(trace, "raw")), find_prediction_tokens(trace.keys).tolist()
        for row, real in enumerate(trace.keys.real.cpu()):
            at, first = len(readings), int(real.int().argmax())
            gradients = {name: result.scores[at] for name, result in measured.items()}
            cut = weights[row][:, real][:, :, real].numpy()
            readings.append(Reading(cut, gradients, special[at], places[row] - first))
    return readings


def follow_layers(
    attention: Float[np.ndarray, "layer token token"],
) -> dict[str, Float[np.ndarray, "layer token token"]]:
    """Return raw attention, rollout and flow, each row of flow divided by its sum as in the script."""
    edges = attention + np.eye(attention.shape[-1])
    edges = edges / edges.sum(-1, keepdims=True)
    rollout = np.stack(list(accumulate(edges, lambda below, layer: layer @ below)))
    flow = np.concatenate(flow_maps(edges))
    return {"raw": attention, "rollout": rollout, "flow": flow / flow.sum(-1, keepdims=True)}


def correlate_maps(
    maps: Float[np.ndarray, "layer token token"], reading: Reading, comparison: Comparison
) -> Float[np.ndarray, " layer"]:
    """Return the rank correlation of each layer of a map with a gradient."""
    used = np.ones(len(reading.special), bool) if comparison.special else ~reading.special
    if used.sum() < FEWEST:
        return np.full(len(maps), np.nan)
    rows = maps.max(1) if comparison.rows == "largest" else maps[:, reading.prediction]
    weights = round_ties(rows)[:, used]
    wanted = np.broadcast_to(reading.gradients[comparison.gradient][used], weights.shape)
    return dense_rank_correlation(weights, wanted) if comparison.ranks == "dense" else spearman(weights, wanted)


def relate(readings: Sequence[Reading], ids: Sequence[str]) -> xr.Dataset:
    """Return the `step_correlation` of every input after each step, `example step lens layer`."""
    table = np.empty((len(readings), len(STEPS), len(SHOWN), len(readings[0].attention)))
    for at, reading in enumerate(readings):
        maps = follow_layers(reading.attention)
        for number, comparison in enumerate(STEPS.values()):
            table[at, number] = [correlate_maps(maps[lens], reading, comparison) for lens in SHOWN]
    layers = list(range(1, table.shape[-1] + 1))
    coords = {"example": list(ids), "step": list(STEPS), "lens": list(SHOWN), "layer": layers}
    return xr.Dataset({"step_correlation": (("example", "step", "lens", "layer"), table)}, coords)


def dense_rank_correlation(
    x: Float[np.ndarray, "*rows token"], y: Float[np.ndarray, "*rows token"]
) -> Float[np.ndarray, "*rows"]:
    """Return 1 − 6 Σd² / (n (n² − 1)) of dense ranks, as the script does.

    It is Spearman's correlation where neither side has ties. With ties it is not: two constant sides give 1.

    >>> float(dense_rank_correlation(np.array([1.0, 1.0, 1.0]), np.array([2.0, 2.0, 2.0])))
    1.0
    """
    n = x.shape[-1]
    difference = rankdata(x, "dense", axis=-1) - rankdata(y, "dense", axis=-1)
    return np.asarray(1 - 6 * (difference**2).sum(-1) / (n * (n**2 - 1)), float)
