"""New matplotlib figures, and text that is wrapped to a width."""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from headscope.plotting import fonts, theme

SCREEN_DPI = 96
EDGE = 0.04  # inches between a title and the edge of a figure, and between the numbers of an axis
TOLERANCE = 0.01  # inches that a box of text may reach beyond a figure: it is larger than its letters
STEP = 0.4  # inches by which a figure grows whose axes have no room at all
MAX_ROUNDS = 6  # of a layout
SETTLED = 1e-3  # of the figure; a round that moves axes by less is the last


class NotebookFigure(Figure):
    """A figure that a notebook shows as the value of a cell, though pyplot does not manage it."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return a PNG of twice the resolution of the screen, and its size on the screen."""
        content = io.BytesIO()
        with theme.apply(), keep_layout(self):
            self.savefig(content, format="png", dpi=2 * SCREEN_DPI)
        width, height = (round(side * SCREEN_DPI) for side in self.get_size_inches())
        return content.getvalue(), {"width": width, "height": height}


class RepeatedLayout(ConstrainedLayoutEngine):
    """A constrained layout that is repeated for axes with square cells, and that knows when it is out of date.

    Where axes have square cells, a round that narrows them also changes what is around them, so that labels could be
    cut after the first. Rounds end when they move nothing, or no less than the round before.
    """

    size: tuple[float, float] | None = None  # inches of the figure that was laid out

    def execute(self, fig: Figure) -> None:
        """Lay out the figure."""
        square = any(ax.get_aspect() != "auto" for ax in fig.axes)
        before, moved = None, np.inf
        for _ in range(MAX_ROUNDS if square else 1):
            super().execute(fig)
            positions = np.array([ax.get_position(original=True).bounds for ax in fig.axes])
            last, moved = moved, np.inf if before is None else float(np.abs(positions - before).max())
            if moved <= SETTLED or moved >= last < np.inf:
                break
            before = positions

    def is_current(self, figure: Figure) -> bool:
        """Whether nothing that was laid out has changed."""
        return self.size == _size_of(figure) and not any(artist.stale for artist in _list_artists(figure))

    def mark_current(self, figure: Figure) -> None:
        """Take the positions of all artists as the layout of the figure."""
        self.size = _size_of(figure)
        for artist in _list_artists(figure):
            artist.stale = False


def _size_of(figure: Figure) -> tuple[float, float]:
    width, height = figure.get_size_inches()
    return float(width), float(height)


def _list_artists(figure: Figure) -> list[Artist]:
    """Return the axes, legends and titles of a figure; saving changes its background."""
    return [artist for artist in figure.get_children() if artist is not figure.patch]


def new_figure(size: tuple[float, float] | None = None) -> Figure:
    """Return an empty figure of `size` inches that pyplot does not manage."""
    return NotebookFigure(figsize=size, layout=RepeatedLayout(h_pad=0.06, w_pad=0.04))


def lay_out(figure: Figure) -> None:
    """Lay out a figure from `new_figure`, in the resolution of a saved PNG: hinting makes letters wider or narrower."""
    with _measure_like_png(figure):
        _get_engine(figure).execute(figure)
        _fit_texts(figure)
    _get_engine(figure).mark_current(figure)


def _get_engine(figure: Figure) -> RepeatedLayout:
    engine = figure.get_layout_engine()
    assert isinstance(engine, RepeatedLayout)  # new_figure sets it
    return engine


def try_layout(figure: Figure) -> bool:
    """Lay out the axes of a figure from `new_figure`; return False where labels leave no room for them."""
    with _measure_like_png(figure), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _get_engine(figure).execute(figure)
    return not any("not applied" in str(warning.message) for warning in caught)


@contextmanager
def keep_layout(figure: Figure) -> Iterator[None]:
    """Save a figure from `new_figure` in the layout that it has; it is laid out first where it was changed.

    It then looks the same in every kind of file, and is drawn once.
    """
    engine = figure.get_layout_engine()
    if not isinstance(engine, RepeatedLayout):
        yield
        return
    if not engine.is_current(figure):
        lay_out(figure)
    figure.set_layout_engine(None)
    try:
        yield
    finally:
        figure.set_layout_engine(engine)
        engine.mark_current(figure)


def grow_to_fit(figure: Figure, *, wider: bool) -> None:
    """Lay out a new figure, and enlarge it until no text reaches beyond it; its width stays where the caller gave it.

    A layout makes room for labels beside axes, but not for titles and labels that are longer than the axes.
    """
    with _measure_like_png(figure):
        for _ in range(MAX_ROUNDS):
            beside, around = _measure_excess(figure)
            width, height = figure.get_size_inches()
            beside = min(beside, theme.PAGE[0] - width) if wider else 0.0
            if max(beside, around) <= TOLERANCE:
                break
            figure.set_size_inches(width + max(0.0, beside), height + max(0.0, around))
        _fit_texts(figure)
    _get_engine(figure).mark_current(figure)


