"""Attention of one token of an image model, over the image."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle

from headscope.core.errors import InputError
from headscope.core.example import PAD
from headscope.core.figure import Figure, Target
from headscope.core.prose import join_words
from headscope.plotting import canvas, heatmap, scales, selection, theme

FADED = 0.35  # contrast of the image; colours show weights, so the image is pale
SOFT = 0.75  # darkness of the largest weight, so that the image stays visible


@dataclass(frozen=True)
class Overlay(Figure):
    """The image in pale grey, each patch coloured by its weight; darker is more.

    It shows the weights of `query`, counted from 0; by default those of [CLS], of the last word where the picture is
    part of a text, or the mean over all queries where there is neither or `mean` is set. A query that is a patch is
    outlined. The weight on tokens that are no patch is given below. Colors are linear up to the largest weight of a
    patch, or up to `limit`; `scale` sets linear, root or log. `cmap` is a colour map of matplotlib, `size` the width
    in inches.
    """

    layer: int | None = None
    head: int | None = None
    lens: str | None = None
    query: int | None = None
    mean: bool = False
    title: str | None = None
    size: float | None = None
    scale: scales.Spacing = "linear"
    limit: float | None = None
    cmap: scales.ColourMap = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mean and self.query is not None:
            raise InputError(f"mean=True is over all queries, but query={self.query} asks for one. Leave one out.")

    def __call__(self, data: xr.Dataset, target: Target) -> None:
        """Draw the image under the weights of one query."""
        head_map = selection.select_head(data, self.lens, self.layer, self.head)
        _check_image(head_map)
        query = self._select_query(head_map)
        cells, (height, width) = selection.visible_weights(head_map), head_map["picture"].shape[:2]
        row = np.ma.masked_invalid(cells).mean(axis=0).filled(np.nan) if query is None else cells[query]
        box, size, below = _fit_image(self.size, height / width)
        ax = target.open_axes(*size)
        if not target.is_new:
            across, down = canvas.axes_size(ax)
            across = min(across, down * width / height)
            box, below = (across, across * height / width), scales.is_narrow(ax)
        patches = to_grid(head_map, row)
        signed = selection.is_signed(head_map)
        look: dict[str, Any] = {"signed": signed, "spacing": self.scale, "limit": self.limit, "cmap": self.cmap}
        scale = _soften(scales.weight_scale(patches.reshape(1, -1), **look))
        _draw_image(ax, head_map["picture"].values.astype(float), patches, scale)
        if query is not None:
            _outline_query(ax, head_map, query, patches.shape)
        lens = str(head_map["lens"].values)
        text = heatmap.weight_label(head_map)
        scales.add_colour_bar(ax, scale, text, box, below=below)
        source = "mean over queries" if query is None else f"from {selection.token_texts(head_map, 'query')[query]}"
        default = f"{lens} · {selection.head_label(head_map)} · {source}"
        canvas.set_title(ax, self.title if self.title is not None else default, max(1.6, box[0]))
        if note := _describe_rest(head_map, row):
            canvas.add_note(
                ax, note, width=max(1.6, box[0]), below=scales.bar_height(scale, text, box[0]) if below else 0.0
            )

    def _select_query(self, head_map: xr.Dataset) -> int | None:
        """Return the query whose weights are drawn; None for the mean over all queries."""
        selection.check_query(head_map, self.query)
        if self.query is not None or self.mean:
            return self.query
        names, special = selection.token_texts(head_map, "query"), selection.special_tokens(head_map, "query")
        if names == selection.token_texts(head_map, "key"):
            outside = (head_map["key_row"].values < 0).tolist()
            words = [row for row, name in enumerate(names) if outside[row] and not special[row] and name != PAD]
            if words:  # of a text with a picture the last, which sees all of it
                return words[-1]
        marks = [row for row, name in enumerate(names) if special[row] and name != PAD]
        return marks[0] if marks else None


def _fit_image(width: float | None, aspect: float) -> tuple[tuple[float, float], tuple[float, float], bool]:
    """Return the size of the image and of the figure in inches, and whether the colour bar is below the image.

    It is below in narrow figures and under wide images; `aspect` is height ÷ width.
    """
    total = width if width is not None else 5.6
    below = total < theme.NARROW or aspect < 1 / 4
    beside, around = (0.2, 0.9 + scales.BELOW) if below else (1.4, 0.9)
    across = min(total - beside, (theme.PAGE[1] - around) / aspect)
    return (across, across * aspect), (total, across * aspect + around), below


def to_grid(head_map: xr.Dataset, weights: scales.Cells) -> scales.Cells:
    """Return the weights of patches at their rows and columns of the image."""
    rows, columns = head_map["key_row"].values, head_map["key_column"].values
    patches = np.full(head_map["picture"].attrs.get("patches", (rows.max() + 1, columns.max() + 1)), np.nan)
    patches[rows[rows >= 0], columns[rows >= 0]] = weights[rows >= 0]
    return patches


def _check_image(head_map: xr.Dataset) -> None:
    if "picture" not in head_map or "key_row" not in head_map.coords:
        raise InputError(
            "The figure 'overlay' needs a picture, but this data has none. Capture a path or a PIL image with a model "
            "that reads pictures and has its image processor: hs.load(…, processor=…). Of pictures inside texts and in "
            "windows it also needs to know which tokens are their patches; not every model says that."
        )
    if not (head_map["key_row"] >= 0).any():
        raise InputError("There is nothing to draw: none of the keys in this data is a patch of the picture.")


def _draw_image(ax: Axes, image: scales.Cells, patches: scales.Cells, scale: scales.ColourScale) -> None:
    """Draw the image in grey, multiplied by the colours of its patches."""
    grey = 1 - FADED * (1 - image[..., :3] @ np.array([0.299, 0.587, 0.114]) / 255)
    rows, columns = (np.arange(size) * count // size for size, count in zip(grey.shape, patches.shape, strict=True))
    colour = scale.rgba(np.nan_to_num(patches))[rows[:, None], columns, :3]  # masked patches stay white
    ax.imshow(grey[..., None] * colour, interpolation="nearest")
    ax.set(xticks=[], yticks=[])


def _soften(scale: scales.ColourScale) -> scales.ColourScale:
    shades = scale.colours(np.linspace(0, 1, 256))
    return replace(scale, colours=ListedColormap(1 - SOFT * (1 - shades)))


def _outline_query(ax: Axes, head_map: xr.Dataset, query: int, grid: tuple[int, ...]) -> None:
    """Draw a frame around the patch of the query, where queries and keys are the same tokens."""
    queries, names = selection.token_texts(head_map, "query"), selection.token_texts(head_map, "key")
    key = query if queries == names else names.index(queries[query]) if queries[query] in names else 0
    row, column = int(head_map["key_row"][key]), int(head_map["key_column"][key])
    if row >= 0:
        height, width = (size / count for size, count in zip(head_map["picture"].shape[:2], grid, strict=True))
        corner = (column * width - 0.5, row * height - 0.5)
        ax.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=theme.negative, linewidth=1.8, zorder=2))


def _describe_rest(head_map: xr.Dataset, weights: scales.Cells) -> str:
    """Return the weight on keys that are no patch, in words."""
    outside = head_map["key_row"].values < 0
    names = [name for name, out in zip(selection.token_texts(head_map, "key"), outside, strict=True) if out]
    return f"Not shown: {np.nansum(weights[outside]):.2g} to {join_words(names, limit=6)}" if names else ""
