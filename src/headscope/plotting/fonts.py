"""Tokens in any script: which fonts there are, and what to draw where none has the character."""

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

LONGEST = 24
"""A label of more characters than this is shortened with …"""

KNOWN = (
    *(f"Noto Sans CJK {place}" for place in ("SC", "TC", "JP", "KR", "HK")),
    *(
        "Source Han Sans SC",
        "Source Han Sans",
        "WenQuanYi Zen Hei",
        "WenQuanYi Micro Hei",
        "Droid Sans Fallback",
    ),
    *(
        "Microsoft YaHei",
        "SimHei",
        "Yu Gothic",
        "Malgun Gothic",
        "PingFang SC",
        "Hiragino Sans GB",
        "Hiragino Sans",
    ),
    *("Apple SD Gothic Neo", "IPAGothic", "NanumGothic", "Arial Unicode MS", "Noto Sans"),
    *(f"Noto Sans {script}" for script in ("Arabic", "Hebrew", "Devanagari", "Bengali", "Tamil", "Telugu", "Thai")),
    *(f"Noto Sans {script}" for script in ("Georgian", "Armenian", "Ethiopic", "Khmer", "Myanmar", "Sinhala")),
    *("Nirmala UI", "Leelawadee UI", "Lohit Devanagari", "FreeSans", "Unifont"),
    *(
        "Noto Emoji",
        "Symbola",
        "Segoe UI Emoji",
        "Segoe UI Symbol",
        "Noto Sans Symbols",
        "Noto Sans Symbols 2",
    ),
)
"""Fonts with outlines for scripts that DejaVu Sans lacks; fonts of coloured bitmaps cannot be drawn."""

_in_browser: ContextVar[bool] = ContextVar("in_browser", default=False)


@cache
def families() -> tuple[str, ...]:
    """DejaVu Sans, which comes with matplotlib, and those of the known fonts that are installed."""
    installed = {font.name for font in fontManager.ttflist}
    return ("DejaVu Sans", *(name for name in KNOWN if name in installed))


@contextmanager
def browser_fonts() -> Iterator[None]:
    """Write every character as it is: the browser finds a font."""
    before = _in_browser.set(True)
    try:
        yield
    finally:
        _in_browser.reset(before)


def shown(token: str) -> str:
    """A token as its label: no line breaks, not too long, code points where no font has the character.

    >>> shown("one\\ntwo"), shown("extraordinarily long-winded")
    ('one⏎two', 'extraordinarily long-wi…')
    """
    pieces = [_piece(letter) for letter in token]
    while sum(map(len, pieces)) > LONGEST:
        pieces = [*pieces[: -2 if pieces[-1] == "…" else -1], "…"]
    return "".join(pieces)


class Labels(Formatter):
    """Tick labels that are tokens."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tuple(map(str, tokens))

    def __call__(self, x: Any, pos: int | None = None) -> str:  # noqa: ARG002  (matplotlib gives both)
        """The token at a place."""
        place = round(x)
        return shown(self.tokens[place]) if 0 <= place < len(self.tokens) else ""


def missing(figure: Figure) -> set[str]:
    """The characters of a figure's tokens that no installed font has."""
    formatters = [axis.get_major_formatter() for axis in figure.findobj(Axis) if isinstance(axis, Axis)]
    tokens = [token for each in formatters if isinstance(each, Labels) for token in each.tokens]
    return {letter for token in tokens for letter in token if not _drawable(letter) and not _unprintable(letter)}


def width(labels: Iterable[str]) -> float:
    """How many inches the widest label takes for each point of its size."""
    font = FontProperties(family=list(families()), size=10)
    widths = [text_to_path.get_text_width_height_descent(shown(label), font, ismath=False)[0] for label in labels]
    return float(max(widths, default=0.0)) / 10 / 72


def _piece(letter: str) -> str:
    if letter in _BREAKS:
        return _BREAKS[letter]
    if _unprintable(letter) or not (_in_browser.get() or _drawable(letter)):
        return f"U+{ord(letter):04X}"
    return letter


_BREAKS = {"\n": "⏎", "\t": "⇥", "\r": "↵"}


def _unprintable(letter: str) -> bool:
    """Control characters, halves of a surrogate pair and non-characters, which no file format may hold."""
    return unicodedata.category(letter) in ("Cc", "Cs") or ord(letter) & 0xFFFE == 0xFFFE


def _drawable(letter: str) -> bool:
    return ord(letter) in _glyphs()


@cache
def _glyphs() -> frozenset[int]:
    """Every code point that some installed font has."""
    fonts = [get_font(findfont(name)) for name in families()]
    return frozenset(code for font in fonts for code in font.get_charmap())
