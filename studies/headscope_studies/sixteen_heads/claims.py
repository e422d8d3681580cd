"""The claims of Michel et al. (2019) as data. Each threshold was set before any model was measured."""

from math import inf
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.estimate import estimate, interval_names
from headscope.experiments.claims import Claim, Threshold
from headscope.results.accuracies import select_adjusted_p
from headscope.uncertainty.intervals import wilson_interval
from headscope_studies.sixteen_heads.paper import COLLAPSE, CROSS, PRUNED, PRUNED_TRANSLATION

ALL = "all"
"""All sites of a model that translates, together."""

MOST, NOTABLE, SMALL, HALF = 0.5, 0.05, 0.01, 0.5
EARLY, EARLY_CORRELATION = 20, 0.7
RELATED = 0.3
COMPARED = 50
"""Percent of heads pruned, at which orders are compared."""

THRESHOLDS = {
    name: Threshold(text, value, unit, why, "2026-11-16")
    for name, (text, value, unit, why) in {
        "most": ("most heads, or layers", MOST, "%", "most is more than half"),
        "kept": (
            "score left without notable loss",
            1 - NOTABLE,
            "%",
            "a loss of 5 % of the score, about that of a smaller model of the same kind, is notable",
        ),
        "collapse": ("score left after a collapse", HALF, "%", "less than half of the score is left"),
        "order": ("gain over random orders", 0.0, "", "any gain counts: the paper prints none"),
        "early": (
            "correlation with the final importance",
            EARLY_CORRELATION,
            "",
            "half of the variance of ranks, 0.7²",
        ),
        "related": ("correlation of heads", RELATED, "", "a medium correlation by the usual convention"),
    }.items()
}
CORRELATIONS = ("early", "related")
"""Thresholds of correlations, which are between −1 and 1."""


def _claim(
    text: str, quantity: str, direction: Any, threshold: str, where: dict[str, Any] | None = None, **more: Any
) -> Claim:
    def applies(task: xr.Dataset) -> str:
        if "majority" in task and float(estimate(task, "score").ends[1]) <= float(task["majority"]):  # NaN for numbers
            return "the model is not shown to have learned the task"
        chosen = more.get("sites")
        if chosen is not None and str(task["task"].values) not in chosen:
            return "a claim on the whole model" if chosen == (ALL,) else "a claim on other sites"
        if quantity not in task or any(label not in task[dim].values for dim, label in (where or {}).items()):
            return "not measured"
        return "" if bool(task[quantity].sel(where or {}).notnull().any()) else more.get("missing", "not measured")

    return Claim(
        text,
        quantity,
        where or {},
        direction,
        threshold=THRESHOLDS[threshold],
        percent=threshold == "most",
        limits=(-1.0, 1.0) if threshold in CORRELATIONS else (-inf, inf),
        applies=applies,
        source="michel2019",
    )


MANY_HEADS = (
    (
        "Most heads can be removed, one at a time, without a significant change of the score.",
        "significant_share",
        "below",
        "most",
    ),
    ("Most heads change the score by less than 1 % when they are removed.", "small_share", "above", "most"),
    ("One head is enough in most layers.", "enough_share", "above", "most"),
    ("One head in every layer, and no other, is not enough.", "single", "below", "kept"),
)
"""Claims on all heads of a model."""

ORDERED = (
    _claim(
        "Pruning by importance keeps more of the score than random pruning, at half of the heads.",
        "gain",
        "above",
        "order",
    ),
    _claim(
        "Importance orders heads as the effect of their removal does.",
        "agreement",
        "above",
        "related",
        {"reduction": "example"},
        missing="no head changes the score, with some seed",
    ),
)
"""Claims on the order of heads, at every site."""

