"""What is wrong with the layout of a drawn figure: small, cut or overprinted text, and panels that are too small."""

from contextlib import contextmanager

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from headscope.plotting import theme
from headscope.plotting.export import render

SMALLEST = 5.0  # points
SLACK = 0.75  # points that boxes of text may share: a box is taller than its letters
LEAST_SHARE = 0.18  # of the figure's area, for the panels


def find_faults(figure, kind: str | None = None) -> list[str]:
    """Return what a reader of the saved figure would mention, in words.

    Texts and panels are measured while they are drawn: into a file of a kind as `hs.save` writes it, or at the
    resolution of a PNG without its pixels, which is faster.
    """
    with record_texts() as boxes, record_panels() as frames:
        if kind is None:
            _draw_like_png(figure)
        else:
            render(figure, kind)
    size = figure.get_size_inches() * 72
    return [
        *(f"{name(text)} is set in {text.get_size():.1f} points" for text in boxes if text.get_size() < SMALLEST),
        *(f"{name(text)} is cut" for text, box in boxes.items() if is_cut(box, size)),
        *overlapping_texts(list(boxes.items())),
        *overprinted_panels(frames, boxes),
        *small_panels(frames, size),
    ]


def _draw_like_png(figure):
    before = figure.dpi
    with theme.apply():
        figure.dpi = theme.RC_PARAMS["savefig.dpi"]
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
    figure.dpi = before


@contextmanager
def record_texts():
    """Collect the texts that are really drawn in this block, with their corners in points."""
    with _record(Text, outline) as drawn:
        yield drawn


@contextmanager
def record_panels():
    """Collect the axes with data and the colour bars that are drawn in this block, with their corners in points."""
    with _record(Axes, lambda ax, _: frame_of(ax)) as drawn:
        yield drawn


@contextmanager
def _record(kind, measure):
    """Collect what is drawn of a kind of artist in this block, with its measure."""
    drawn, draw = {}, kind.draw

    def record(self, renderer):
        draw(self, renderer)  # axes of square cells shrink only now
        if self.get_visible() and (self.axison if kind is Axes else self.get_text().strip()):
            drawn[self] = measure(self, renderer)

    kind.draw = record
    try:
        yield drawn
    finally:
        kind.draw = draw


def outline(text, renderer):
    """Return the corners of a text in points; the box of a slanted text is slanted too."""
    box = Text.get_window_extent(text, renderer)
    points = 72 / text.figure.dpi
    turn = np.deg2rad(text.get_rotation())
    sine, cosine = abs(np.sin(turn)), abs(np.cos(turn))
    if min(sine, cosine) < 1e-6:
        width, height = (box.width, box.height) if sine < 1e-6 else (box.height, box.width)
    else:
        across = cosine**2 - sine**2
        width = (box.width * cosine - box.height * sine) / across
        height = (box.height * cosine - box.width * sine) / across
    half = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [width / 2, height / 2]
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    centre = [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2]
    return (half @ rotation + centre) * points


def overlap(one, two) -> bool:
    """Whether two rectangles share more than SLACK points in every direction of their sides."""
    if (one.max(0) < two.min(0)).any() or (two.max(0) < one.min(0)).any():
        return False
    for corners in (one, two):
        for side in (corners[1] - corners[0], corners[3] - corners[0]):
            direction = side / (np.hypot(*side) or 1.0)
            first, second = one @ direction, two @ direction
            if min(first.max(), second.max()) - max(first.min(), second.min()) <= SLACK:
                return False
    return True


def overlapping_texts(boxes) -> list[str]:
    """Return the pairs of texts that overlap; only pairs whose bounds do are looked at more closely."""
    corners = np.array([box for _, box in boxes])
    low, high = corners.min(1), corners.max(1)
    near = ((low[:, None] < high) & (low < high[:, None])).all(-1)
    pairs = np.argwhere(np.triu(near, 1))
    return [
        f"{name(boxes[one][0])} and {name(boxes[two][0])} overlap"
        for one, two in pairs
        if overlap(boxes[one][1], boxes[two][1])
    ]


def is_cut(box, size) -> bool:
    """Whether a text reaches beyond a figure of a size in points."""
    return bool((box.min(0) < -SLACK).any() or (box.max(0) > size + SLACK).any())


def overprinted_panels(frames, boxes) -> list[str]:
    """Return the texts that lie on panels other than their own, and the legends that lie on their own panel."""
    faults = []
    for ax, frame in frames.items():
        own = set(ax.findobj(Text))
        over = [text for text, box in boxes.items() if overlap(box, frame)]
        faults += [f"{name(text)} lies on a panel" for text in over if text not in own]
        around = {
            ax.title,
            ax._left_title,
            ax.xaxis.label,
            ax.yaxis.label,
            *ax.get_xticklabels(),
            *ax.get_yticklabels(),
        }
        if legend := ax.get_legend():
            around |= set(legend.get_texts())
        faults += [f"{name(text)} lies on its panel" for text in over if text in around]
    return faults


def small_panels(frames, size) -> list[str]:
    """Return a fault where the panels take too small a part of the figure."""
    share = sum(np.ptp(frame, axis=0).prod() for frame in frames.values()) / np.prod(size)
    return [f"The panels take {100 * share:.0f} % of the figure"] if share < LEAST_SHARE else []


def frame_of(ax):
    """Return the corners of a panel in points."""
    box = ax.get_window_extent()
    return np.array([[box.x0, box.y0], [box.x1, box.y0], [box.x1, box.y1], [box.x0, box.y1]]) * 72 / ax.figure.dpi


def hollow_points(ax) -> list[float]:
    """Return where points with a white face are along x."""
    return [x for line in ax.lines if line.get_markerfacecolor() == "#ffffff" for x in line.get_xdata()]


def name(text) -> str:
    return repr(text.get_text())
