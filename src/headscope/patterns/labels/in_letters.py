"""A map drawn with letters, for a terminal: two cells above each other in one."""

import numpy as np
from rich.style import Style
from rich.text import Text

from headscope.patterns.labels.labelled import Array, PatternMap
from headscope.patterns.labels.sheet import blackness


def in_letters(each: PatternMap, wide: int = 76) -> Text:
    """The map as half blocks, darker for more, at most so many letters wide."""
    shown = smaller(blackness(each.weights), wide)
    if 2 * len(shown) <= wide:
        shown = shown.repeat(2, axis=0).repeat(2, axis=1)
    if len(shown) % 2:
        shown = np.vstack([shown, np.zeros((1, shown.shape[1]))])
    drawn = Text()
    for upper, lower in zip(shown[::2], shown[1::2], strict=True):
        for above, below in zip(upper, lower, strict=True):
            drawn.append("▀", Style(color=_grey(above), bgcolor=_grey(below)))
        drawn.append("\n")
    return drawn


def smaller(shown: Array, wide: int) -> Array:
    """The same picture at most so many cells wide; of the cells that fall together the darkest stays.

    >>> smaller(np.eye(4), 2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if len(shown) <= wide:
        return shown
    edges = np.linspace(0, len(shown), wide, endpoint=False).astype(int)
    return np.maximum.reduceat(np.maximum.reduceat(shown, edges, axis=0), edges, axis=1)


def _grey(black: float) -> str:
    level = round(255 * (1 - min(1.0, float(black))))
    return f"rgb({level},{level},{level})"