@contextmanager
def _measure_like_png(figure: Figure) -> Iterator[None]:
    FigureCanvasAgg(figure)
    dpi, figure.dpi = figure.dpi, theme.RC_PARAMS["savefig.dpi"]
    try:
        yield
    finally:
        figure.dpi = dpi


def _measure_excess(figure: Figure) -> tuple[float, float]:
    """Lay out a figure and return the width and height in inches that it lacks for its texts."""
    least = 0.0 if try_layout(figure) else STEP
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    excess = max(-box.x0, box.x1 - width), max(-box.y0, box.y1 - height)
    return max(least, 2 * excess[0]), max(least, 2 * excess[1])  # axes stay in the middle


def _fit_texts(figure: Figure) -> None:
    """Mend what a layout leaves: numbers along an axis that overlap, and titles that reach beyond the figure."""
    for ax in figure.axes:
        _thin_ticks(ax)
        _move_titles(ax, figure_width(figure))


def _thin_ticks(ax: Axes) -> None:
    """Reduce the numbers along the x axis until none overlap; matplotlib does not know how wide they are."""
    if isinstance(ax.xaxis.get_major_locator(), MaxNLocator):
        fewer = iter(range(7, 1, -1))
        while _labels_overlap(ax) and (bins := next(fewer, None)) is not None:
            ax.locator_params(axis="x", nbins=bins)


def _labels_overlap(ax: Axes) -> bool:
    low, high = sorted(ax.get_xlim())
    labels = ax.get_xticklabels()  # none above another panel with the same axis
    boxes = [
        label.get_window_extent() for label in labels if label.get_text() and low <= label.get_position()[0] <= high
    ]
    gap = EDGE * ax.figure.dpi
    return any(right.x0 < left.x1 + gap for left, right in pairwise(sorted(boxes, key=lambda box: float(box.x0))))


def _move_titles(ax: Axes, width: float) -> None:
    """Move a title of axes that reaches beyond a figure of a width in inches into the figure."""
    texts = {ax.get_title("left"), ax.get_title()} - {""}
    for title in ax.get_children():
        if isinstance(title, Text) and title.get_text() in texts:
            box = title.get_window_extent()
            left, right = box.x0 / ax.figure.dpi, box.x1 / ax.figure.dpi
            beyond = max(0.0, EDGE - left) - max(0.0, right - width + EDGE)
            title.set_x(title.get_position()[0] + beyond / axes_size(ax)[0])


def axes_size(ax: Axes) -> tuple[float, float]:
    """Return the width and height of axes in inches."""
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


def figure_width(figure: Figure | SubFigure) -> float:
    """Return the width of a figure or subfigure in inches."""
    return float(figure.bbox.width / figure.dpi)


def add_note(ax: Axes, text: str, *, width: float | None = None, below: float = 0.0) -> None:
    """Write a note below the axes, wrapped to `width` inches (default: the width of the axes).

    `below` is the distance in inches that a colour bar below the axes takes.
    """
    ax.annotate(
        wrap_text(text, width if width is not None else axes_size(ax)[0], theme.text_size("note")),
        (0.5, 0),
        xycoords="axes fraction",
        xytext=(0, -8 - 72 * below),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=theme.text_size("note"),
        color=theme.quiet,
    )


def add_caption(figure: Figure, text: str) -> None:
    """Write a caption below a new figure, which grows by its lines; an empty one changes nothing."""
    if not text:
        return
    size = theme.text_size("note")
    width, height = figure.get_size_inches()
    lines = wrap_text(text, width - 0.2, size)
    figure.set_size_inches(width, height + 0.1 + 1.25 * size / 72 * (lines.count("\n") + 1))
    figure.supxlabel(lines, fontsize=size, color=theme.quiet)


def set_title(ax: Axes, text: str, width: float, **options: Any) -> None:
    """Set the title of axes, wrapped to `width` inches."""
    ax.set_title(wrap_text(text, width, theme.text_size("title")), fontsize=theme.text_size("title"), **options)


def wrap_text(text: str, width: float, size: float) -> str:
    """Wrap text of font size `size` to lines of at most `width` inches; existing line breaks stay.

    Lines break at spaces, and after the punctuation of a spec where a word alone is too wide.
    """
    return "\n".join(_wrap_line(line, width / size) for line in text.split("\n"))


def _wrap_line(line: str, width: float) -> str:
    """Break one line; the width is in inches per point of font size."""
    if fonts.text_width(line) <= width:
        return line
    lines = [""]
    for piece in _pieces(line, width):
        if lines[-1] and fonts.text_width((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(part.rstrip() for part in lines)


def _pieces(line: str, width: float) -> list[str]:
    """Split into words with the spaces after them, and words that are too wide also after punctuation."""
    words = re.findall(r"\S+\s*", line)
    pieces = []
    for word in words:
        wide = fonts.text_width(word.rstrip()) > width
        pieces += [piece for piece in re.findall(r"[^,:=_/]*[,:=_/]*\s*", word) if piece] if wide else [word]
    return pieces
