"""A coloured cell for the verdict on every claim, in columns of models and tasks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from headscope.core.errors import InputError
from headscope.plotting import canvas, fonts, series, theme

LOOKS = (
    ("#0b3a75", "H"),
    ("#b65200", "R"),
    ("#8dbbe0", "W"),
    ("#fbdcb8", "N"),
    ("#ffffff", "?"),
    ("none", "–"),
)
"""Colour and letter of each kind of verdict; letters tell them apart in grey print. What does not apply has no box."""

PLAIN = (LOOKS[0], *LOOKS[3:])
"""The looks of a study that measures in one way only: what holds, what does not, undecided, does not apply."""

GAP = 0.35  # of a column, between models
WIDEST = 0.4  # inches of a column


@theme.apply()
def verdict_grid(verdicts: pd.DataFrame, kinds: Sequence[str], *, width: float = theme.PAGE[0]) -> Figure:
    """Draw a row for each claim and a column for each pair of a model and a task, in a figure of `width` inches.

    The index has the claims, the columns are pairs of a model and a task, and cells one of `kinds`; empty ones stay
    empty. Colours are those of LOOKS, in the order of the kinds.
    """
    if len(kinds) > len(LOOKS):
        raise InputError(f"There are {len(kinds)} kinds of verdicts, but only {len(LOOKS)} can be told apart.")
    size = theme.text_size("note" if width >= theme.NARROW else "small")
    counts = Counter(str(model) for model, _ in verdicts.columns)
    models = list(counts)
    cells = WIDEST * (verdicts.shape[1] + GAP * (len(models) - 1))
    text = max((0.46 if width >= theme.NARROW else 0.5) * width, width - cells - 0.1)
    claims = [canvas.wrap_text(str(claim), text - 0.1, size) for claim in verdicts.index]
    heights = [0.07 + 1.2 * size / 72 * (1 + claim.count("\n")) for claim in claims]
    tops = [sum(heights[:at], 0.0) for at in range(len(heights) + 1)]
    places = [at + GAP * models.index(str(model)) for at, (model, _) in enumerate(verdicts.columns)]
    tasks = [str(task) for _, task in verdicts.columns]
    above = 0.12 + fonts.label_width(tasks) * size + 1.4 * size / 72 * _count_lines(counts)
    columns = series.fit_legend(kinds, width)[0]
    below = 0.1 + 0.2 * -(-len(kinds) // columns)
    high = above + tops[-1] + below
    figure = canvas.NotebookFigure(figsize=(width, high))
    area = ((text + 0.05) / width, below / high, (width - text - 0.1) / width, tops[-1] / high)
    ax = figure.add_axes(area)
    ax.set(xlim=(0, places[-1] + 1), ylim=(tops[-1], 0))
    ax.set_axis_off()
    looks = find_looks(kinds)
    for at, claim in enumerate(claims):
        ax.text(-0.1, tops[at] + heights[at] / 2, claim, ha="right", va="center", fontsize=size)
        for left, verdict in zip(places, verdicts.iloc[at], strict=True):
            if verdict:
                _draw_cell(ax, (left, tops[at], heights[at]), looks[str(verdict)], size)
    _name_columns(ax, verdicts, places, size)
    names = [
        Patch(facecolor=colour, edgecolor=_find_edge(colour, theme.quiet), linewidth=0.4, label=f"{letter}  {kind}")
        for kind, (colour, letter) in looks.items()
    ]
    figure.legend(handles=names, loc="lower center", ncols=columns, fontsize=theme.text_size("note"), borderaxespad=0.1)
    return figure


def find_looks(kinds: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the colour and the letter of each kind of verdict, in their order."""
    return dict(zip(kinds, PLAIN if len(kinds) == len(PLAIN) else LOOKS, strict=False))


def _find_edge(colour: str, edge: str) -> str:
    return "none" if colour == "none" else edge


def _draw_cell(ax: Axes, box: tuple[float, float, float], look: tuple[str, str], size: float) -> None:
    """Draw a cell at x and y, of a height in inches."""
    (x, y, height), (colour, letter) = box, look
    edge = _find_edge(colour, theme.hatch)
    ax.add_patch(Rectangle((x, y), 1, height, facecolor=colour, edgecolor=edge, linewidth=0.4))
    ink = theme.quiet if colour == "none" else theme.text_colour(colour)
    ax.text(x + 0.5, y + height / 2, letter, ha="center", va="center", fontsize=0.9 * size, color=ink)


def _name_columns(ax: Axes, verdicts: pd.DataFrame, places: Sequence[float], size: float) -> None:
    """Name tasks above their columns, and models above all of their tasks."""
    tall = fonts.label_width(str(task) for _, task in verdicts.columns) * size
    names = [model for model, _ in verdicts.columns]
    for (_, task), left in zip(verdicts.columns, places, strict=True):
        ax.text(left + 0.5, -0.03, str(task), ha="center", va="bottom", fontsize=size, rotation=90)
    for model in dict.fromkeys(names):
        own = [left for left, name in zip(places, names, strict=True) if name == model]
        middle = ((own[0] + own[-1] + 1) / 2, 1.0)
        look: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": size, "fontweight": "bold"}
        name = _break(str(model), len(own))
        ax.annotate(name, middle, (0, 72 * tall + 5), ("data", "axes fraction"), "offset points", **look)


def _break(model: str, columns: int) -> str:
    """Break a name that is long, or above a single column, at a hyphen in two lines of about the same length."""
    parts = model.split("-")
    if len(parts) < 2 or (columns > 1 and (len(model) < 10 or len(parts) < 3)):
        return model
    cuts = [("-".join(parts[:at]) + "-", "-".join(parts[at:])) for at in range(1, len(parts))]
    return "\n".join(min(cuts, key=lambda pair: max(map(len, pair))))


def _count_lines(models: Mapping[str, int]) -> int:
    """Return how many lines the names of models take, given their numbers of columns; 0 where they have none."""
    return max(_break(model, columns).count("\n") + 1 if model else 0 for model, columns in models.items())
