"""The score of a model with fewer and fewer heads."""

from dataclasses import dataclass
from typing import Any, Literal

import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from headscope.core.errors import InputError
from headscope.core.estimate import Estimate, estimate
from headscope.core.figure import Figure, Target
from headscope.core.provenance import read_provenance
from headscope.plotting import series, theme


@dataclass(frozen=True)
class PruningCurve(Figure):
    """The score, or its change, over the share of pruned heads, with its 95 % interval as a band.

    Several curves are a list of results of `hs.pruning_curve`, or a dict by names. Of random orders it shows the mean,
    and every order as a thin line. `size` is the width in inches.
    """

    variable: Literal["score", "change"] = "score"
    title: str | None = None
    size: float | None = None

    cites = ("michel2019",)

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw a line for each curve."""
        if "pruned" not in data.dims or self.variable not in data:
            raise InputError("This is no pruning curve. Compute one: hs.pruning_curve(model, data).")
        if not data.sizes["pruned"]:
            raise InputError("There is nothing to draw: the data has no pruned shares.")
        facts = read_provenance(data)
        curves = data if "curve" in data.dims else data.expand_dims(curve=[str(facts.get("by", "score"))])
        curves = curves if "seed" in curves.dims else curves.expand_dims(seed=[0])
        names = [str(name) for name in curves["curve"].values]
        ax, width = series.open_axes(target, names, self.size, 4.2)
        look: dict[str, Any] = {"color": theme.quiet, "linewidth": 0.7, "linestyle": (0, (4, 2)), "zorder": 1}
        ax.axhline(float(curves[self.variable].isel(pruned=0).max()), **look)
        styles = series.styles(names, "curves")
        lines = [_draw_curve(ax, curves.isel(curve=index), self.variable, style) for index, style in enumerate(styles)]
        handles = [handle for handle, _ in lines]
        series.style_axes(ax)
        ax.set_xlim(-2, float(data["pruned"].max()) + 2)
        label = str(data[self.variable].attrs.get("long_name", self.variable))
        title = (
            self.title if self.title is not None else f"{label} after pruning · {facts.get('site', '')}".rstrip(" ·")
        )
        note = _describe(any(random for _, random in lines), all(random for _, random in lines), facts)
        series.label_series(ax, handles, width, title=title, x="pruned heads (%)", y=label, note=note)


def _draw_curve(ax: Axes, curve: xr.Dataset, variable: str, style: series.SeriesStyle) -> tuple[Artist, bool]:
    """Draw one curve; return its legend entry, and whether it is a mean of several orders."""
    orders = curve.transpose("seed", "pruned").dropna("seed", how="all", subset=[variable])
    shares, random = orders["pruned"].values.astype(float), orders.sizes["seed"] > 1
    if random:
        for order in orders[variable].values:
            ax.plot(shares, order, color=style.colour, linewidth=0.5, alpha=0.5, zorder=2)
    scores = Estimate(orders[variable].mean("seed", skipna=False)) if random else estimate(orders, variable)
    label = str(curve["curve"].values)
    return series.draw_estimates(ax, scores, shares, style, kind="band", size=3.2, label=label), random


def _describe(any_random: bool, all_random: bool, facts: dict[str, Any]) -> str:
    """Return what the lines and bands are."""
    parts = [] if all_random else ["Band: 95 % interval over examples."]
    parts += ["Line: mean of random orders, each a thin line."] if any_random else []
    parts += [f"n = {facts['n']:,} examples." if "n" in facts else "", "Dashed: no head pruned."]
    return " ".join(part for part in parts if part)
