"""Colour scales of weights, named on their colour bars: linear by default, up to a quantile of the weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import make_axes
from matplotlib.colors import Colormap, FuncNorm, LogNorm, Normalize, SymLogNorm
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from headscope.core.errors import InputError, unknown_name
from headscope.plotting import canvas, fonts, theme

Cells = np.ndarray[Any, np.dtype[np.float64]]

Spacing = Literal["linear", "root", "log"]
"""How colors follow weights; by square roots or logarithms, small weights stay visible beside large ones."""

ColourMap = str | Colormap | None
"""A colour map of matplotlib or its name; None is the default."""

QUANTILE = 0.995
"""The quantile of the absolute weights at which colors end; larger weights have the last color."""

DECADES = (1e-3, 1e-2)  # the smallest weight of a logarithmic scale, as shares of the largest

BAR, GAP = 0.1, 0.08  # inches: thickness of a colour bar, and its distance from the axes
SHORTEST = 1.4  # inches: beside lower axes, the label of a colour bar would be longer than the axes
BELOW = 0.62  # inches below the axes that a colour bar with two lines of label takes


@dataclass(frozen=True)
class ColourScale:
    """A norm and a colour map, and a sentence on where the scale ends if weights lie beyond its end."""

    norm: Normalize
    colours: Colormap
    end: str = ""

    def rgba(self, numbers: Cells) -> Cells:
        """Return red, green, blue and opacity of each number."""
        flat = self.colours(np.asarray(self.norm(np.ravel(numbers))))
        return np.asarray(flat).reshape(*np.shape(numbers), 4)

    @property
    def name(self) -> str:
        """The kind of scale and its end, for a colour bar; empty for a linear scale that holds all weights."""
        return "; ".join(filter(None, (self._spacing, self.end)))

    @property
    def _spacing(self) -> str:
        if isinstance(self.norm, LogNorm):
            return f"logarithmic colour scale; white: below {format_tick(float(self.norm.vmin or 0))}"
        if isinstance(self.norm, SymLogNorm):
            return f"logarithmic colour scale, linear within ±{format_tick(self.norm.linthresh)}"
        return "square-root colour scale" if isinstance(self.norm, FuncNorm) else ""


def weight_scale(
    weights: Cells,
    *,
    signed: bool,
    spacing: Spacing = "linear",
    limit: float | None = None,
    cmap: ColourMap = None,
    like: tuple[str, Cells] | None = None,
) -> ColourScale:
    """Return a scale from 0 to a quantile of the absolute weights, symmetric around 0 where weights are signed.

    Parameters
    ----------
    weights
        All weights that are drawn; the last axis is that of keys.
    signed
        Whether weights may be negative.
    spacing
        linear, root or log.
    limit
        The weight at which colors end, in place of the quantile.
    cmap
        A colour map of matplotlib or its name.
    like
        The name and the weights of the map whose quantile ends the scale; by default all weights that are drawn.
    """
    if limit is not None and not limit > 0:
        raise InputError(f"limit is the weight at which colors end, so it must be above 0, but got {limit:g}.")
    name, shown = like or ("", weights)
    share, quantile = find_quantile(shown)
    largest = quantile if limit is None else limit
    sizes = np.abs(weights[np.isfinite(weights)])
    ends = (-largest if signed else 0.0, largest)
    norm = Normalize(*ends)
    if spacing == "root":
        norm = FuncNorm((signed_root, signed_square), *ends)
    elif spacing == "log":
        least = _smallest(sizes[sizes > 0], largest)
        norm = SymLogNorm(least, linscale=0.5, vmin=-largest, vmax=largest) if signed else LogNorm(least, largest)
        norm.clip = not signed
    of = f" of {name}" if name else ""
    rule = f"the {format_tick(round(100 * share, 2))} % quantile{of}, " if limit is None else "limit="
    end = f"scale ends at {rule}{'±' if signed else ''}{largest:.2g}"
    above = int((sizes > largest).sum())
    end = f"{end}; {above} {'cells are' if above > 1 else 'cell is'} beyond" if above else ""
    return ColourScale(norm, find_colours(cmap, theme.signed if signed else theme.weights), end)


def find_quantile(weights: Cells, keys: int | None = None) -> tuple[float, float]:
    """Return the share of weights on a scale, and the absolute weight at which the scale ends.

    The share is `QUANTILE`. With more than 100 keys it is higher, so that at most every second query has a weight
    beyond the end: a head that gives one key of each row nearly all of its weight would else be drawn by its noise.
    `keys` is their number, where the last axis of `weights` is not that of keys.

    >>> find_quantile(np.eye(400))
    (0.99875, 1.0)
    """
    sizes = np.abs(weights[np.isfinite(weights)])
    share = max(QUANTILE, 1 - 0.5 / (keys or weights.shape[-1]))
    end = float(np.quantile(sizes, share, method="higher")) if sizes.size else 1.0
    return share, end or float(sizes.max()) or 1.0


def _smallest(sizes: Cells, largest: float) -> float:
    """Return the power of ten nearest to the smallest weights, within about `DECADES` of the largest."""
    low, high = (share * largest for share in DECADES)
    percentile = float(np.percentile(sizes, 5)) if sizes.size else high
    return float(10 ** np.round(np.log10(min(max(percentile, low), high))))


def find_colours(cmap: ColourMap, default: Colormap) -> Colormap:
    """Return the colour map of a name that matplotlib knows, a colour map itself, or the default."""
    if cmap is None or isinstance(cmap, Colormap):
        return default if cmap is None else cmap
    if not isinstance(cmap, str):
        raise InputError(f"cmap must be the name of a colour map or a matplotlib Colormap, but got {cmap!r}.")
    if cmap not in matplotlib.colormaps:
        raise unknown_name("colour map", cmap, [name for name in matplotlib.colormaps if not name.endswith("_r")])
    return matplotlib.colormaps[cmap]


def signed_root(numbers: Cells) -> Cells:
    """Return the square root of the absolute value, with the sign of the number."""
    return np.sign(numbers) * np.sqrt(np.abs(numbers))


def signed_square(numbers: Cells) -> Cells:
    """Return the square, with the sign of the number."""
    return np.sign(numbers) * np.square(numbers)


def add_colour_bar(
    ax: Axes,
    scale: ColourScale,
    text: str,
    box: tuple[float, float],
    *,
    below: bool = False,
) -> None:
    """Add a colour bar beside or below axes of `box` inches, without shrinking them.

    It is as long as the axes, at most three inches.
    """
    width, height = box
    length = min(3.0, width if below else height)
    if below:
        bounds = (0.5 - length / width / 2, -(GAP + BAR) / height, length / width, BAR / height)
    else:
        bounds = (1 + GAP / width, 1 - length / height, BAR / width, length / height)
    draw_colour_bar(ax.inset_axes(bounds), scale, text, (length, width if below else max(length, 1.4)), below=below)


def is_narrow(ax: Axes) -> bool:
    """Whether the caller's axes are so narrow that a colour bar is better below them than beside them."""
    return bool(canvas.axes_size(ax)[0] < 0.6 * theme.NARROW)


