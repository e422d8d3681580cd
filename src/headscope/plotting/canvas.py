"""New matplotlib figures, and text that is wrapped to a width."""

import io
import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from headscope.plotting import theme

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
    return NotebookFigure(figsize=size, layout=ConstrainedLayoutEngine(h_pad=0.08))


def axes_size(ax: Axes) -> tuple[float, float]:
    """Return the width and height of axes in inches."""
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


def add_note(ax: Axes, text: str, *, width: float | None = None) -> None:
    """Write a note below the axes, wrapped to `width` inches (default: the width of the axes)."""
    ax.annotate(
        wrap_text(text, width if width is not None else axes_size(ax)[0], theme.NOTE),
        (0.5, 0),
        xycoords="axes fraction",
        xytext=(0, -8),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=theme.NOTE,
        color=theme.quiet,
    )


def wrap_text(text: str, width: float, size: float) -> str:
    """Wrap text of font size `size` to lines of about `width` inches; existing line breaks stay."""
    letters = max(12, int(width * 72 / (size * 0.55)))
    return "\n".join(textwrap.fill(line, letters) for line in text.split("\n"))
