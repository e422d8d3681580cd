"""The claims of Abnar & Zuidema (2020) as data: contrasts between two attentions or two layers, input by input.

Each threshold was set before any model was measured, from the paper's own tables where they have the number: half of
the smallest difference that the paper itself calls one. So an effect of half their size is still their claim.
"""

from collections.abc import Callable, Mapping
from typing import Any

import xarray as xr

from headscope.experiments.claims import Claim, JudgedClaim, judge
from headscope.studies.attention_flow import paper

Contrast = Callable[[xr.Dataset], xr.DataArray]
"""From the values of every input, `example … lens layer`, to one number for each input."""

NAMES = {"rollout": "Rollout", "flow": "Flow"}
SCORES = {"blank-out": paper.BLANK_OUT, "gradient": paper.GRADIENT}
OF = {"blank-out": "blank-out", "gradient": "input gradients"}
CODE = "the paper's code"


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
LOW = 0.2  # the standard deviation that Table 3 prints: a smaller mean is less than the inputs differ by
UNIFORM = 0.8
FOCUS = 0.05
FADE = 0.5
LIFT = 0.1
WHY = {
    "gain": "half of the paper's smallest gain in the last layer, Tables 1 and 2",
    "sst": "half of the paper's smallest gain in the last layer, Table 3",
    "over": "half of the smaller mean difference between flow and rollout from the second layer on, Tables 1 and 2",
    "drop": "half of the smaller fall from the first layer to the mean of the others, Tables 1 and 2",
    "growth": "half of the smallest rise from the first layer to the last, Tables 1 and 2",
    "low": "the standard deviation over inputs that Table 3 prints",
    "uniform": "as if four of five tokens shared all attention equally; the paper gives no number",
    "focus": "one token in twenty; the paper gives no number",
    "fade": "half of what the first layer has; the paper gives no number",
    "lift": "a tenth above what equal weights would give; the paper gives no number",
}
"""Why each threshold has its value."""


def _gain(score: str, lens: str) -> Contrast:
    return lambda rows: (
        rows["correlation"].sel(score=score).isel(layer=-1).sel(lens=lens)
        - rows["correlation"].sel(score=score).isel(layer=-1).sel(lens="raw")
    )


def _over(score: str) -> Contrast:
    def contrast(rows: xr.Dataset) -> xr.DataArray:
        deep = rows["correlation"].sel(score=score).isel(layer=slice(1, None)).mean("layer")
        return deep.sel(lens="flow") - deep.sel(lens="rollout")

    return contrast


def _drop(score: str) -> Contrast:
    def contrast(rows: xr.Dataset) -> xr.DataArray:
        raw = rows["correlation"].sel(score=score, lens="raw")
        return raw.isel(layer=0) - raw.isel(layer=slice(1, None)).mean("layer")

    return contrast


def _growth(lens: str) -> Contrast:
    def contrast(rows: xr.Dataset) -> xr.DataArray:
        values = rows["correlation"].sel(score="blank-out", lens=lens)
        return values.isel(layer=-1) - values.isel(layer=0)

    return contrast


def _low(lens: str) -> Contrast:
    return lambda rows: rows["correlation"].sel(score="gradient", lens=lens).isel(layer=-1)


def _spread(lens: str, other: str) -> Contrast:
    return lambda rows: rows["spread"].isel(layer=-1).sel(lens=lens) - rows["spread"].isel(layer=-1).sel(lens=other)


def _fade(lens: str) -> Contrast:
    def contrast(rows: xr.Dataset) -> xr.DataArray:
        values = rows["diagonal"].sel(lens=lens)
        return values.isel(layer=-1) / values.isel(layer=0)

    return contrast


def _lift(lens: str, role: str) -> Contrast:
    return lambda rows: rows["lift"].sel(lens=lens, word=role).isel(layer=-1).where(rows["attractors"] > 0) - 1


def _uniform(rows: xr.Dataset) -> xr.DataArray:
    return rows["spread"].sel(lens="raw").isel(layer=slice(3, None)).mean("layer")


def _on_sst(task: xr.Dataset) -> str:
    return "" if is_sst(task) else f"a claim on {paper.SST}"


def _not_on_sst(task: xr.Dataset) -> str:
    return "Table 3 makes a weaker claim" if is_sst(task) else ""


def is_sst(task: xr.Dataset) -> bool:
    """Return whether this is the task of Table 3; a seed may follow its name."""
    return str(task["task"].values).startswith(paper.SST)