def bar_height(scale: ColourScale, text: str, width: float) -> float:
    """Return the height in inches of a colour bar below axes of a width in inches, with its ticks and label."""
    size = theme.text_size("note")
    lines = canvas.wrap_text(_name_bar(scale, text), width, size).count("\n") + 1
    return GAP + BAR + (8 + size * (1.2 + 1.2 * lines)) / 72


def _name_bar(scale: ColourScale, text: str) -> str:
    return f"{text} ({scale.name})" if scale.name else text


def draw_colour_bar(
    bar_axes: Axes, scale: ColourScale, text: str, lengths: tuple[float, float], *, below: bool
) -> None:
    """Draw a colour bar in axes of its own; `lengths` are those of the bar and of its label, in inches."""
    mappable = ScalarMappable(scale.norm, scale.colours)
    extend = "neither" if not scale.end else "both" if scale.norm.vmin == -float(scale.norm.vmax or 0) else "max"
    bar = bar_axes.figure.colorbar(
        mappable, cax=bar_axes, orientation="horizontal" if below else "vertical", extend=extend
    )
    size = theme.text_size("note")
    axis = bar_axes.xaxis if below else bar_axes.yaxis
    axis.set_major_locator(FixedLocator(choose_ticks(scale.norm, lengths[0], size, across=below)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_tick(value)))
    axis.set_minor_locator(NullLocator())
    bar_axes.tick_params(labelsize=size, width=0.5, length=2.5, pad=1.5)
    bar.set_label(canvas.wrap_text(_name_bar(scale, text), lengths[1], size), fontsize=size, labelpad=2)
    bar.outline.set_linewidth(0.5)


def add_shared_bar(panels: Sequence[Axes], scale: ColourScale, text: str, length: float, *, below: bool = True) -> None:
    """Add a colour bar below or beside several panels that are about `length` inches wide or high together.

    A layout engine makes place for it.
    """
    share = min(0.8, 3.0 / length) if below else 1.0
    place: dict[str, Any] = {"location": "bottom" if below else "right", "shrink": share, "pad": 0.02, "panchor": False}
    bar_axes, _ = make_axes(list(panels), aspect=share * length / BAR, **place)
    draw_colour_bar(bar_axes, scale, text, (share * length, length if below else max(length, 1.4)), below=below)


def choose_ticks(norm: Normalize, length: float, size: float, *, across: bool) -> list[float]:
    """Return round numbers whose labels of font size `size` do not overlap on a bar or axis of `length` inches."""
    low, high = float(norm.vmin or 0.0), float(norm.vmax or 0.0)
    if type(norm) is Normalize:
        most = max(2, int(length / (0.45 if across else 0.28)))
        return [float(tick) for tick in MaxNLocator(min(6, most)).tick_values(low, high) if low <= tick <= high]
    powers = [10.0**power for power in range(-9, 10)]
    digits = (1,) if isinstance(norm, LogNorm | SymLogNorm) else (1, 5, 2)
    steps = [digit * power for digit in digits for power in reversed(powers)]
    numbers = [0.0, *(sign * step for step in steps for sign in (1, -1))]
    return _keep_apart(
        [n for n in numbers if low * (1 + 1e-9 * np.sign(-low)) <= n <= high],
        lambda n: float(norm(n)) * length,
        size,
        across=across,
    )


def _keep_apart(numbers: list[float], to_inches: Callable[[float], float], size: float, *, across: bool) -> list[float]:
    """Keep the first of the numbers whose labels would overlap; `to_inches` gives their positions."""
    ticks: list[float] = []
    for number in numbers:
        gaps = [abs(to_inches(number) - to_inches(other)) for other in ticks]
        need = [
            (fonts.text_width(format_tick(number)) + fonts.text_width(format_tick(other))) / 2 * size + 0.08
            if across
            else size * 1.3 / 72
            for other in ticks
        ]
        if all(gap >= least for gap, least in zip(gaps, need, strict=True)):
            ticks.append(number)
    return sorted(ticks)


def format_tick(value: float) -> str:
    """Format a number without trailing zeros and with a typographic minus.

    >>> format_tick(0.25), format_tick(-1.0)
    ('0.25', '−1')
    """
    return f"{value:.6g}".replace("-", "−") if abs(value) > 1e-12 else "0"
