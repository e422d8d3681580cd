"""How faithful lenses are from layer to layer, or as more and more tokens are replaced."""

from dataclasses import dataclass

import xarray as xr
from matplotlib.ticker import MaxNLocator

from headscope.core.estimate import estimate
from headscope.core.figure import Figure, Target
from headscope.plotting import fonts, series, theme
from headscope.results.judged import describe_quantity, find_curve, list_effects


@dataclass(frozen=True)
class FaithfulnessCurve(Figure):
    """A line for each lens, with its 95 % interval over examples as a band.

    Of a result of `hs.faithfulness`: over the layers, of rank_correlation, top_share or mass_without_effect, for one
    `effect`; or over the share of tokens that are replaced (deletion) or kept (insertion). `size` is the width in
    inches.
    """

    variable: str | None = None
    effect: str | None = None
    title: str | None = None
    size: float | None = None

    cites = ("deyoung2020",)

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw a line for each lens."""
        name, axis = find_curve(data, self.variable)
        effect = list_effects(data, name, self.effect)[-1]
        at = {} if effect is None else {"effect": effect}
        lenses = [fonts.to_label(str(lens)) for lens in data["lens"].values]
        x = data[axis].values.astype(float)
        ax, width = series.open_axes(target, lenses, self.size, 0.9 + 0.2 * len(x))
        handles = [
            series.draw_estimates(
                ax,
                estimate(data, name).sel(**at).isel(lens=place),
                x,
                style,
                kind="band",
                size=3.2,
                label=lenses[place],
            )
            for place, style in enumerate(series.styles(lenses, "lenses"))
        ]
        series.style_axes(ax)
        if axis == "layer":
            ax.xaxis.set_major_locator(MaxNLocator(12, integer=True))
            ax.set_xlim(x.min() - 0.6, x.max() + 0.6)
        if ax.get_ylim()[0] < 0 < ax.get_ylim()[1]:
            ax.axhline(0, color=theme.quiet, linewidth=0.6, zorder=1)
        about = describe_quantity(data, name) + (f" · {effect.replace('_', ' ')}" if effect else "")
        title = self.title if self.title is not None else about + (f" · {lenses[0]}" if len(lenses) == 1 else "")
        note = f"Band: 95 % interval over examples (n = {int(data['n']):,})."
        label = {"layer": "layer", "share": "share of tokens"}[axis]
        what = name.removesuffix("_layer").replace("_", " ")
        series.label_series(ax, handles, width, title=title, x=label, y=what, note=note)
