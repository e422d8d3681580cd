"""What the papers behind each lens say of it, as claims on two lenses, with thresholds set before anything was run."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.experiments import verdicts
from headscope.experiments.claims import Claim, JudgedClaim, Threshold

DATE = "2026-11-19"
AGREES = Threshold(
    "rank correlation with effects, less that of another lens",
    0.02,
    "",
    "less than one exchange of neighbors in a row of ten keys, and no reason to change the lens",
    DATE,
)
COVERS = Threshold(
    "share of the effect in the chosen edges, less that of another lens",
    0.02,
    "points",
    "a fiftieth of all that edges do",
    DATE,
)
UNSEEN = Threshold(
    "share of a map on edges that change nothing, less that of another lens",
    0.02,
    "points",
    "a fiftieth of what is drawn",
    DATE,
)
REMOVES = Threshold(
    "probability lost with the tokens that a lens names, less that with those of another",
    0.02,
    "points",
    "two points of the probability of the prediction",
    DATE,
)

HEADS, LAYERS = "edges of one head", "edges of all heads"
HIDDEN, SCORE = "last hidden state", "score"
RANDOM = "random"

Pair = tuple[str, str]
"""A lens, and the one that it is compared with."""


def make_claim(
    text: str, pair: Pair, quantity: str, where: Mapping[str, str], threshold: Threshold, source: str, **more: Any
) -> Claim:
    """Return the claim that a lens is better than another by one quantity."""
    place = {**where, "lens": pair[0], "than": pair[1]}
    return Claim(text, quantity, place, threshold=threshold, source=source, applies=_known(quantity, place), **more)


def _known(quantity: str, where: Mapping[str, str]) -> Callable[[xr.Dataset], str]:
    """Return a condition: a claim does not apply where its lenses were not measured, or cannot differ."""

    def applies(task: xr.Dataset) -> str:
        there = all(label in task[dim].values for dim, label in where.items())
        change = task[f"{quantity}_change"].sel(where).values if there else np.array(np.nan)
        if not np.isfinite(change).any():
            return "not measured on this model"
        if quantity == "removed" and float(task["score"]) <= float(task["majority"]):
            return "the model is right no more often than the most common label, so that it has no prediction to lose"
        if {"raw", "effective"} <= {where["lens"], where["than"]} and float(task["long_share"]) < LONG:
            return "most inputs have no more tokens than a head has value dimensions, so that the two are the same"
        return ""

    return applies


LONG = 0.5
"""Effective and raw attention are compared where at least this share of inputs has more than d tokens."""


def edge(judge: str, effect: str) -> dict[str, str]:
    """Return which edges are taken away, and what is then looked at."""
    return {"judge": judge, "effect": effect}


CLAIMS = (
    make_claim(
        "Effective attention orders edges more as the last hidden state does than raw attention.",
        ("effective", "raw"), "agreement", edge(HEADS, HIDDEN), AGREES, "sun2021", direction="rises",
    ),
    make_claim(
        "Effective attention orders edges more as the score does than raw attention.",
        ("effective", "raw"), "agreement", edge(HEADS, SCORE), AGREES, "sun2021", direction="rises",
    ),
    make_claim(
        "Less of an effective map than of a raw one is on edges that change nothing.",
        ("effective", "raw"), "unseen", edge(HEADS, HIDDEN), UNSEEN, "sun2021", direction="falls", percent=True,
    ),
    make_claim(
        "Norms order edges more as the last hidden state does than raw attention.",
        ("norm", "raw"), "agreement", edge(HEADS, HIDDEN), AGREES, "kobayashi2020", direction="rises",
    ),
    make_claim(
        "Norms order edges more as the score does than raw attention.",
        ("norm", "raw"), "agreement", edge(HEADS, SCORE), AGREES, "kobayashi2020", direction="rises",
    ),
    make_claim(
        "The edges that norms put first do more than those of raw attention.",
        ("norm", "raw"), "covered", edge(HEADS, HIDDEN), COVERS, "kobayashi2020", direction="rises", percent=True,
    ),
    make_claim(
        "Norms order edges more as the last hidden state does than effective attention.",
        ("norm", "effective"), "agreement", edge(HEADS, HIDDEN), AGREES, "", direction="rises",
    ),
    make_claim(
        "Attention × gradient orders edges more as the score does than norms.",
        ("gradient", "norm"), "agreement", edge(HEADS, SCORE), AGREES, "", direction="rises",
    ),
    make_claim(
        "ALTI orders edges of a layer more as the last hidden state does than norms of summed heads.",
        ("alti", "norm"), "agreement", edge(LAYERS, HIDDEN), AGREES, "ferrando2022", direction="rises",
    ),
    make_claim(
        "Value zeroing orders edges of a layer more as the last hidden state does than ALTI.",
        ("value zeroing", "alti"), "agreement", edge(LAYERS, HIDDEN), AGREES, "mohebbi2023", direction="rises",
    ),
    make_claim(
        "The tokens that rollout names take more of the score with them than random ones.",
        ("rollout", RANDOM), "removed", {}, REMOVES, "abnar2020", direction="rises", percent=True,
    ),
    make_claim(
        "The tokens of rollout over ALTI take more of the score with them than those of rollout.",
        ("rollout, alti", "rollout"), "removed", {}, REMOVES, "ferrando2022", direction="rises", percent=True,
    ),
    make_claim(
        "The tokens of relevance take more of the score with them than those of rollout.",
        ("relevance", "rollout"), "removed", {}, REMOVES, "chefer2021", direction="rises", percent=True,
    ),
    make_claim(
        "The tokens of rollout over effective attention take more of the score with them than those of rollout.",
        ("rollout, effective", "rollout"), "removed", {}, REMOVES, "", direction="rises", percent=True,
    ),
)  # fmt: skip
"""On every model and task."""


def judge_models(models: Mapping[str, xr.Dataset]) -> dict[str, list[JudgedClaim]]:
    """Judge every claim on every model, corrected for all verdicts."""
    return verdicts.judge_together({label: (CLAIMS, numbers) for label, numbers in models.items()})