DETERMINED = _claim(
    f"Important heads are determined early: after {EARLY} % of training their order is that of the end.",
    "determined",
    "above",
    "early",
    {"trained": EARLY},
    missing="no models during training",
)
CLAIMS = (
    *(_claim(*claim) for claim in MANY_HEADS),
    _claim(
        f"{PRUNED} % of the heads can be pruned by importance without notable loss.",
        "kept",
        "above",
        "kept",
        {"order": "importance", "pruned": PRUNED},
    ),
    *ORDERED,
    _claim(
        "Heads have the same effects on another dataset of the task.",
        "effect_correlation",
        "above",
        "related",
        {"parts": "groups"},
        missing="the data has no groups",
    ),
    DETERMINED,
)
TRANSLATION_CLAIMS = (
    _claim("The last encoder–decoder layer needs more than one head.", "last", "below", "kept", sites=(CROSS,)),
    *(_claim(*claim, sites=(ALL,)) for claim in MANY_HEADS),
    _claim(
        f"{PRUNED_TRANSLATION} % of the heads can be pruned by importance without notable loss.",
        "kept",
        "above",
        "kept",
        {"order": "importance", "pruned": PRUNED_TRANSLATION},
        sites=(ALL,),
    ),
    _claim(
        f"Without {COLLAPSE} % of encoder–decoder heads, translation collapses.",
        "kept",
        "below",
        "collapse",
        {"order": "importance", "pruned": COLLAPSE},
        sites=(CROSS,),
    ),
    _claim(
        f"Without {COLLAPSE} % of self-attention heads, translation survives.",
        "kept",
        "above",
        "collapse",
        {"order": "importance", "pruned": COLLAPSE},
        sites=("encoder", "decoder"),
    ),
    *ORDERED,
    DETERMINED,
)


SHARES = ("significant_share", "raw_share", "paper_share", "small_share", "enough_share")
"""Shares of heads, and the last of layers."""


def complete_sites(sites: xr.Dataset) -> xr.Dataset:
    """Return the numbers of a model that translates with what follows from them.

    `last` is the share of the score that is left with the best head of the last layer alone. Shares of heads and layers
    at `all` are those of all sites together that were scored on as many sentences, with Wilson's intervals.
    """
    sites = sites.assign(left_alone(sites, "last", {"layer": int(sites["layer"].max())}))
    if ALL not in sites["task"].values:
        return sites
    counts = sites["n"].max("seed") if "seed" in sites["n"].dims else sites["n"]
    alike = (counts == counts.sel(task=ALL)) & (sites["task"] != ALL)
    parts = sites.sel(task=sites["task"].values[alike.values])
    for name in (name for name in SHARES if name in sites):
        count = parts.sizes["task"] * sites.sizes["layer"] * (1 if name == SHARES[-1] else sites.sizes["head"])
        share = parts[name].mean("task", skipna=False)
        for end, value in zip(interval_names(name), [share, *_wilson(share, count)], strict=True):
            sites[end] = sites[end].where(sites["task"] != ALL, value)
    return sites


def left_alone(sites: xr.Dataset, name: str, layers: dict[str, int] | None = None) -> dict[str, xr.DataArray]:
    """Return the share of the score that is left with the best head of a layer alone, with its interval, under a name.

    Scores are those of the same half of the inputs, and of all inputs where they are not known.
    """
    score = sites["alone_score"].fillna(sites["score"]) if "alone_score" in sites else sites["score"]
    ends = [1 + sites[end].sel(layers or {}, drop=True) / score for end in interval_names("best_change")]
    return dict(zip(interval_names(name), ends, strict=True))


def complete_tasks(numbers: xr.Dataset) -> xr.Dataset:
    """Return the numbers of a fine-tuned model; `single` is what a tenth of the heads leaves where it is not known."""
    tenth = {end: numbers[end].sel(order="importance", pruned=90, drop=True) for end in interval_names("kept")}
    names = dict(zip(interval_names("single"), interval_names("kept"), strict=True))
    return numbers.assign(
        {name: numbers.get(name, np.nan * tenth[end]).fillna(tenth[end]) for name, end in names.items()}
    )


def _wilson(share: xr.DataArray, count: int) -> tuple[xr.DataArray, xr.DataArray]:
    ends = np.array([wilson_interval(round(float(value) * count), count) for value in share.values.ravel()])
    low, high = ends.T.reshape(2, *share.shape)
    return share.copy(data=low), share.copy(data=high)


def enough(best: xr.Dataset, score: float, level: float) -> xr.DataArray:
    """Return in which layers one head is enough: no significant loss, and no notable one."""
    lost = (best["best_change"] < 0) & (select_adjusted_p(best, "best") < level)
    return ~lost & (best["best_change"] >= -NOTABLE * abs(score))