def _claim(text: str, name: str, direction: Any, threshold: Any, why: str, **more: Any) -> Claim:
    """Return a claim on the contrast of this name; one on correlations is judged with the paper's formula too."""
    both: dict[str, Any] = {"exact": ("exact",)}
    if name.startswith("correlation"):
        both |= {"published": ("code",), "contrast": CODE}
    where = {"contrast": name}

    def known(task: xr.Dataset) -> str:
        given = more.get("applies")
        value = float(task["contrast"].sel(where).sel(lens="exact"))
        return (given(task) if given else "") or ("" if value == value else "no input has what it needs")

    return Claim(text, "contrast", where, direction, threshold, WHY[why],
                 **{**more, **both, "applies": known, "figures": lambda task: _format(name, task)})  # fmt: skip


def _format(name: str, task: xr.Dataset) -> str:
    def read(lens: str) -> list[float]:
        return [float(task[f"contrast{end}"].sel(contrast=name, lens=lens)) for end in ("", "_low", "_high")]

    value, low, high = read("exact")
    code = f"; the paper's code {read('code')[0]:.2f}" if name.startswith("correlation") else ""
    return f"{value:.2f} [{low:.2f}, {high:.2f}]{code}"


CONTRASTS: Mapping[str, Contrast] = {
    **{f"correlation {lens} gains {score}": _gain(score, lens) for score in SCORES for lens in NAMES},
    **{f"correlation flow over rollout {score}": _over(score) for score in SCORES},
    **{f"correlation raw drops {score}": _drop(score) for score in SCORES},
    **{f"correlation {lens} grows": _growth(lens) for lens in NAMES},
    **{f"correlation {lens} low": _low(lens) for lens in ("raw", *NAMES)},
    "uniform": _uniform,
    **{f"{lens} less uniform": _spread(lens, "raw") for lens in NAMES},
    "rollout focused": _spread("rollout", "flow"),
    **{f"{lens} fades": _fade(lens) for lens in NAMES},
    **{f"{lens} {word}": _lift(lens, word) for lens in NAMES for word in ("subject", "attractor")},
}
CLAIMS = (
    *(_claim(f"{NAMES[lens]} correlates better with {OF[score]} than raw attention does, in the last layer.",
             f"correlation {lens} gains {score}", "rises", GAIN, "gain", applies=_not_on_sst)
      for score in SCORES for lens in NAMES),
    *(_claim(f"Flow correlates better with {OF[score]} than rollout does, from the second layer on.",
             f"correlation flow over rollout {score}", "rises", OVER, "over", applies=_not_on_sst)
      for score in SCORES),
    *(_claim(f"Raw attention correlates with {OF[score]} in the first layer, and much less above it.",
             f"correlation raw drops {score}", "rises", DROP, "drop", applies=_not_on_sst) for score in SCORES),
    *(_claim(f"{NAMES[lens]} correlates better with blank-out the deeper it goes.",
             f"correlation {lens} grows", "rises", GROWTH, "growth", applies=_not_on_sst) for lens in NAMES),
    *(_claim(f"On {paper.SST}, {lens} attention in the last layer hardly correlates with input gradients.",
             f"correlation {lens} low", "within", (-LOW, LOW), "low", applies=_on_sst) for lens in ("raw", *NAMES)),
    *(_claim(f"On {paper.SST}, {lens} correlates slightly better with input gradients than raw attention does.",
             f"correlation {lens} gains gradient", "rises", SST_GAIN, "sst", applies=_on_sst) for lens in NAMES),
    _claim("Raw attention from [CLS] is almost uniform above the third layer.", "uniform", "within", (UNIFORM, 1.0),
           "uniform"),
    *(_claim(f"{NAMES[lens]} from [CLS] is less uniform than raw attention, in the last layer.",
             f"{lens} less uniform", "falls", FOCUS, "focus") for lens in NAMES),
    _claim("Rollout is more focused than flow, in the last layer.", "rollout focused", "falls", FOCUS, "focus"),
    *(_claim(f"The diagonal fades with depth under {lens}.", f"{lens} fades", "within", (0.0, FADE), "fade")
      for lens in NAMES),
    *(_claim(f"{NAMES[lens]} gives the {word} more than an equal share, where there is an attractor.",
             f"{lens} {word}", "rises", LIFT, "lift") for lens in NAMES for word in ("subject", "attractor")),
)  # fmt: skip


def judge_claims(numbers: xr.Dataset, subset: str = "all") -> list[JudgedClaim]:
    """Judge every claim on all inputs, or on those that are predicted correctly."""
    return [judge(claim, numbers.sel(subset=subset)) for claim in CLAIMS]
