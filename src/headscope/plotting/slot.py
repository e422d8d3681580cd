"""Fit a drawing and its labels into the place of the caller's axes, so that they do not lie on neighbouring axes."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

ROUNDS = 4  # labels change with the size of the axes
PADDING = 0.06  # inches between labels and the ends of the place
SMALLEST = 0.15  # share of the place that is left for the axes; labels that need more reach beyond it


def fit_axes(ax: Axes, draw: Callable[[Axes], None]) -> None:
    """Shrink axes so that what `draw` puts around them stays in their place.

    A figure with a layout engine is left alone, since the engine does this for all axes. Trials are drawn on another
    figure.
    """
    if ax.figure.figure.get_layout_engine() is not None or ax.figure is not ax.figure.figure:
        return
    cell, original = _find_place(ax), ax.get_position(original=True)
    box = original
    for _ in range(ROUNDS):
        before = box
        taken = _measure(ax.figure.figure, box, draw)
        box = Bbox.from_extents(
            min(max(original.x0, cell.x0 + box.x0 - taken.x0), cell.x1 - SMALLEST * cell.width),
            min(max(original.y0, cell.y0 + box.y0 - taken.y0), cell.y1 - SMALLEST * cell.height),
            max(min(original.x1, cell.x1 + box.x1 - taken.x1), cell.x0 + SMALLEST * cell.width),
            max(min(original.y1, cell.y1 + box.y1 - taken.y1), cell.y0 + SMALLEST * cell.height),
        )
        if np.allclose(box.extents, before.extents, rtol=0, atol=1e-3):  # of the figure
            break
    in_layout = ax.get_in_layout()
    ax.set_position(box)
    ax.set_in_layout(in_layout)


def _measure(figure: Figure, box: Bbox, draw: Callable[[Axes], None]) -> Bbox:
    """Return the box of a trial drawing with all its labels, in shares of the figure."""
    trial = Figure(figsize=tuple(figure.get_size_inches()), dpi=figure.dpi)
    FigureCanvasAgg(trial)
    axes = trial.add_axes(box.bounds)
    draw(axes)
    return _box_with_labels(axes)


def _find_place(ax: Axes) -> Bbox:
    """Return the place of axes in shares of the figure, up to the labels of other axes on each side."""
    box = ax.get_position(original=True)
    width, height = ax.figure.figure.get_size_inches()
    across, down = PADDING / width, PADDING / height
    left, bottom, right, top = [0.0], [0.0], [1.0], [1.0]
    for other in ax.figure.axes:
        frame = other.get_position(original=True)
        taken = _box_with_labels(other)
        if frame.y0 < box.y1 and box.y0 < frame.y1:
            left += [taken.x1] if frame.x1 <= box.x0 else []
            right += [taken.x0] if frame.x0 >= box.x1 else []
        if frame.x0 < box.x1 and box.x0 < frame.x1:
            bottom += [taken.y1] if frame.y1 <= box.y0 else []
            top += [taken.y0] if frame.y0 >= box.y1 else []
    return Bbox.from_extents(max(left) + across, max(bottom) + down, min(right) - across, min(top) - down)


def _box_with_labels(ax: Axes) -> Bbox:
    """Return the box of axes with their labels, in shares of the figure."""
    box = ax.get_tightbbox()
    return ax.get_position() if box is None else box.transformed(ax.figure.transFigure.inverted())
