"""What is wrong with the layout of a drawn figure: small, cut or overprinted text, and panels that are too small."""

from contextlib import contextmanager

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from headscope.plotting import theme

SMALLEST = 5.0  # points
SLACK = 0.75  # points that boxes of text may share: a box is taller than its letters
LEAST_SHARE = 0.18  # of the figure's area, for the panels


def find_faults(figure) -> list[str]:
    """Return what a reader of the figure in print would mention, in words."""
    with theme.apply():
        canvas = FigureCanvasAgg(figure)
        with record_texts() as texts:
            figure.draw_without_rendering()
        renderer = canvas.get_renderer()
        texts = list(texts)
        boxes = [(text, outline(text, renderer)) for text in texts]
        return [
            *(f"{name(text)} is set in {text.get_size():.1f} points" for text in texts if text.get_size() < SMALLEST),
            *(f"{name(text)} is cut" for text, box in boxes if is_cut(box, figure)),
            *overlapping_texts(boxes),
            *overprinted_panels(figure, boxes),
            *small_panels(figure),
        ]


@contextmanager
def record_texts():
    """Collect the texts that are really drawn in this block."""
    drawn, draw = {}, Text.draw

    def record(self, renderer):
        if self.get_visible() and self.get_text().strip():
            drawn[self] = None
        return draw(self, renderer)

    Text.draw = record
    try:
        yield drawn
    finally:
        Text.draw = draw


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


def is_cut(box, figure) -> bool:
    """Whether a text reaches beyond the figure."""
    return bool((box.min(0) < -SLACK).any() or (box.max(0) > figure.get_size_inches() * 72 + SLACK).any())


def overprinted_panels(figure, boxes) -> list[str]:
    """Return the texts that lie on panels other than their own, and the legends that lie on their own panel."""
    faults = []
    for ax in panels(figure):
        frame = frame_of(ax)
        own = set(ax.findobj(Text))
        faults += [f"{name(text)} lies on a panel" for text, box in boxes if text not in own and overlap(box, frame)]
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
        faults += [f"{name(text)} lies on its panel" for text, box in boxes if text in around and overlap(box, frame)]
    return faults


def small_panels(figure) -> list[str]:
    """Return a fault where the panels take too small a part of the figure."""
    width, height = figure.get_size_inches() * 72
    areas = [np.ptp(frame_of(ax), axis=0).prod() for ax in panels(figure)]
    share = sum(areas) / (width * height)
    return [f"The panels take {100 * share:.0f} % of the figure"] if share < LEAST_SHARE else []


def panels(figure):
    """Return the axes with data, and colour bars."""
    return [ax for ax in all_axes(figure) if ax.axison and ax.get_visible()]


def all_axes(figure):
    """Return all axes, also those inside others."""
    axes = list(figure.axes)
    return axes + [inner for ax in axes for inner in ax.child_axes if inner.patch.get_window_extent().width > 0]


def frame_of(ax):
    """Return the corners of a panel in points."""
    box = ax.get_window_extent()
    return np.array([[box.x0, box.y0], [box.x1, box.y0], [box.x1, box.y1], [box.x0, box.y1]]) * 72 / ax.figure.dpi


def name(text) -> str:
    return repr(text.get_text())
