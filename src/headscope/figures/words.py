"""Importances as shaded words in running text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.transforms import ScaledTranslation, Transform

from headscope.core.figure import Figure, Target
from headscope.plotting import canvas, running_text, scales, theme
from headscope.plotting.running_text import PlacedPiece, ShadedText

LEADING, GAP = 1.75, 0.7  # of the font size: from line to line, and more between two texts
ABOVE, BELOW = 0.95, 0.35  # of the font size: how far a shade reaches from the line that letters stand on
MARGIN = 0.1  # inches at the left and at the right
FAINT = 0.05  # of the largest score; smaller negative ones are not underlined


@dataclass(frozen=True)
class Words(Figure):
    """The text with each token shaded by its importance: darker is more, blue for the target and orange against it.

    Negative scores beyond 5 % of the largest are underlined, so that they differ in grey print; tokens without a score
    are grey. Importances of several methods or texts are drawn below one another; `method` selects one. `size` is the
    width in inches, `cmap` a colour map of matplotlib.
    """

    method: str | None = None
    title: str | None = None
    size: float | None = None
    scale: scales.Spacing = "linear"
    cmap: scales.ColourMap = None

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the texts of all methods, or of one."""
        texts = running_text.read_texts(data, self.method)
        scale, numbers, label = running_text.choose_scale(texts, self.scale, self.cmap)
        headings = [running_text.describe_text(text, texts) for text in texts] if len(texts) > 1 else []
        title = self.title if self.title is not None else _make_title(texts)
        ax, layout = _open_axes(target, self.size, (texts, headings), (scale, label, title))
        box = (self.size or theme.PAGE[0], layout.height) if target.is_new else canvas.axes_size(ax)
        width = box[0] - 2 * MARGIN
        _draw(ax, layout, headings, [running_text.find_colours(scale, cells) for cells in numbers], numbers)
        scales.add_colour_bar(ax, scale, label, box, below=True)
        canvas.set_title(ax, title, width)
        if note := _describe_marks(layout, texts):
            canvas.add_note(ax, note, width=width, below=scales.bar_height(scale, label, box[0]))


def _open_axes(
    target: Target,
    size: float | None,
    contents: tuple[Sequence[ShadedText], Sequence[str]],
    around: tuple[scales.ColourScale, str, str],
) -> tuple[Axes, "_Layout"]:
    """Return axes as high as the texts, with space for the title, the colour bar and the note, and the layout."""
    (texts, headings), (scale, label, title) = contents, around
    width = size if size is not None else theme.PAGE[0]
    above = _text_height(title, width, "title") + 8 / 72
    bar = scales.bar_height(scale, label, width)
    below = bar + _text_height(
        _describe_marks(_lay_out(texts, headings, width, theme.MIN_FONT_SIZE), texts, cut=True), width, "note"
    )
    layout = _fit(texts, headings, width, theme.PAGE[1] - above - below - 0.2)
    height = layout.height + above + below + 0.2
    ax = target.open_axes(width, height)
    if not target.is_new:
        return ax, _fit(texts, headings, *canvas.axes_size(ax))
    ax.set_position((0, (below + 0.1) / height, 1, layout.height / height))  # a layout engine would change its size
    return ax, layout


def _text_height(text: str, width: float, role: Literal["title", "note"]) -> float:
    """Return the height of a wrapped text, in inches."""
    size = theme.text_size(role)
    return 1.3 * size * (canvas.wrap_text(text, width - 2 * MARGIN, size).count("\n") + 1) / 72


@dataclass(frozen=True)
class _Layout:
    """Where the pieces of all texts are, in lines of one font size."""

    size: float  # points
    texts: list[list[PlacedPiece]]
    headed: bool

    @property
    def heights(self) -> list[float]:
        """The height of each text with its heading, in inches."""
        heading = 1.7 * theme.text_size("note") if self.headed else 0.0
        return [(heading + LEADING * self.size * _count_lines(placed)) / 72 for placed in self.texts]

    @property
    def height(self) -> float:
        """The height of all texts, in inches."""
        return sum(self.heights) + GAP * self.size * (len(self.texts) - 1) / 72


