"""The claims of Niven & Kao (2019) as data, with thresholds that were set before any model was trained for them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.experiments import verdicts
from headscope.experiments.claims import Claim, JudgedClaim, Threshold
from headscope_studies.argument_cues.answers import TUNED
from headscope_studies.argument_cues.data import ARCT
from headscope_studies.argument_cues.paper import BERT_BEST
from headscope_studies.argument_cues.parts import ALL, BALANCED

DATE = "2026-11-16"
ABOVE = Threshold(
    "accuracy above chance",
    0.03,
    "points",
    "what 444 points can show of a share near one half with one seed is 4.7 points, with ten seeds about 3",
    DATE,
)
GAIN = Threshold("gain by another text", 0.02, "points", "half of the paper's gain by the reason, 75 over 71", DATE)
WHOLE = Threshold("accuracy beyond the gains of single texts", 0.03, "points", "as for accuracy above chance", DATE)
FOLLOWS = Threshold(
    "share that follows the cue, above chance",
    0.05,
    "points",
    "a twentieth of the points with the cue; the paper gives no number",
    DATE,
)
EFFECT = Threshold(
    "accuracy where the cue points right, less where it points wrong",
    0.1,
    "points",
    "twice the threshold of following, because both sides move",
    DATE,
)
CHANCE = Threshold("accuracy on the adversarial set, from chance", 0.03, "points", ABOVE.reason, DATE)
LEARNED = Threshold(
    "accuracy of trainings on their own examples, above chance",
    0.1,
    "points",
    "of 500 examples 4.4 points are what chance gives; a network that answers by one cue has 15 or more",
    "2026-11-19",
)
"""A claim on trainings that learned less does not apply: being at chance elsewhere would say nothing."""

HEAD = Threshold(
    "difference of attention to the cue",
    0.02,
    "",
    "two hundredths of all attention of a row, about what one of 50 tokens gets",
    DATE,
)
OURS: dict[str, Any] = {"percent": True, "source": "niven2019"}


def make_claims(alone: str, texts: tuple[str, ...], judged: str) -> tuple[Claim, ...]:
    """Return the claims on data with these parts and sets; what the data lack does not apply.

    `alone` is the part that should not be enough, `texts` the parts with one text more.
    """
    at = {"network": TUNED, "set": judged}
    first, second = (*texts, ALL, ALL)[:2]
    best = {part: f"{100 * value:.0f} % at best" for part, value in BERT_BEST.items()}
    return (
        Claim(
            f"Trained on one part of the input alone ({alone}), the model does better than chance.",
            "above_chance",
            {**at, "part": alone},
            "rises",
            threshold=ABOVE,
            theirs={"ARCT": best.get(alone, "")},
            **OURS,
            applies=_known("above_chance_change", {**at, "part": alone}, alone != ALL),
        ),
        Claim(
            f"With another text ({first}) it does better.",
            "gain",
            {**at, "part": first},
            "rises",
            threshold=GAIN,
            theirs={"ARCT": best.get(first, "")},
            applies=_known("gain_change", {**at, "part": first}),
            **OURS,
        ),
        Claim(
            f"With the other text ({second}) it does better.",
            "gain",
            {**at, "part": second},
            "rises",
            **OURS,
            threshold=GAIN,
            applies=_known("gain_change", {**at, "part": second}, second not in (first, ALL)),
        ),
        Claim(
            "The whole input gains no more than its texts do one by one.",
            "unexplained",
            {**at, "part": ALL},
            "same",
            threshold=WHOLE,
            applies=_known("unexplained_change", {**at, "part": ALL}),
            **OURS,
        ),
        Claim(
            "Its answers follow the cue.",
            "follow",
            {**at, "part": ALL},
            "rises",
            threshold=FOLLOWS,
            applies=_known("follow_change", {**at, "part": ALL}),
            **OURS,
        ),
        Claim(
            "It is better where the cue points right than where it points wrong.",
            "cue_effect",
            {**at, "part": ALL},
            "rises",
            threshold=EFFECT,
            applies=_known("cue_effect_change", {**at, "part": ALL}),
            **OURS,
        ),
        Claim(
            "Where no single word tells the answer, it is at chance.",
            "fair",
            {"trained": "as it is"},
            "same",
            threshold=CHANCE,
            applies=_known("fair_change", {"trained": "as it is"}),
            **OURS,
        ),
        Claim(
            "Trained where no single word tells the answer, it is at chance there.",
            "fair",
            {"trained": "balanced"},
            "same",
            threshold=CHANCE,
            applies=_known("fair_change", {"trained": "balanced"}),
            **OURS,
        ),
        Claim(
            "In some head attention to the cue differs between points got by the cue and others.",
            "head_difference",
            {"lens": "raw", "query": "cls"},
            "rises",
            threshold=HEAD,
            source="",
            applies=_known("head_difference_change", {"lens": "raw", "query": "cls"}),
            figures=name_head,
        ),
    )


def _known(name: str, where: Mapping[str, str], sensible: bool = True) -> Any:
    """Return a condition: a claim does not apply where its quantity is not known."""

    def applies(task: xr.Dataset) -> str:
        there = name in task and all(dim in task.dims and label in task[dim].values for dim, label in where.items())
        known = sensible and there and bool(np.isfinite(task[name].sel(where).values).all())
        return find_unlearned(task, where) if known else "these data or runs have no such number"

    return applies


def find_unlearned(task: xr.Dataset, where: Mapping[str, str]) -> str:
    """Return why the trainings behind a claim cannot be judged: they hardly learned their own examples; or nothing.

    Trainings are those of the model with the part of the claim that did not fail.
    """
    part = where.get("part", BALANCED if where.get("trained") == "balanced" else ALL)
    if part not in task["part"]:
        return ""
    runs = task.sel(network=TUNED, part=part)
    learned = float(runs["run_learned"].where(~runs["run_failed"].astype(bool)).mean())
    least = float(runs["chance"].sel(set=str(task["judged"].item()))) + LEARNED.value
    if not learned < least:
        return ""
    return f"trainings have {100 * learned:.0f} % of their own examples right, less than {100 * least:.0f} %"


def name_head(task: xr.Dataset) -> str:
    """Return the head with the largest difference, such as L3H7."""
    part = task.sel(lens="raw", query="cls")
    return f"L{int(part['best_layer'])}H{int(part['best_head'])}"


def find_claims(numbers: xr.Dataset) -> tuple[Claim, ...]:
    """Return the claims on the parts and sets of these numbers; texts of a classification are no additions."""
    if numbers["task"].values.tolist() == [ARCT]:
        return CLAIMS  # whatever parts were run
    parts = [part for part in numbers["part"].values.tolist() if part not in (ALL, BALANCED)]
    alone, *texts = parts or [ALL]
    return make_claims(alone, tuple(texts) if numbers["choices"].max() > 0 else (), str(numbers["judged"].values[0]))


CLAIMS = make_claims("warrant", ("reason + warrant", "claim + warrant"), "test")
"""On ARCT."""


def judge_models(models: Mapping[str, xr.Dataset]) -> dict[str, list[JudgedClaim]]:
    """Judge every claim on every model, corrected for all verdicts."""
    return verdicts.judge_together({label: (find_claims(numbers), numbers) for label, numbers in models.items()})
