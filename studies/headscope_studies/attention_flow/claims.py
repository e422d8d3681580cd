"""The claims of Abnar & Zuidema (2020) as data: contrasts between two attentions or two layers, input by input.

Each threshold was set before any model was measured, from the paper's own tables where they have the number: half of
the smallest difference that the paper itself calls one. So an effect of half their size is still their claim.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import xarray as xr

from headscope.experiments import verdicts
from headscope.experiments.claims import MOOT, Claim, JudgedClaim, Threshold
from headscope_studies.attention_flow import paper

Contrast = Callable[[xr.Dataset], xr.DataArray]
"""From the values of every input, `example … lens layer`, to one number for each input."""

NAMES = {"rollout": "Rollout", "flow": "Flow"}
SCORES = {"blank-out": paper.BLANK_OUT, "gradient": paper.GRADIENT}
OF = {"blank-out": "blank-out", "gradient": "input gradients"}


def _mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values)


def _half_least(differences: list[float]) -> float:
    return round(min(differences) / 2, 3)


_tables = [{lens: means for lens, (means, _) in rows.items()} for rows in SCORES.values()]
_sst = {lens: means for lens, (means, _) in paper.SST_GRADIENT.items()}
GAIN = _half_least([table[lens][-1] - table["raw"][-1] for table in _tables for lens in NAMES])
SST_GAIN = _half_least([_sst[lens][-1] - _sst["raw"][-1] for lens in NAMES])
OVER = _half_least([_mean(table["flow"][1:]) - _mean(table["rollout"][1:]) for table in _tables])
DROP = _half_least([table["raw"][0] - _mean(table["raw"][1:]) for table in _tables])
GROWTH = _half_least([table[lens][-1] - table[lens][0] for table in _tables for lens in NAMES])
LOW = 0.2
UNIFORM, FOCUS, FADE, LIFT = 0.8, 0.05, 0.5, 0.1
THRESHOLDS = {
    name: Threshold(text, value, "", why, "2026-11-16")
    for name, (text, value, why) in {
        "gain": (
            "gain over raw attention",
            GAIN,
            "half of the paper's smallest gain in the last layer, Tables 1 and 2",
        ),
        "sst": (
            "gain over raw attention, SST-2",
            SST_GAIN,
            "half of the paper's smallest gain in the last layer, Table 3",
        ),
        "over": (
            "gain of flow over rollout",
            OVER,
            "half of the smaller mean gain above the first layer, Tables 1 and 2",
        ),
        "drop": (
            "fall above the first layer",
            DROP,
            "half of the smaller fall to the mean of the others, Tables 1 and 2",
        ),
        "growth": (
            "rise with depth",
            GROWTH,
            "half of the smallest rise from the first layer to the last, Tables 1 and 2",
        ),
        "low": ("hardly a correlation", LOW, "the standard deviation over inputs in Table 3: inputs differ by more"),
        "uniform": ("1 − uniformity", round(1 - UNIFORM, 3), "as if four of five tokens shared all; no number printed"),
        "focus": ("more focused", FOCUS, "one token in twenty; the paper gives no number"),
        "fade": ("left of the diagonal", FADE, "half of what the first layer has; the paper gives no number"),
        "lift": (
            "above an equal share",
            LIFT,
            "a tenth above what equal weights would give; the paper gives no number",
        ),
    }.items()
}


def _last(rows: xr.Dataset, quantity: str, lens: str, other: str | None = None, **where: str) -> xr.DataArray:
    """Return a quantity in the last layer, or its difference from another attention's."""
    last = rows[quantity].sel(where).isel(layer=-1)
    return last.sel(lens=lens, drop=True) - (0 if other is None else last.sel(lens=other, drop=True))


def _over(rows: xr.Dataset, score: str) -> xr.DataArray:
    deep = rows["correlation"].sel(importance=score).isel(layer=slice(1, None)).mean("layer")
    return deep.sel(lens="flow", drop=True) - deep.sel(lens="rollout", drop=True)


def _drop(rows: xr.Dataset, score: str) -> xr.DataArray:
    raw = rows["correlation"].sel(importance=score, lens="raw")
    return raw.isel(layer=0, drop=True) - raw.isel(layer=slice(1, None)).mean("layer")


def _grow(rows: xr.Dataset, lens: str) -> xr.DataArray:
    values = rows["correlation"].sel(importance="blank-out", lens=lens)
    return values.isel(layer=-1, drop=True) - values.isel(layer=0, drop=True)


def _fade(rows: xr.Dataset, lens: str) -> xr.DataArray:
    values = rows["diagonal"].sel(lens=lens)
    return values.isel(layer=-1, drop=True) / values.isel(layer=0, drop=True)


def _lift(rows: xr.Dataset, lens: str, word: str) -> xr.DataArray:
    return _last(rows, "lift", lens, word=word).where(rows["attractors"] > 0) - 1


def _uniform(rows: xr.Dataset) -> xr.DataArray:
    return rows["spread"].sel(lens="raw").isel(layer=slice(3, None)).mean("layer")


