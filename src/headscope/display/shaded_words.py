"""Importances as shaded words: HTML for notebooks and pages, and text for the terminal."""

import html
from collections.abc import Sequence

import numpy as np
from rich.style import Style
from rich.text import Text

from headscope.core.importance import Importances
from headscope.plotting.running_text import choose_scale, find_colours, read_texts

FAINT = 0.05
"""Share of the largest score below which negative scores are not underlined."""
MAX_TOP = 5
"""Tokens that are named below a text."""


def shade_html(importances: Importances, row: int) -> str:
    """Return one text as HTML; the score of each token is shown when the mouse is over it."""
    (text,) = read_texts(importances.dataset(row))
    scale, (scores,), _ = choose_scale([text])
    largest = _largest(scores)
    spans = []
    for piece, score, pair in zip(text.pieces, scores, find_colours(scale, scores), strict=True):
        inner = piece.lstrip(" ")
        spans.append(" " * (len(piece) - len(inner)))
        if pair is None:
            spans.append(f'<span style="opacity: 0.6">{html.escape(inner)}</span>')
            continue
        rule = "; text-decoration: underline" if score < -FAINT * largest else ""
        style = f"background: {pair[0]}; color: {pair[1]}; padding: 1px 0{rule}"
        spans.append(f'<span style="{style}" title="{score:.3g}">{html.escape(inner)}</span>')
    return f'<div style="line-height: 1.7; max-width: 46em; white-space: pre-wrap">{"".join(spans)}</div>'


def shade_terminal(importances: Importances, row: int) -> Text:
    """Return one text for a terminal: shaded, and with negative scores underlined."""
    (text,) = read_texts(importances.dataset(row))
    scale, (scores,), _ = choose_scale([text])
    largest, shaded = _largest(scores), Text()
    for piece, score, pair in zip(text.pieces, scores, find_colours(scale, scores), strict=True):
        inner = piece.lstrip(" ")
        shaded.append(" " * (len(piece) - len(inner)))
        style = Style(dim=True)
        if pair is not None:
            style = Style(color=pair[1], bgcolor=pair[0], underline=bool(score < -FAINT * largest))
        shaded.append(inner, style)
    return shaded


def list_largest(importances: Importances, row: int, count: int = MAX_TOP) -> str:
    """Return the tokens with the largest scores by size, with their numbers, which need no colours."""
    (text,) = read_texts(importances.dataset(row))
    order = _order(text.scores)[:count]
    sign = "+" if text.signed else ""
    return ", ".join(f"{text.pieces[index].strip()} {text.scores[index]:{sign}.3g}" for index in order)


def describe_marks(importances: Importances) -> str:
    """Return what the shades mean."""
    blue = "blue: for it, orange and underlined: against it" if importances.signed else "darker: more"
    return f"{importances.quantity}; {blue}"


def _order(scores: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> Sequence[int]:
    sizes = np.where(np.isfinite(scores), np.abs(scores), -1.0)
    order: list[int] = np.argsort(-sizes, kind="stable")[: int(np.isfinite(scores).sum())].tolist()
    return order


def _largest(scores: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> float:
    finite = np.abs(scores[np.isfinite(scores)])
    return float(finite.max()) if finite.size else 0.0
