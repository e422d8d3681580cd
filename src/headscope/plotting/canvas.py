"""New matplotlib figures, and text that is wrapped to a width."""

import io
import re
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from headscope.plotting import fonts, theme

SCREEN_DPI = 96


class NotebookFigure(Figure):
    """A figure that a notebook shows as the value of a cell, though pyplot does not manage it."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return a PNG of twice the resolution of the screen, and its size on the screen."""
        content = io.BytesIO()
        with theme.apply():
            self.savefig(content, format="png", dpi=2 * SCREEN_DPI)
        width, height = (round(side * SCREEN_DPI) for side in self.get_size_inches())
        return content.getvalue(), {"width": width, "height": height}


def new_figure(size: tuple[float, float] | None = None) -> Figure:
    """Return an empty figure of `size` inches that pyplot does not manage."""
    return NotebookFigure(figsize=size, layout=ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.04))


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
