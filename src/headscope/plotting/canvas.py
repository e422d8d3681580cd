"""Where a figure is drawn: a new one, or a place the caller gives."""

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from headscope.core.errors import InputError
from headscope.plotting import theme


def one_panel(name: str, ax: Axes | None, figure: Figure | SubFigure | None, size: tuple[float, float]) -> Axes:
    """The axes to draw in; new ones in a figure of that size, where the caller gives none."""
    if figure is not None:
        raise InputError(
            f"The figure '{name}' has one panel, so it takes ax=, but got figure=. Give ax=figure.subplots()."
        )
    return ax if ax is not None else blank(size).subplots()


def whole_figure(
    name: str, ax: Axes | None, figure: Figure | SubFigure | None, size: tuple[float, float]
) -> Figure | SubFigure:
    """The figure to draw in; a new one of that size, where the caller gives none."""
    if ax is not None:
        raise InputError(
            f"The figure '{name}' has several panels, so it takes figure=, but got ax=. "
            "Give a figure, or a part of one made by Figure.subfigures."
        )
    return figure if figure is not None else blank(size)


def blank(size: tuple[float, float]) -> Figure:
    """An empty figure that pyplot knows nothing of."""
    return Figure(figsize=size, layout=ConstrainedLayoutEngine(h_pad=0.08))


def root(part: Figure | SubFigure) -> Figure:
    """The whole figure that a part belongs to."""
    return part.figure


def inches(ax: Axes) -> tuple[float, float]:
    """How wide and high the axes are."""
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


def note(ax: Axes, text: str, *, wide: float | None = None) -> None:
    """A sentence below the axes, wrapped to their width."""
    ax.annotate(
        wrapped(text, wide if wide is not None else inches(ax)[0], theme.NOTE),
        (0.5, 0),
        xycoords="axes fraction",
        xytext=(0, -8),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=theme.NOTE,
        color=theme.quiet,
    )


def wrapped(text: str, wide: float, size: float) -> str:
    """Text of that many points in lines that are about `wide` inches long; its own line breaks stay."""
    letters = max(12, int(wide * 72 / (size * 0.55)))
    return "\n".join(textwrap.fill(line, letters) for line in text.split("\n"))
