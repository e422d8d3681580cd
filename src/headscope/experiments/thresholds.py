"""Thresholds of claims: a table of them, and how verdicts change when they are scaled."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from headscope.experiments.claims import MOOT, JudgedClaim, list_verdict_names, scale_thresholds
from headscope.plotting import canvas, series, theme

SCALES = tuple(float(factor) for factor in 2.0 ** np.linspace(-2, 2, 33))
"""Factors of all thresholds, from a quarter to four times."""


def threshold_table(judged: Sequence[JudgedClaim]) -> pd.DataFrame:
    """Return every threshold with its value, the number of claims that it decides, its reason, and its date."""
    claims = {claim.text: claim.claim for claim in judged}  # those of several models are the same
    counts = Counter(claim.threshold for claim in claims.values())
    rows = [
        {
            "threshold": threshold.name,
            "value": threshold.text,
            "claims": count,
            "why": threshold.reason,
            "set on": threshold.date,
        }
        for threshold, count in counts.items()
    ]
    return pd.DataFrame(rows).set_index("threshold")


def count_scaled(judged: Sequence[JudgedClaim], factor: float) -> Counter[str]:
    """Return the number of each verdict if all thresholds are multiplied by a factor."""
    return Counter(task.verdict for claim in judged for task in scale_thresholds(claim, factor).tasks)


@theme.apply()
def draw_thresholds(judged: Sequence[JudgedClaim]) -> Figure:
    """Draw the number of each verdict over a factor of all thresholds; claims that do not apply are left out."""
    counts = [count_scaled(judged, factor) for factor in SCALES]
    contrasts = dict.fromkeys(claim.claim.contrast for claim in judged if claim.claim.published)
    every = dict.fromkeys(
        kind for contrast in contrasts or {"": None} for kind in list_verdict_names(contrast) if kind != MOOT
    )
    kinds = [kind for kind in every if any(count[kind] for count in counts)]
    looks = dict(zip(every, series.styles(every, "verdicts"), strict=True))
    figure = canvas.new_figure((theme.PAGE[0], 3.2))
    panel = figure.subplots()
    marked = [SCALES.index(factor) for factor in (0.25, 0.5, 1.0, 2.0, 4.0)]
    for kind in kinds:
        style = looks[kind]
        panel.plot(
            SCALES,
            [count[kind] for count in counts],
            label=kind,
            color=style.colour,
            linestyle=style.line,
            marker=style.mark,
            markevery=marked,
            markersize=4,
            linewidth=1.2,
        )
    panel.axvline(1, color=theme.quiet, linewidth=0.6)
    panel.set_xscale("log", base=2)
    panel.set_xticks([SCALES[at] for at in marked], labels=[f"{SCALES[at]:g}×" for at in marked])
    panel.set_ylim(bottom=0)
    panel.set_xlabel("all thresholds, multiplied", fontsize=theme.text_size("note"))
    panel.set_ylabel("verdicts", fontsize=theme.text_size("note"))
    series.style_axes(panel)
    if kinds:  # none where no claim applies
        figure.legend(loc="outside upper center", ncols=3, fontsize=theme.text_size("note"), columnspacing=1.0)
    return figure
