"""Labels in any script: installed fonts, and code points for characters that no font has."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.textpath import text_to_path
from matplotlib.ticker import Formatter

MAX_LABEL_LENGTH = 24  # characters; longer labels end in …

FALLBACK_FONTS = (
    *(f"Noto Sans CJK {region}" for region in ("SC", "TC", "JP", "KR", "HK")),
    *("Source Han Sans SC", "Source Han Sans", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback"),
    *("Microsoft YaHei", "SimHei", "Yu Gothic", "Malgun Gothic", "PingFang SC", "Hiragino Sans GB", "Hiragino Sans"),
    *("Apple SD Gothic Neo", "IPAGothic", "NanumGothic", "Arial Unicode MS", "Noto Sans"),
    *(f"Noto Sans {script}" for script in ("Arabic", "Hebrew", "Devanagari", "Bengali", "Tamil", "Telugu", "Thai")),
    *(f"Noto Sans {script}" for script in ("Georgian", "Armenian", "Ethiopic", "Khmer", "Myanmar", "Sinhala")),
    *("Nirmala UI", "Leelawadee UI", "Lohit Devanagari", "FreeSans", "Unifont"),
    *("Noto Emoji", "Symbola", "Segoe UI Emoji", "Segoe UI Symbol", "Noto Sans Symbols", "Noto Sans Symbols 2"),
)
"""Outline fonts for scripts that DejaVu Sans lacks; matplotlib cannot draw colour bitmap fonts."""

_in_browser: ContextVar[bool] = ContextVar("in_browser", default=False)


@cache
def font_families() -> tuple[str, ...]:
    """Return DejaVu Sans, which matplotlib includes, and the fallback fonts that are installed."""
    installed = {font.name for font in fontManager.ttflist}
    return ("DejaVu Sans", *(name for name in FALLBACK_FONTS if name in installed))


@contextmanager
def browser_fonts() -> Iterator[None]:
    """Keep every character in this block: the browser finds a font for it."""
    before = _in_browser.set(True)
    try:
        yield
    finally:
        _in_browser.reset(before)


def to_label(token: str) -> str:
    """Return a token as a label: without line breaks, shortened, with code points for missing characters.

    >>> to_label("one\\ntwo"), to_label("extraordinarily long-winded")
    ('one⏎two', 'extraordinarily long-wi…')
    """
    pieces = [_piece(letter) for letter in token]
    while sum(map(len, pieces)) > MAX_LABEL_LENGTH:
        pieces = [*pieces[: -2 if pieces[-1] == "…" else -1], "…"]
    return "".join(pieces)


class TokenFormatter(Formatter):
    """Format tick positions as tokens."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tuple(map(str, tokens))

    def __call__(self, x: Any, pos: int | None = None) -> str:  # noqa: ARG002  (matplotlib gives both)
        """Return the token at a position."""
        position = round(x)
        return to_label(self.tokens[position]) if 0 <= position < len(self.tokens) else ""


def missing_glyphs(figure: Figure) -> set[str]:
    """Return the characters of a figure's tokens that no installed font has."""
    formatters = [axis.get_major_formatter() for axis in figure.findobj(Axis) if isinstance(axis, Axis)]
    tokens = [token for formatter in formatters if isinstance(formatter, TokenFormatter) for token in formatter.tokens]
    return {letter for token in tokens for letter in token if ord(letter) not in _glyphs() and not _unprintable(letter)}


def label_width(labels: Iterable[str]) -> float:
    """Return the width of the widest label, in inches per point of font size."""
    font = FontProperties(family=list(font_families()), size=10)
    widths = [text_to_path.get_text_width_height_descent(to_label(label), font, ismath=False)[0] for label in labels]
    return float(max(widths, default=0.0)) / 10 / 72


def _piece(letter: str) -> str:
    if letter in _BREAKS:
        return _BREAKS[letter]
    if _unprintable(letter) or not (_in_browser.get() or ord(letter) in _glyphs()):
        return f"U+{ord(letter):04X}"
    return letter


_BREAKS = {"\n": "⏎", "\t": "⇥", "\r": "↵"}


def _unprintable(letter: str) -> bool:
    """Whether a character is a control character, a lone surrogate or a non-character."""
    return unicodedata.category(letter) in ("Cc", "Cs") or ord(letter) & 0xFFFE == 0xFFFE


@cache
def _glyphs() -> frozenset[int]:
    """Return every code point that some installed font has."""
    fonts = [get_font(findfont(name)) for name in font_families()]
    return frozenset(code for font in fonts for code in font.get_charmap())
