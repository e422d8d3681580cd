"""Labels in any script: installed fonts, and code points for characters that no font has."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import Any

from matplotlib import rcParams
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


def font_families() -> tuple[str, ...]:
    """Return the installed fonts that labels use: those of the user's rcParams, DejaVu Sans, and fallback fonts."""
    return _choose_fonts(tuple((name in GENERIC, tuple(_list_fonts(name))) for name in rcParams["font.family"]))


@cache
def _choose_fonts(families: tuple[tuple[bool, tuple[str, ...]], ...]) -> tuple[str, ...]:
    """Return the first installed font of each generic family, other installed fonts, and the fallback fonts."""
    chosen: list[str] = []
    for generic, names in families:
        chosen += _find_installed(names)[: 1 if generic else None]
    return tuple(dict.fromkeys([*chosen, "DejaVu Sans", *_find_installed(FALLBACK_FONTS)]))


GENERIC = ("serif", "sans-serif", "cursive", "fantasy", "monospace")
"""Families of which rcParams lists the fonts, the preferred one first."""


def _list_fonts(family: str) -> list[str]:
    """Return the fonts of a generic family; of any other name, the font of this name."""
    settings: dict[Any, Any] = rcParams
    return list(settings[f"font.{family}"]) if family in GENERIC else [family]


def _find_installed(families: Iterable[str]) -> list[str]:
    return [name for name in families if name in _installed_fonts()]


@cache
def _installed_fonts() -> frozenset[str]:
    return frozenset(font.name for font in fontManager.ttflist)


def missing_fonts() -> list[str]:
    """Return the fonts that rcParams asks for, where none of them is installed."""
    missing: list[str] = []
    for name in rcParams["font.family"]:
        if _find_installed(_list_fonts(name)):
            return []
        missing += _list_fonts(name)
    return missing


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
    return _to_label(token, None if _in_browser.get() else _glyphs())


@lru_cache(maxsize=4096)
def _to_label(token: str, glyphs: frozenset[int] | None) -> str:
    pieces = [_piece(letter, glyphs) for letter in token]
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

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the tokens at some positions; the fonts are looked up once for all of them."""
        glyphs = None if _in_browser.get() else _glyphs()
        positions = [round(value) for value in values]
        labels = [_to_label(token, glyphs) for token in self.tokens]
        return [labels[position] if 0 <= position < len(labels) else "" for position in positions]


def missing_glyphs(figure: Figure) -> set[str]:
    """Return the characters of a figure's tokens that no installed font has."""
    axes = [part for ax in figure.axes for part in (ax, *ax.child_axes)]
    formatters = [axis.get_major_formatter() for part in axes for axis in (part.xaxis, part.yaxis)]
    tokens = [token for formatter in formatters if isinstance(formatter, TokenFormatter) for token in formatter.tokens]
    return {letter for token in tokens for letter in token if ord(letter) not in _glyphs() and not _unprintable(letter)}


def label_width(labels: Iterable[str]) -> float:
    """Return the width of the widest label, in inches per point of font size."""
    return max((text_width(to_label(label)) for label in labels), default=0.0)


def text_width(text: str) -> float:
    """Return the width of a line of text, in inches per point of font size."""
    return _measure(text, font_families())


@lru_cache(maxsize=4096)
def _measure(text: str, families: tuple[str, ...]) -> float:
    font = FontProperties(family=list(families), size=10)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]) / 10 / 72


def _piece(letter: str, glyphs: frozenset[int] | None) -> str:
    """Return a character, or its code point where it is not among the glyphs; None is all of them."""
    if letter in _BREAKS:
        return _BREAKS[letter]
    if _unprintable(letter) or (glyphs is not None and ord(letter) not in glyphs):
        return f"U+{ord(letter):04X}"
    return letter


_BREAKS = {"\n": "⏎", "\t": "⇥", "\r": "↵"}


def _unprintable(letter: str) -> bool:
    """Whether a character is a control character, a lone surrogate or a non-character."""
    return unicodedata.category(letter) in ("Cc", "Cs") or ord(letter) & 0xFFFE == 0xFFFE


def _glyphs() -> frozenset[int]:
    """Return every code point that some font in use has."""
    return _code_points(font_families())


@cache
def _code_points(families: tuple[str, ...]) -> frozenset[int]:
    fonts = [get_font(findfont(name)) for name in families]
    return frozenset(code for font in fonts for code in font.get_charmap())
