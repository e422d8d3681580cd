"""Scores of a model on its task under edits of its attention, and how its predictions change."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.ablation.changes import compare_scores
from headscope.core.estimate import name_ends
from headscope.core.example import Example
from headscope.engine.edited import make_edits
from headscope.engine.model import Model
from headscope.training.labels import find_majority
from headscope.training.scoring import prepare_scoring
from headscope.training.task import Answers


def score_edits(
    model: Model,
    examples: Sequence[Example],
    edits: Mapping[str, Any],
    *,
    batch_size: int = 32,
    max_length: int | None = None,
    pad_to: int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Score a model under each edit; the first is the baseline that the others are compared with.

    `edits` are by the labels that they get along `lens`; None is the model as it is. The change of the score has a
    paired bootstrap interval, as in `hs.ablate`.
    """
    sizes: dict[str, Any] = {"batch_size": batch_size, "max_length": max_length, "pad_to": pad_to}
    job = prepare_scoring(model, list(examples), task="auto", **sizes)
    answers = [job.answer(make_edits(edit), quiet=not progress) for edit in edits.values()]
    scores = [job.task.compute_metrics(found)[job.task.main] for found in answers]
    compared = compare_scores(scores[0], scores)
    columns = name_ends("score", np.array([(score.value, *score.interval()) for score in scores]).T)
    columns |= {f"score_{name}": values for name, values in compared.items() if name != "change_p"}
    outputs = [_compare_outputs(answers[0], found) for found in answers]
    columns |= {name: [output[name] for output in outputs] for name in outputs[0]}
    variables: dict[str, Any] = {name: ("lens", values) for name, values in columns.items()}
    variables["majority"] = find_majority(answers[0]["label"])[1] if "logits" in answers[0] else np.nan
    return xr.Dataset(variables, coords={"lens": list(edits)}, attrs={"metric": job.task.main})


def _compare_outputs(baseline: Answers, other: Answers) -> dict[str, float]:
    """Return how far the outputs move from those of the baseline; what only classes have is NaN for regression."""
    has_logits = "logits" in baseline
    before, after = (answers["logits" if has_logits else "prediction"].astype(float) for answers in (baseline, other))
    changed, ordered = baseline["prediction"] != other["prediction"], np.sort(before, axis=-1)
    lead = (ordered[changed, -1] - ordered[changed, -2]) if has_logits else None
    return {
        "output_change": float(np.abs(after - before).max()),
        "changed": np.nan if lead is None else float(len(lead)),
        "changed_margin": np.nan if lead is None else float(lead.max(initial=0.0)),
    }
