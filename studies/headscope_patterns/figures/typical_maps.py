"""The maps of each class that a classifier is most confident of."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.errors import InputError
from headscope.core.figure import Figure, Target
from headscope.patterns import NAMES
from headscope.plotting import canvas, fonts, heatmap, scales, selection, theme
from headscope.plotting.panels import open_grid
from headscope_patterns.labels.render import row_shares

PANEL, ROW_PANEL = 1.35, 0.85  # inches: the sides of a map by default, and in a row


@dataclass(frozen=True)
class TypicalMaps(Figure):
    """A column of maps for each class, or in narrow figures a row, the most confident first, each on its own scale.

    It draws the result of `headscope patterns typical`. Colors follow a weight's share of its row, linear up to the
    99.5 % quantile of each map, or up to `limit`; `scale` sets linear, root or log. `rows` is the number of maps per
    class, `cmap` a colour map of matplotlib, `size` the width in inches.
    """

    rows: int | None = None
    title: str | None = None
    size: float | None = None
    scale: scales.Spacing = "linear"
    limit: float | None = None
    cmap: scales.ColourMap = None

    cites = ("kovaleva2019",)

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw one panel for each map."""
        selection.require_variables(data, "weights", "label")
        if self.rows is not None and self.rows < 1:
            raise InputError(f"The parameter 'rows' of 'typical_maps' must be at least 1, but got {self.rows}.")
        classes = list(dict.fromkeys(str(label) for label in data["label"].values))
        indices = {name: np.flatnonzero(data["label"].values == name)[: self.rows] for name in classes}
        count = max(map(len, indices.values()))
        layout = _fit_panels(classes, count, self.size)
        figure = target.open_panels(*layout.size)
        grid = open_grid(figure, count * len(classes), count if layout.by_row else len(classes))
        panels = grid.rows if layout.by_row else zip(*grid.rows, strict=True)
        for (name, maps), row in zip(indices.items(), panels, strict=True):
            for index, ax in enumerate(row):
                self._draw_map(ax, data.isel(map=maps[index]) if index < len(maps) else None, layout.panel)
            _set_class(row[0], fonts.to_label(NAMES.get(name, name)), by_row=layout.by_row)
        title = self.title if self.title is not None else "Maps of each class, the most confident first"
        grid.write(title=title, note=self._describe_scale())

    def _draw_map(self, ax: Axes, example: xr.Dataset | None, panel: float) -> None:
        """Draw one map without its padding, with its source and confidence below."""
        if example is None:
            ax.set_axis_off()
            return
        weights = np.abs(example["weights"].transpose("query", "key").values.astype(float))
        finite = np.isfinite(weights)
        shares = row_shares(weights[finite.any(1)][:, finite.any(0)])
        scale = scales.weight_scale(shares, signed=False, spacing=self.scale, limit=self.limit, cmap=self.cmap)
        ax.imshow(shares, norm=scale.norm, cmap=scale.colours, aspect="equal", interpolation="antialiased")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(color=theme.hatch, linewidth=0.4)
        _write_source(ax, example, panel)

    def _describe_scale(self) -> str:
        spacing = {"linear": "", "root": " (square-root colour scale)", "log": " (logarithmic colour scale)"}
        end = f"each map has its own scale, which ends at its {100 * scales.QUANTILE:g} % quantile"
        end = end if self.limit is None else f"scales end at limit={self.limit:g}"
        return f"Rows are queries, columns are keys; darker is a larger share of the row{spacing[self.scale]}; {end}."


@dataclass(frozen=True)
class PanelLayout:
    """Whether a class is a row of maps, and sizes in inches."""

    by_row: bool
    panel: float
    size: tuple[float, float]


def _fit_panels(classes: list[str], count: int, width: float | None) -> PanelLayout:
    """Return the layout for `count` maps of each class; classes are rows where columns would be too narrow."""
    names = [NAMES.get(name, name) for name in classes]
    total = min(theme.PAGE[0], len(classes) * (PANEL + 0.12)) if width is None else width
    panel = total / len(classes) - 0.12
    widest = fonts.label_width(names) * theme.text_size("label")
    by_row = panel < min(widest, PANEL)
    if by_row:
        panel = (total - 0.3) / count - 0.12
        panel = min(panel, max(0.4, (theme.PAGE[1] - 1.2) / len(classes) - 0.55), ROW_PANEL)
    rows = len(classes) if by_row else count
    if panel <= 0.1:
        raise heatmap.too_narrow(total)
    return PanelLayout(by_row, panel, (total, rows * (panel + 0.5) + 0.9))


def _set_class(ax: Axes, name: str, *, by_row: bool) -> None:
    """Name a class above its first map, or to the left of it."""
    size = theme.text_size("label")
    if by_row:
        ax.axison = True
        ax.set_ylabel(name, fontsize=size)
    else:
        ax.set_title(name, fontsize=size)


def _write_source(ax: Axes, example: xr.Dataset, panel: float) -> None:
    """Write the source of a map and the confidence of its class below it."""
    texts = [fonts.to_label(text) for text in str(example["source"].values).split(", ")] if "source" in example else []
    if "confidence" in example:
        confidence = float(example["confidence"])
        texts.append("confidence > 0.99" if confidence > 0.99 else f"confidence {confidence:.2f}")
    lines = texts if len(texts) < 3 else [texts[0], ", ".join(texts[1:-1]), texts[-1]]
    size = theme.text_size("small")
    caption = canvas.wrap_text("\n".join(lines), panel + 0.1, size)
    ax.set_xlabel(caption, fontsize=size, color=theme.quiet, labelpad=2, linespacing=1.05)
