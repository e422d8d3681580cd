"""The claims of Sun & Marasović (2021), §3 and appendix B, and of two papers before it, with their thresholds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.estimate import estimate
from headscope.experiments import verdicts
from headscope.experiments.claims import Claim, JudgedClaim, Threshold
from headscope.experiments.rendering.layers import name_least
from headscope.experiments.summary import pool_ratios
from headscope_studies.effective_attention.paper import LETTERS, SECONDS, SHAPE, SHARES

DATE = "2026-11-16"
WEIGHT = Threshold("change of a weight", 0.1, "% of the raw value", "a tenth; for all tokens, up, down and alike", DATE)
SHARE = Threshold(
    "share of maps",
    0.05,
    "points",
    "the paper's 1,000 maps cannot show less: two standard errors of a "
    "difference of two shares of 1,000 maps are up to 4.5 points",
    DATE,
)
SPREAD = Threshold("change of dispersion", 0.095, "nats", "a tenth more tokens, as exp(0.095) is 1.1", DATE)
TWICE = Threshold("twice the time", 0.5, "×", "1.5 to 2.5 is what rounds to 2; set after times had been seen", DATE)
SIGN = Threshold("margin", 0.0, "", "its sign: above 0 exactly where the order is as claimed; never scaled", DATE)
TWINS = 1e-3  # two weights that differ by a smaller fraction are the same
SEVERAL = ("max", "mean", "sum")  # of several tokens of a type; the first is the paper's choice
FEWEST = 50
"""No verdict on fewer inputs: simultaneous intervals of skewed weights miss too often there (tests simulate it)."""

SKEWNESS = 2.0
"""Simultaneous intervals allow for inputs as skewed as an exponential distribution."""

MEANS: dict[str, Any] = {"fewest": FEWEST, "skewness": SKEWNESS}
COLLAPSE_RULE = (
    "a seed is left out of a task where its tuned model is right no more often than the most common label (set on "
    "2026-11-19, with scores known, before verdicts were)"
)
BOTH: dict[str, Any] = {"exact": ("effective",), "published": ("paper",), "contrast": "padding", **MEANS}
THEIRS: dict[str, Any] = {"source": "sun2021", **BOTH}


def _claim_share(text: str, pattern: str, direction: Any) -> Claim:
    column = list(LETTERS).index(pattern)
    theirs = {task: f"{raw[column]} → {effective[column]} %" for task, (raw, effective) in SHARES.items()}
    where = {"pattern": pattern}
    return Claim(text, COUNTED, where, direction, threshold=SHARE, theirs=theirs, percent=True, **THEIRS)


def _claim_raw(text: str, pattern: str, bounds: tuple[float, float]) -> Claim:
    return Claim(
        text,
        "share",
        {"pattern": pattern},
        "within",
        threshold=SHARE,
        bounds=bounds,
        percent=True,
        exact=("raw",),
        source="kovaleva2019",
        **MEANS,
    )


def _claim_weight(text: str, axis: str, label: str, direction: Any) -> Claim:
    """A claim on the weight on a type of token from [CLS] in the last layer, or on a token from all others."""
    quantity = "type_weight" if axis == "type" else "weight"
    where = {axis: label, "size": "signed", "several": "max"}

    def applies(task: xr.Dataset) -> str:
        return "" if np.isfinite(float(task[quantity].sel({**where, "lens": "raw"}))) else f"no {label} there"

    return Claim(text, quantity, where, direction, threshold=WEIGHT, relative=True, applies=applies, **THEIRS)


def find_twins(task: xr.Dataset) -> str:
    """Return that [CLS] gives itself and [SEP] the same weight in the last layer, where it does."""
    weights = task["type_weight"].sel(size="signed", several="max", lens="raw")
    cls, sep = (float(weights.sel(type=kind)) for kind in ("cls", "sep"))
    return "[CLS] and [SEP] have the same weight" if abs(cls - sep) < TWINS * abs(cls) else ""


def _format_ranks(task: xr.Dataset, lenses: tuple[str, ...] = ("raw",)) -> str:
    weights = abs(task["type_weight"].sel(size="signed", several="max", lens=list(lenses)))
    ranks = (weights > weights.sel(type="sep")).sum("type") + 1
    return f"rank {' → '.join(str(int(rank)) for rank in ranks)} of six"


def _cannot_lose(task: xr.Dataset) -> str:
    """Where [SEP] is not shown to lead, it has no rank to lose."""
    leads = float(estimate(task, "sep_margin").sel(lens="raw").ends[1]) > 0
    return find_twins(task) or ("" if leads else f"{_format_ranks(task)} with raw attention")


COUNTED = "counted"  # the variable of shares that claims on patterns are judged by


def judge_corrected_shares() -> tuple[Claim, ...]:
    """Return the claims, those on patterns by shares that are corrected for the errors of the classifier."""
    return tuple(replace(claim, quantity="share") if claim.quantity == COUNTED else claim for claim in CLAIMS)


PATTERNS = (
    _claim_share("Vertical patterns fall.", "vertical", "falls"),
    _claim_share("Vertical + diagonal patterns fall.", "vertical_diagonal", "falls"),
    _claim_share("Block patterns rise.", "block", "rises"),
    _claim_share("Diagonal patterns rise.", "diagonal", "rises"),
    _claim_share("Heterogeneous patterns do not change notably.", "heterogeneous", "same"),
)
SINK = Claim("The sink loses weight from all others (ours).", "sink_mean", threshold=WEIGHT, relative=True, **BOTH)
LOSES = {
    "the sink": SINK,
    "[SEP]": _claim_weight("[SEP] loses weight from all other tokens.", "token", "sep", "falls"),
    "[CLS]": _claim_weight("[CLS] loses weight from all other tokens.", "token", "cls", "falls"),  # not the paper's
    "punctuation": _claim_weight("Punctuation loses weight too.", "type", "punctuation", "falls"),
}
LEADS = Claim(
    "[SEP] is among the two types that [CLS] attends to most, on all tasks but QNLI.",
    "sep_margin",
    direction="above",
    threshold=SIGN,
    exact=("raw",),
    but_on=("QNLI",),
    applies=find_twins,
    source="sun2021",
    figures=_format_ranks,
    **MEANS,
)
LOSES_LEAD = Claim(
    "With effective attention [SEP] loses that rank, on all tasks but SST-2.",
    "sep_margin",
    direction="below",
    threshold=SIGN,
    but_on=("QNLI", "SST-2"),
    applies=_cannot_lose,
    figures=partial(_format_ranks, lenses=("raw", "effective", "paper")),
    **THEIRS,
)
ALIKE = (
    _claim_weight("[CLS] attends to itself alike in the last layer.", "type", "cls", "same"),
    _claim_weight("[CLS] is attended to alike from all other tokens.", "token", "cls", "same"),
)
GAINS = tuple(
    _claim_weight(f"{kind.capitalize()}s gain weight.", "type", kind, "rises") for kind in ("noun", "pronoun", "verb")
)
LAYERS = Claim(
    "The last two layers change most with fine-tuning, under both attentions.",
    "layer_margin",
    direction="above",
    threshold=SIGN,
    exact=("raw", "effective"),
    published=("raw", "paper"),
    contrast="padding",
    **MEANS,
    source="sun2021",
    figures=partial(name_least, name="similarity_layer", lenses=("raw", "effective")),
    applies=lambda task: "" if task.sizes["layer"] > 2 else "there are no other layers",
)
EARLIER = (
    Claim(
        "Effective attention is more dispersed (Brunner et al., 2020).",
        "dispersion",
        {},
        "rises",
        threshold=SPREAD,
        source="brunner2020",
        **BOTH,
    ),
    _claim_raw("32 to 61 % of raw maps are heterogeneous (Kovaleva et al., 2019).", "heterogeneous", (0.32, 0.61)),
    _claim_raw("About 30 % of raw maps are vertical (Kovaleva et al., 2019).", "vertical", (0.30, 0.30)),
)
CLAIMS = (*PATTERNS, LEADS, LOSES_LEAD, LOSES["punctuation"], *GAINS, LOSES["[SEP]"], *ALIKE, LAYERS, *EARLIER, SINK)
TIME = Claim(
    "Evaluation takes twice the time.",
    "ratio",
    {"way": "svd"},
    "within",
    threshold=TWICE,
    bounds=(2.0, 2.0),
    theirs={"all tasks": " to ".join(f"{end:.2f}×" for end in sorted(b / a for a, b in SECONDS.values())[::4])},
    applies=lambda task: str(task["unfair"].values),
    figures=lambda task: str(task["text"].sel(way="svd").values),
    source="sun2021",
    fewest=2,  # tasks, not inputs
)


def judge_claims(numbers: xr.Dataset, times: xr.Dataset | None = None, several: str = "max") -> list[JudgedClaim]:
    """Judge every claim on the tuned model; that on time does not apply unless the model has BERT-base's shape."""
    shape = numbers.sizes["layer"], numbers.sizes["head"], int(numbers["value_size"].values.flat[0])
    judged = judge_models({"": numbers}, times, several=several, shape=shape)
    return [claim for claims in judged.values() for claim in claims]


def judge_models(
    models: Mapping[str, xr.Dataset],
    times: xr.Dataset | None = None,
    *,
    several: str = "max",
    shape: Any = SHAPE,
    claims: Sequence[Claim] = CLAIMS,
    corrected: bool = True,
) -> dict[str, list[JudgedClaim]]:
    """Judge claims on the tuned models, corrected for all verdicts, and that on time as if it were a model.

    With `corrected` false each interval stands alone.
    """
    chosen = verdicts.replace_where(claims, several=several)
    groups = {label: (chosen, numbers.sel(role="tuned", length="all")) for label, numbers in models.items()}
    if times is not None:
        unfair = "" if shape == SHAPE else "the model has not BERT-base's shape"
        unfair = unfair if times.attrs["device"] == "cpu" else "the released code cannot run on a GPU"
        groups["time"] = ([TIME], pool_ratios(times).assign(unfair=unfair))
    if corrected:
        return verdicts.judge_together(groups)
    return {label: verdicts.judge_all(every, numbers, tests=1) for label, (every, numbers) in groups.items()}
