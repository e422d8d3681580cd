"""The maps of each class that a classifier is most confident of."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.errors import InputError
from headscope.core.figure import Figure, Target
from headscope.patterns import NAMES
from headscope.patterns.labels.render import row_shares
from headscope.plotting import canvas, fonts, heatmap, selection, theme

PANEL = 1.35  # inches, by default


@dataclass(frozen=True)
class TypicalMaps(Figure):
    """A column of maps for each class, the most confident first, each on its own scale.

    It draws the result of `headscope patterns typical`. Colours follow the square root of a weight's share of its
    row; darker is more. `rows` is the number of maps per class, `size` the width in inches.
    """

    rows: int | None = None
    title: str | None = None
    size: float | None = None

    cites = ("kovaleva2019",)

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw one panel for each map."""
        selection.require_variables(data, "weights", "label")
        if self.rows is not None and self.rows < 1:
            raise InputError(f"The parameter 'rows' of 'typical_maps' must be at least 1, but got {self.rows}.")
        classes = list(dict.fromkeys(str(label) for label in data["label"].values))
        indices = {name: np.flatnonzero(data["label"].values == name)[: self.rows] for name in classes}
        rows = max(map(len, indices.values()))
        panel = PANEL if self.size is None else self.size / len(classes) - 0.12
        width = len(classes) * (panel + 0.12)
        figure = target.open_panels(width, rows * (panel + 0.42) + 0.6)
        panels = figure.subplots(rows, len(classes), squeeze=False)
        for column, name in enumerate(classes):
            panels[0, column].set_title(fonts.to_label(NAMES.get(name, name)), fontsize=theme.LABEL)
            for row, ax in enumerate(panels[:, column]):
                _draw_map(ax, data.isel(map=indices[name][row]) if row < len(indices[name]) else None)
        figure.suptitle(self.title if self.title is not None else "Maps of each class, the most confident first")
        note = "Rows are queries, columns are keys; darker is a larger share of the row; each map has its own scale."
        figure.supxlabel(canvas.wrap_text(note, width, theme.NOTE), fontsize=theme.NOTE, color=theme.quiet)


def _draw_map(ax: Axes, example: xr.Dataset | None) -> None:
    """Draw one map without its padding, with its source and confidence below."""
    if example is None:
        ax.set_axis_off()
        return
    weights = np.abs(example["weights"].transpose("query", "key").values.astype(float))
    finite = np.isfinite(weights)
    weights = weights[finite.any(1)][:, finite.any(0)]
    shares = row_shares(weights)
    scale = heatmap.weight_scale(shares, signed=False, spacing="root")
    ax.imshow(shares, norm=scale.norm, cmap=scale.colours, aspect="equal", interpolation="antialiased")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(color=theme.hatch, linewidth=0.4)
    texts = [fonts.to_label(text) for text in str(example["source"].values).split(", ")] if "source" in example else []
    if "confidence" in example:
        confidence = float(example["confidence"])
        texts.append("confidence > 0.99" if confidence > 0.99 else f"confidence {confidence:.2f}")
    lines = texts if len(texts) < 3 else [texts[0], ", ".join(texts[1:-1]), texts[-1]]
    ax.set_xlabel("\n".join(lines), fontsize=theme.NOTE - 2, color=theme.quiet, labelpad=2, linespacing=1.05)
