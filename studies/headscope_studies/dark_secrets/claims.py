"""The claims of Kovaleva et al. (2019) as data, with thresholds that were set before any model was measured."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.experiments import verdicts
from headscope.experiments.claims import Claim, JudgedClaim, Threshold
from headscope.experiments.relation_heads import ENCODED, name_best_head
from headscope.experiments.rendering.layers import name_least
from headscope.experiments.summary import list_tasks
from headscope_studies.dark_secrets import paper
from headscope_studies.dark_secrets.disabled import name_best
from headscope_studies.dark_secrets.semantic import SAME

DATE = "2026-11-16"
SHARE = Threshold(
    "share of maps",
    0.05,
    "points",
    "two standard errors of a difference of two shares of 1,000 maps are up to 4.5 points",
    DATE,
)
THIRD = Threshold(
    "share of heads, or of maps", 1 / 3, "%", "at least a third, as summaries of the paper say", "2026-11-19"
)
SIGN = Threshold("margin", 0.0, "", "its sign: above 0 exactly where the order is as claimed; never scaled", DATE)
GAIN = Threshold(
    "gain by disabling",
    0.005,
    "points",
    "half a point, one or two inputs of the smallest dev set; the paper draws its gains as colours",
    DATE,
)
HARDLY = Threshold("mean change of the score", 0.01, "points", "one point, what a table with two digits shows", DATE)
UNHURT = Threshold(
    "change without a layer", -0.01, "points", "a loss of one point, what a table with two digits shows", DATE
)
PRETRAINED = Threshold(
    "gain by pretraining",
    0.05,
    "points",
    "two standard errors of a difference of two accuracies near 0.7 on 800 inputs are 4.6 points",
    DATE,
)
LEARNED = Threshold(
    "gain over the most common label", 0.05, "points", "as for pretraining, so that both gains are judged alike", DATE
)
ENCODES = Threshold(
    "weight above that at the same distance",
    ENCODED,
    "",
    "a tenth of all attention of a word; the paper draws weights as colours",
    DATE,
)
FEW = Threshold("share of heads", 0.1, "points", "a tenth of the heads; the paper gives no number for few", DATE)
OURS: dict[str, Any] = {"percent": True, "source": "kovaleva2019"}


def _unknown(name: str, reason: str) -> Any:
    """Return a condition: a claim does not apply where its quantity is not known."""
    return lambda task: "" if np.isfinite(task[f"{name}_change"].values.astype(float)).all() else reason


CLAIMS = (
    Claim(
        "At least a third of the heads attend simply to [CLS] and [SEP].",
        "special_share",
        direction="above",
        threshold=THIRD,
        applies=lambda task: (
            "" if "special_share" in task and task["special_share"].notnull().all() else "not measured"
        ),
        **OURS,
    ),
    Claim(
        "At least a third of all maps are vertical.",
        "share",
        {"pattern": "vertical"},
        "above",
        threshold=THIRD,
        exact=("raw",),
        **OURS,
    ),
    Claim(
        "32 to 61 % of all maps are heterogeneous.",
        "share",
        {"pattern": "heterogeneous"},
        "within",
        threshold=SHARE,
        bounds=paper.HETEROGENEOUS,
        exact=("raw",),
        **OURS,
    ),
    Claim(
        "The last two layers change most with fine-tuning.",
        "layer_margin",
        direction="above",
        threshold=SIGN,
        exact=("raw",),
        source="kovaleva2019",
        applies=lambda task: "" if task.sizes["layer"] > 2 else "there are no other layers",
        figures=lambda task: name_least(task, "similarity_layer", ["raw"]),
    ),
    Claim(
        "Disabling one head hardly changes the score, on average over heads.",
        "mean_head",
        {},
        "same",
        threshold=HARDLY,
        **OURS,
    ),
    Claim(
        "Disabling some head improves the score.",
        "best_head",
        {},
        "rises",
        threshold=GAIN,
        figures=lambda task: name_best(task, "head"),
        **OURS,
    ),
    Claim(
        "Disabling some whole layer improves the score.",
        "best_layer",
        {},
        "rises",
        threshold=GAIN,
        figures=lambda task: name_best(task, "layer"),
        **OURS,
    ),
    Claim(
        "Some whole layer can be disabled without loss.",
        "best_layer_change",
        {},
        "above",
        threshold=UNHURT,
        figures=lambda task: name_best(task, "layer"),
        source="kovaleva2019",
    ),
    Claim(
        "Fine-tuned from pretrained weights, the model is better than from random ones.",
        "pretraining_gain",
        {},
        "rises",
        threshold=PRETRAINED,
        applies=_unknown("pretraining_gain", "the model was fine-tuned before the study"),
        **OURS,
    ),
    Claim(
        "Fine-tuned from random weights, the model still learns the task, on all tasks but STS-B.",
        "random_gain",
        {},
        "rises",
        threshold=LEARNED,
        but_on=("STS-B",),
        theirs={"SST-2": f"accuracy {paper.SST_FROM_RANDOM:.2f}"},
        applies=_unknown("random_gain", "there is no most common label, or the model was fine-tuned before"),
        **OURS,
    ),
)
RELATION_CLAIMS = (
    Claim(
        "Some head attends to the words of a relation more than their distance explains.",
        "best_gain",
        {},
        "rises",
        threshold=ENCODES,
        figures=name_best_head,
        source="kovaleva2019",
    ),
    Claim("Few heads do.", "encoding", {}, "below", threshold=FEW, **OURS),
)
"""Judged on relations in place of tasks."""


def judge_claims(numbers: xr.Dataset, **related: xr.Dataset) -> dict[str, list[JudgedClaim]]:
    """Judge the claims on tasks, and those on `relations` and `semantic` links, corrected for all of these verdicts."""
    return judge_models({"": numbers}, {name: {"": data} for name, data in related.items()})


def judge_models(
    models: Mapping[str, xr.Dataset], related: Mapping[str, Mapping[str, xr.Dataset]]
) -> dict[str, list[JudgedClaim]]:
    """Judge every claim on every model, corrected for all verdicts; those on related words as if they were models.

    `related` are the results of every model on each kind of related words, `relations` or `semantic`.
    """
    groups: dict[str, tuple[Sequence[Claim], xr.Dataset]] = {
        label: (CLAIMS, numbers) for label, numbers in models.items()
    }
    for kind, results in related.items():
        for label, numbers in results.items():  # to find a word again is no link of meaning
            links = numbers.sel(task=[task for task in list_tasks(numbers) if task != SAME])
            groups[name_related(kind, label)] = RELATION_CLAIMS, links
    return verdicts.judge_together(groups)


def name_related(kind: str, label: str) -> str:
    """Return the name of the verdicts on one kind of related words of a model."""
    return f"{kind} {label}".strip()
