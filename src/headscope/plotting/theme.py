"""Colours by role and matplotlib settings of every figure: safe for colour-blind readers and grey print."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from matplotlib import rcParams, style
from matplotlib.colors import LinearSegmentedColormap, to_rgb

from headscope.plotting.fonts import font_families

ink = "#1a1a1a"
quiet = "#5f5f5f"  # notes and axes
faint = "#d9d9d9"
hidden = "#ececec"  # masked cells, hatched so that they differ from zero in grey print
hatch = "#bdbdbd"

_BLUES = ("#ffffff", "#bcd8ef", "#5a9bd0", "#1b5fa6", "#06244f")

weights = LinearSegmentedColormap.from_list("headscope_weights", _BLUES)
"""White is 0; darker is more."""

signed = LinearSegmentedColormap.from_list(
    "headscope_signed", ["#5c2700", "#b65200", "#ee8f35", "#fbd3a5", *_BLUES], N=511
)
"""Orange is negative, white is 0, blue is positive as in `weights`; both sides darken alike."""

positive, negative = "#0b3a75", "#b65200"

heads = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8c6d00")
"""One colour per head, from Okabe & Ito."""

MIN_FONT_SIZE = 5.0  # points; smaller text is left out
FONT_SIZES = (6.0, 14.0)  # points; the user's font.size is used between them
SHARES = {"title": 1.0, "label": 0.9, "note": 0.8, "small": 0.65}  # of font.size

PAGE = (6.9, 9.0)  # inches; a new figure is no larger unless its width is given
COLUMN = 3.3  # inches
NARROW = 4.6  # inches; in narrower figures colour bars and legends are below or above the panels

RC_PARAMS: dict[str, Any] = {
    "text.parse_math": False,  # a token may contain $ and _
    "text.color": ink,
    "axes.labelcolor": ink,
    "axes.edgecolor": quiet,
    "axes.linewidth": 0.6,
    "legend.frameon": False,
    "hatch.linewidth": 0.4,
    "hatch.color": hatch,
    "savefig.dpi": 200,
    "svg.hashsalt": "headscope",  # the same figure gives the same bytes
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


def text_size(role: Literal["title", "label", "note", "small"]) -> float:
    """Return the font size of a kind of text in points: a share of `font.size`, and never too small to read."""
    return max(MIN_FONT_SIZE, SHARES[role] * float(rcParams["font.size"]))


@contextmanager
def apply() -> Iterator[None]:
    """Use headscope's style with the user's fonts in this block; restore the user's rcParams on exit."""
    low, high = FONT_SIZES
    base = min(max(float(rcParams["font.size"]), low), high)
    params = {**RC_PARAMS, "font.family": [*font_families(), "sans-serif"], "font.size": base, **_text_sizes(base)}
    logger = logging.getLogger("matplotlib.font_manager")
    before = logger.level
    logger.setLevel(logging.ERROR)  # a fallback font may lack a weight
    try:
        with style.context(["default", params]):
            yield
    finally:
        logger.setLevel(before)


def _text_sizes(base: float) -> dict[str, Any]:
    sizes = {role: max(MIN_FONT_SIZE, share * base) for role, share in SHARES.items()}
    return {
        "axes.titlesize": sizes["title"],
        "figure.titlesize": sizes["title"],
        "axes.labelsize": sizes["label"],
        "xtick.labelsize": sizes["note"],
        "ytick.labelsize": sizes["note"],
        "legend.fontsize": sizes["note"],
        "legend.title_fontsize": sizes["note"],
    }


def text_colour(colour: Any) -> str:
    """Return a readable text colour on a background: dark on light, white on dark."""
    return ink if luminance(colour) > 0.2 else "#ffffff"


def luminance(colour: Any) -> float:
    """Return the relative luminance of a colour, from 0 to 1."""
    red, green, blue = (((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour))
    return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)