CONTRASTS: Mapping[str, Contrast] = {
    **{
        f"correlation, {lens} − raw, {score}": partial(
            _last, quantity="correlation", lens=lens, other="raw", importance=score
        )
        for score in SCORES
        for lens in NAMES
    },
    **{f"correlation, flow − rollout, {score}": partial(_over, score=score) for score in SCORES},
    **{f"correlation, raw first − others, {score}": partial(_drop, score=score) for score in SCORES},
    **{f"correlation, {lens} last − first": partial(_grow, lens=lens) for lens in NAMES},
    **{
        f"correlation, {lens}": partial(_last, quantity="correlation", lens=lens, importance="gradient")
        for lens in ("raw", *NAMES)
    },
    "uniformity, raw": _uniform,
    **{
        f"uniformity, {lens} − {other}": partial(_last, quantity="spread", lens=lens, other=other)
        for lens, other in (("rollout", "raw"), ("flow", "raw"), ("rollout", "flow"))
    },
    **{f"diagonal, {lens} last ÷ first": partial(_fade, lens=lens) for lens in NAMES},
    **{f"{word}, {lens}": partial(_lift, lens=lens, word=word) for lens in NAMES for word in ("subject", "attractor")},
}


SST_CONTRASTS = {
    name: contrast
    for name, contrast in CONTRASTS.items()
    if name in {f"correlation, {lens}" for lens in ("raw", *NAMES)}
    or name in {f"correlation, {lens} − raw, gradient" for lens in NAMES}
}
"""Those that Table 3 is about, which the authors' script measures, too."""


def _claim(text: str, name: str, direction: Any, threshold: str, sst: bool | None = None, bound: float = 0.0) -> Claim:
    """Return a claim on a contrast, on SST-2 only or not there."""
    where = {"contrast": name}

    def applies(task: xr.Dataset) -> str:
        if sst is not None and paper.is_sentiment(task["task"].item()) != sst:
            return f"a claim on {paper.SST}" if sst else "Table 3 makes a weaker claim"
        return "" if bool(task["difference"].sel(where).sel(lens="exact").notnull()) else "no input has what it needs"

    return Claim(
        text,
        "difference",
        where,
        direction,
        threshold=THRESHOLDS[threshold],
        bounds=(bound, bound),
        exact=("exact",),
        applies=applies,
        source="abnar2020",
    )


CLAIMS = (
    *(
        _claim(
            f"{NAMES[lens]} correlates better with {OF[score]} than raw attention does, in the last layer.",
            f"correlation, {lens} − raw, {score}",
            "rises",
            "gain",
            sst=False,
        )
        for score in SCORES
        for lens in NAMES
    ),
    *(
        _claim(
            f"Flow correlates better with {OF[score]} than rollout does, from the second layer on.",
            f"correlation, flow − rollout, {score}",
            "rises",
            "over",
            sst=False,
        )
        for score in SCORES
    ),
    *(
        _claim(
            f"Raw attention correlates with {OF[score]} in the first layer, and much less above it.",
            f"correlation, raw first − others, {score}",
            "rises",
            "drop",
            sst=False,
        )
        for score in SCORES
    ),
    *(
        _claim(
            f"{NAMES[lens]} correlates better with blank-out the deeper it goes.",
            f"correlation, {lens} last − first",
            "rises",
            "growth",
            sst=False,
        )
        for lens in NAMES
    ),
    *(
        _claim(
            f"On {paper.SST}, {lens} attention in the last layer hardly correlates with input gradients.",
            f"correlation, {lens}",
            "within",
            "low",
            sst=True,
        )
        for lens in ("raw", *NAMES)
    ),
    *(
        _claim(
            f"On {paper.SST}, {lens} correlates slightly better with input gradients than raw attention does.",
            f"correlation, {lens} − raw, gradient",
            "rises",
            "sst",
            sst=True,
        )
        for lens in NAMES
    ),
    _claim(
        "Raw attention from [CLS] is almost uniform above the third layer.",
        "uniformity, raw",
        "within",
        "uniform",
        bound=1.0,
    ),
    *(
        _claim(
            f"{NAMES[lens]} from [CLS] is less uniform than raw attention, in the last layer.",
            f"uniformity, {lens} − raw",
            "falls",
            "focus",
        )
        for lens in NAMES
    ),
    _claim("Rollout is more focused than flow, in the last layer.", "uniformity, rollout − flow", "falls", "focus"),
    *(
        _claim(f"The diagonal fades with depth under {lens}.", f"diagonal, {lens} last ÷ first", "within", "fade")
        for lens in NAMES
    ),
    *(
        _claim(
            f"{NAMES[lens]} gives the {word} more than an equal share, where there is an attractor.",
            f"{word}, {lens}",
            "rises",
            "lift",
        )
        for lens in NAMES
        for word in ("subject", "attractor")
    ),
)


def judge_claims(numbers: xr.Dataset, subset: str = "all") -> list[JudgedClaim]:
    """Judge every claim on all inputs, or on those that are predicted correctly; without those that apply nowhere."""
    return judge_models({"": numbers}, subset)[""]


def judge_models(models: Mapping[str, xr.Dataset], subset: str = "all") -> dict[str, list[JudgedClaim]]:
    """Judge every claim on every model, corrected for all of these verdicts."""

    def select(numbers: xr.Dataset) -> xr.Dataset:
        names = [name for name in numbers if str(name).startswith("difference") or name == "count"]
        chosen = numbers[names].sel(subset=subset).drop_vars("lens", errors="ignore").rename(count="n")
        chosen = chosen.reindex(contrast=list(CONTRASTS))  # the authors' script has those of one table
        return chosen.assign({name: chosen[name].expand_dims(lens=["exact"]) for name in chosen if name != "n"})

    judged = verdicts.judge_together({label: (CLAIMS, select(numbers)) for label, numbers in models.items()})
    return {label: [claim for claim in claims if claim.verdict != MOOT] for label, claims in judged.items()}
