"""The claims of Clark et al. (2019) as data, with thresholds that were set before the runs that are reported."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.experiments import verdicts
from headscope.experiments.claims import Claim, JudgedClaim, Threshold
from headscope_studies.what_heads_look_at import paper
from headscope_studies.what_heads_look_at.no_op import begin_sentence
from headscope_studies.what_heads_look_at.surface import BROAD, HALF

DATE = "2026-11-16"
MOST = Threshold("share of a head's attention", HALF, "points", "more than half, the paper's own count of heads", DATE)
SEP_HALF = Threshold("share of attention on [SEP]", 0.5, "points", "over half, as the paper says of L5 to L9", DATE)
SEP_ALL = Threshold(
    "share of [SEP]'s attention on [SEP]", paper.SEP_TO_SEP, "points", "more than 90 %, the paper's number", DATE
)
TENTH = Threshold("largest weight of a row", BROAD, "", "at most 10 % on any single token, the paper's number", DATE)
SIGN = Threshold("lead", 0.0, "", "its sign: above 0 exactly where the order is as claimed; never scaled", DATE)
CLOSE = Threshold(
    "difference of entropies", 0.5, "nats", "very close, in the paper; half a nat is an eighth of log 50", DATE
)
EQUAL = Threshold(
    "weight over that of an ordinary token", 1.0, "×", "a token is no more than an ordinary one below it", DATE
)
LATER = "2026-11-19"
"""After the first results had been seen: the claims of the slides were added, and judged by effects rather than p."""

SPECIAL = Threshold("share of attention on special tokens", HALF, "points", "more than half, as the slides say", LATER)
ALIKE = Threshold(
    "distance of heads of different layers over that of one layer, minus 1",
    0.1,
    "",
    "a tenth further apart; the paper gives no number",
    LATER,
)
FROM_CLS = Threshold(
    "distance of heads in the row of [CLS] over that in all rows",
    0.5,
    "×",
    "half as far apart; the slides give no number. Set before it was measured",
    LATER,
)
RELATION = Threshold(
    "gain over the best fixed offset", 0.05, "points", "two standard errors of a share of 400 words are 5 points", DATE
)
BRANCHING = Threshold(
    "gain over right-branching", 0.1, "points", "the paper calls 34.5 over 26.3 %, 8 points, not much better", LATER
)
ADDED = Threshold("gain in UAS over words and distances", 0.05, "points", "as for one relation", LATER)
UAS = Threshold("gain in UAS", 0.05, "points", "as for one relation", DATE)
NEAREST = Threshold("gain over the nearest mention", 0.1, "points", "a quarter of the paper's 38 points", DATE)
MATCH = Threshold("gain over a match of head words", 0.02, "points", "two points; the paper has 13", DATE)
RULES = Threshold("gain over simple rules", -0.05, "points", "close to rules: five points below; the paper has 4", DATE)

SOURCE: dict[str, Any] = {"source": "clark2019"}
RAW: dict[str, Any] = {"exact": ("raw",), **SOURCE}


def _name(quantity: str) -> Any:
    return lambda task: str(task[f"{quantity}_head"].sel(lens="raw").values)


def _require(name: str, reason: str = "it was not measured") -> Any:
    """Return a condition: a claim does not apply where what it is about is not known."""

    def applies(task: xr.Dataset) -> str:
        return "" if name in task and np.isfinite(task[name].values.astype(float)).any() else reason

    return applies


def _lead(text: str, quantity: str) -> Claim:
    return Claim(text, quantity, direction="above", threshold=SIGN, percent=True, limits=(-1.0, 1.0), **RAW)


SURFACE = (
    Claim(
        "Some head gives more than half of its attention to the previous token.",
        "most_previous",
        direction="above",
        threshold=MOST,
        percent=True,
        figures=_name("most_previous"),
        **RAW,
    ),
    Claim(
        "Some head gives more than half of its attention to the next token.",
        "most_next",
        direction="above",
        threshold=MOST,
        percent=True,
        figures=_name("most_next"),
        **RAW,
    ),
    _lead("Previous and next tokens are attended to more in the lower half of the layers.", "position_lead"),
    _lead("[CLS] takes most attention in early layers.", "cls_lead"),
    _lead("[SEP] takes most attention in middle layers.", "sep_lead"),
    _lead("Periods and commas take most attention in late layers.", "period_comma_lead"),
    Claim(
        "In middle layers (L5 to L9 of 12), over half of the attention is on [SEP].",
        "sep_middle",
        direction="above",
        threshold=SEP_HALF,
        percent=True,
        **RAW,
    ),
    Claim(
        "In these layers, [SEP] attends to [SEP] with more than 90 %.",
        "sep_to_sep",
        direction="above",
        threshold=SEP_ALL,
        percent=True,
        **RAW,
    ),
    Claim(
        "Some head in the lower half has at most 10 % of its attention on any token.",
        "least_peak",
        direction="below",
        threshold=TENTH,
        figures=_name("least_peak"),
        **RAW,
    ),
    Claim(
        "Attention is broader in the lower half of the layers.",
        "entropy_lead",
        direction="above",
        threshold=SIGN,
        **RAW,
    ),
    Claim(
        "[CLS] attends as broadly as all tokens, below the last layer.",
        "cls_entropy_gap",
        direction="within",
        threshold=CLOSE,
        **RAW,
    ),
    Claim(
        "In the last layer, [CLS] attends more broadly than other tokens.",
        "cls_entropy_last",
        direction="above",
        threshold=SIGN,
        **RAW,
    ),
    Claim(
        "More than half of the attention goes to [CLS], [SEP], periods and commas.",
        "special_share",
        direction="above",
        threshold=SPECIAL,
        percent=True,
        **RAW,
    ),
    Claim(
        "Heads of one layer attend alike.",
        "layer_effect",
        direction="above",
        threshold=ALIKE,
        **SOURCE,
        figures=lambda task: f"p = {float(task['layer_p']):.4f}",
    ),
    Claim(
        "All heads attend alike from [CLS].",
        "cls_alike",
        direction="below",
        threshold=FROM_CLS,
        applies=_require("cls_alike"),
        **SOURCE,
    ),
)
"""Judged on raw attention of the model as it came."""

BY = {
    "raw": "more than an ordinary token",
    "effective": "less than an ordinary token, by effective attention",
    "norm": "less than an ordinary token, by norm",
    "gradient": "less than an ordinary token, by the gradient of the loss",
    "attention × gradient": "less than an ordinary token, by attention × gradient",
}


def _no_op(group: str, measure: str) -> Claim:
    def applies(network: xr.Dataset) -> str:
        known = np.isfinite(float(network["ratio"].sel(group=group, measure=measure)))
        return "" if known else "it needs a loss, or a text with such a token"

    verbs = ("is attended to", "are attended to") if measure == "raw" else ("counts", "count")
    return Claim(
        f"{begin_sentence(group, *verbs)} {BY[measure]}.",
        "ratio",
        {"group": group, "measure": measure},
        "above" if measure == "raw" else "below",
        threshold=EQUAL,
        applies=applies,
        source="clark2019" if measure in ("raw", "gradient") else "",
    )


NO_OP = tuple(_no_op(group, measure) for group in ("cls", "sep", "period_comma") for measure in BY)
"""Judged on networks in place of tasks: attention to a group is a no-op by a measure if both its claims hold."""

SYNTAX = (
    Claim(
        "Some head finds the other word of this relation better than the best fixed offset.",
        "gain",
        {},
        "rises",
        threshold=RELATION,
        percent=True,
        figures=lambda task: str(task["best"].values),
        **SOURCE,
    ),
)
"""Judged on relations in place of tasks."""

TREES = (
    Claim(
        "No single head is much better than right-branching.",
        "branching_gain",
        direction="below",
        threshold=BRANCHING,
        percent=True,
        limits=(-1.0, 1.0),
        **SOURCE,
    ),
    Claim(
        "All heads together find heads of words better than the best fixed offsets.",
        "attention_gain",
        {},
        "rises",
        threshold=UAS,
        percent=True,
        applies=_require("attention_gain_change"),
        **SOURCE,
    ),
    Claim(
        "With words, they find more than words and distances do.",
        "distance_gain",
        {},
        "rises",
        threshold=ADDED,
        percent=True,
        applies=_require("distance_gain_change"),
        **SOURCE,
    ),
    Claim(
        "With the words, they find more than without.",
        "words_gain",
        {},
        "rises",
        threshold=UAS,
        percent=True,
        applies=_require("words_gain_change"),
        **SOURCE,
    ),
)
"""Judged on treebanks in place of tasks."""

SAME_BASELINE = "this baseline is right as often as the nearest mention, so that it is judged with that"

COREFERENCE = (
    Claim(
        "One head finds antecedents better than the nearest mention.",
        "nearest_gain",
        {},
        "rises",
        threshold=NEAREST,
        percent=True,
        **SOURCE,
    ),
    Claim(
        "One head finds antecedents better than a match of head words.",
        "match_gain",
        {},
        "rises",
        threshold=MATCH,
        percent=True,
        applies=_require("match_gain_change", SAME_BASELINE),
        **SOURCE,
    ),
    Claim(
        "One head is close to simple rules.",
        "rules_gain",
        direction="above",
        threshold=RULES,
        percent=True,
        applies=_require("rules_gain", SAME_BASELINE),
        limits=(-1.0, 1.0),
        **SOURCE,
    ),
)
"""Judged on sets of coreference in place of tasks."""

PARTS: Mapping[str, Sequence[Claim]] = {
    "surface": SURFACE,
    "no-op": NO_OP,
    "syntax": SYNTAX,
    "trees": TREES,
    "coreference": COREFERENCE,
}


def judge_claims(results: Mapping[str, Mapping[str, xr.Dataset]]) -> dict[str, dict[str, list[JudgedClaim]]]:
    """Judge all parts of every model, corrected for all of these verdicts; parts that were not measured are left out.

    `results` are the numbers of each part by model; so are the verdicts.
    """
    groups = {
        f"{label}\t{part}": (PARTS[part], numbers)
        for label, parts in results.items()
        for part, numbers in parts.items()
    }
    judged: dict[str, dict[str, list[JudgedClaim]]] = {}
    for key, claims in verdicts.judge_together(groups).items():
        label, _, part = key.partition("\t")
        judged.setdefault(label, {})[part] = claims
    return judged