def _fit(texts: Sequence[ShadedText], headings: Sequence[str], width: float, most: float) -> _Layout:
    """Return the layout in the largest font that fits `most` inches; of longer texts the first lines."""
    size = theme.text_size("title")
    while True:
        layout = _lay_out(texts, headings, width, size)
        if layout.height <= most or size <= theme.MIN_FONT_SIZE:
            break
        size = max(theme.MIN_FONT_SIZE, size - 0.5)
    if layout.height <= most:
        return layout
    spare = most - (layout.height - sum(LEADING * size * _count_lines(placed) / 72 for placed in layout.texts))
    lines = max(1, int(spare * 72 / (LEADING * size) / len(texts)))
    shown = [[piece for piece in placed if piece.line < lines] for placed in layout.texts]
    return _Layout(size, shown, layout.headed)


def _lay_out(texts: Sequence[ShadedText], headings: Sequence[str], width: float, size: float) -> _Layout:
    across = (width - 2 * MARGIN) / size
    return _Layout(size, [running_text.break_lines(text.pieces, across) for text in texts], bool(headings))


def _count_lines(placed: Sequence[PlacedPiece]) -> int:
    return max((piece.line for piece in placed), default=0) + 1


def _draw(
    ax: Axes,
    layout: _Layout,
    headings: Sequence[str],
    colours: Sequence[Sequence[tuple[str, str] | None]],
    numbers: Sequence[scales.Cells],
) -> None:
    """Draw all texts from the upper left corner of the axes down; coordinates are inches."""
    ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    corner: Any = ax.transAxes
    origin = ax.figure.figure.dpi_scale_trans + ScaledTranslation(0, 1, corner)
    top = 0.0
    for index, placed in enumerate(layout.texts):
        start = top
        if headings:
            note = theme.text_size("note")
            look: dict[str, Any] = {"fontsize": note, "color": theme.quiet, "va": "baseline", "transform": origin}
            ax.text(MARGIN, -(start + 1.2 * note / 72), headings[index], **look)
            start += 1.7 * note / 72
        _draw_text(ax, origin, placed, (colours[index], numbers[index]), start, layout.size)
        top += layout.heights[index] + GAP * layout.size / 72


def _draw_text(
    ax: Axes,
    origin: Transform,
    placed: Sequence[PlacedPiece],
    shades: tuple[Sequence[tuple[str, str] | None], scales.Cells],
    top: float,
    size: float,
) -> None:
    """Draw the pieces of one text: a shade, the letters, and a rule under negative ones."""
    colours, numbers = shades
    inch, largest = size / 72, np.nanmax(np.abs(numbers), initial=0.0)
    for piece in placed:
        if not piece.text:
            continue
        left, width = MARGIN + piece.left * size, piece.width * size
        base = -(top + (LEADING * piece.line + 1.15) * inch)
        pair = colours[piece.index]
        if pair is not None:
            corner = (left, base - BELOW * inch)
            box = Rectangle(corner, width, (ABOVE + BELOW) * inch, facecolor=pair[0], transform=origin, linewidth=0)
            ax.add_patch(box).set_clip_on(False)
        if numbers[piece.index] < -FAINT * largest:
            ends = ([left, left + width], [base - (BELOW + 0.08) * inch] * 2)
            ax.plot(*ends, color=theme.negative, linewidth=0.9, transform=origin, clip_on=False, solid_capstyle="butt")
        ink = theme.quiet if pair is None else pair[1]
        ax.text(left, base, piece.text, fontsize=size, color=ink, va="baseline", transform=origin)


def _make_title(texts: Sequence[ShadedText]) -> str:
    if len(texts) == 1:
        return running_text.describe_text(texts[0], texts)
    methods = dict.fromkeys(text.method for text in texts)
    return "importances" if len(methods) > 1 else next(iter(methods))


def _describe_marks(layout: _Layout, texts: Sequence[ShadedText], *, cut: bool = False) -> str:
    """Return what underlines and grey tokens mean, where there are any, and how much of the texts is shown."""
    shown, count = sum(map(len, layout.texts)), sum(len(text.pieces) for text in texts)
    marks = {
        "Underlined: negative, beyond 5 % of the largest.": any((text.scores < 0).any() for text in texts),
        "Grey: no score.": any(np.isnan(text.scores).any() for text in texts),
        f"The first {shown} of {count} tokens are shown.": cut or shown < count,
    }
    selected = [text.selected for text in texts[:1] if text.selected]
    return " ".join([*selected, *(mark for mark, holds in marks.items() if holds)])
