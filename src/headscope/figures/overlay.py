"""What one token of an image model attends to, laid over the picture."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib import figure as canvases
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle

from headscope.core.errors import InputError
from headscope.core.figure import Figure
from headscope.core.spec import check_choices
from headscope.plotting import canvas, heat, pick, theme

FADED = 0.35  # how much of the picture's contrast is left: colours are read as weights, so the picture is pale
SOFT = 0.75  # how dark the largest weight is, so that the picture can still be seen there


@dataclass(frozen=True)
class Overlay(Figure):
    """The picture in pale grey, each patch coloured by its weight; darker is more.

    It shows the weights of `query`, counted from 0: by default [CLS], or the mean over all queries where there is none
    or where `mean` is set. A patch that asks is outlined. What goes to tokens that are no patch is said below.
    `size` is the width in inches.
    """

    layer: int | None = None
    head: int | None = None
    lens: str | None = None
    query: int | None = None
    mean: bool = False
    title: str | None = None
    size: float | None = None
    scale: heat.Spacing = "linear"

    def __post_init__(self) -> None:
        check_choices(self)
        if self.mean and self.query is not None:
            raise InputError(f"mean=True is over all queries, but query={self.query} asks for one. Leave one out.")

    @theme.applied()
    def __call__(
        self,
        data: xr.Dataset,
        *,
        ax: Axes | None = None,
        figure: canvases.Figure | canvases.SubFigure | None = None,
    ) -> canvases.Figure:
        """The picture under the weights of one query."""
        one = pick.one_head(data, self.lens, self.layer, self.head)
        _check_picture(one)
        query = self._asking(one)
        cells, (high, wide) = pick.cells(one), one["picture"].shape[:2]
        row = _mean(cells) if query is None else cells[query]
        across = (self.size or 5.6) - 1.4
        place = canvas.one_panel("overlay", ax, figure, (across + 1.4, across * high / wide + 0.9))
        box = (across, across * high / wide) if ax is None else canvas.inches(ax)
        patches = on_grid(one, row)
        scale = _soft(heat.scale(patches, signed=pick.is_signed(one), spacing=self.scale))
        _draw(place, one["picture"].values.astype(float), patches, scale)
        if query is not None:
            _outline(place, one, query, patches.shape)
        lens = str(one["lens"].values)
        heat.bar(place, scale, heat.quantity(lens), box)
        who = "mean over queries" if query is None else f"from {pick.tokens(one, 'query')[query]}"
        place.set_title(self.title if self.title is not None else f"{lens} · {pick.label(one)} · {who}")
        if note := _elsewhere(one, row):
            canvas.note(place, note, wide=box[0])
        return canvas.root(place.figure)

    def _asking(self, one: xr.Dataset) -> int | None:
        """The query whose weights are shown; None means all of them."""
        many, special = one.sizes["query"], pick.special(one, "query")
        if self.query is not None and not 0 <= self.query < many:
            raise InputError(f"There is no query {self.query} in this data: it has queries 0 to {many - 1}.")
        if self.query is not None or self.mean:
            return self.query
        return special.index(True) if any(special) else None


def on_grid(one: xr.Dataset, weights: heat.Cells) -> heat.Cells:
    """The weights of patches, each at its row and column of the picture."""
    rows, columns = one["key_row"].values, one["key_column"].values
    patches = np.full((rows.max() + 1, columns.max() + 1), np.nan)
    patches[rows[rows >= 0], columns[rows >= 0]] = weights[rows >= 0]
    return patches


def _check_picture(one: xr.Dataset) -> None:
    if "picture" not in one or "key_row" not in one.coords:
        raise InputError(
            "The figure 'overlay' needs a picture, but this data has none. Capture a path or a PIL image with a model "
            "that reads pictures and has its image processor: hs.load(…, processor=…)."
        )
    if not (one["key_row"] >= 0).any():
        raise InputError("There is nothing to draw: none of the keys in this data is a patch of the picture.")


def _mean(cells: heat.Cells) -> heat.Cells:
    """Over the queries that see each key."""
    return np.asarray(np.ma.masked_invalid(cells).mean(axis=0).filled(np.nan), dtype=float)


def _draw(ax: Axes, picture: heat.Cells, patches: heat.Cells, scale: heat.Scale) -> None:
    """The picture in grey, times the colour of the patch that each of its points belongs to."""
    high, wide = picture.shape[:2]
    grey = 1 - FADED * (1 - picture[..., :3] @ np.array([0.299, 0.587, 0.114]) / 255)
    rows, columns = (np.arange(size) * many // size for size, many in zip((high, wide), patches.shape, strict=True))
    colour = scale.paint(np.nan_to_num(patches))[rows[:, None], columns, :3]  # unseen patches stay as they are
    ax.imshow(grey[..., None] * colour, interpolation="nearest")
    ax.set(xticks=[], yticks=[])


def _soft(scale: heat.Scale) -> heat.Scale:
    shades = scale.colours(np.linspace(0, 1, 256))
    return heat.Scale(scale.norm, ListedColormap(1 - SOFT * (1 - shades)))


def _outline(ax: Axes, one: xr.Dataset, query: int, grid: tuple[int, ...]) -> None:
    """A frame around the patch that asks, where queries and keys are the same tokens."""
    name, names = pick.tokens(one, "query")[query], pick.tokens(one, "key")
    key = names.index(name) if name in names else 0
    row, column = int(one["key_row"][key]), int(one["key_column"][key])
    if row >= 0:
        high, wide = (size / many for size, many in zip(one["picture"].shape[:2], grid, strict=True))
        corner = (column * wide - 0.5, row * high - 0.5)
        ax.add_patch(Rectangle(corner, wide, high, fill=False, edgecolor=theme.negative, linewidth=1.8, zorder=2))


def _elsewhere(one: xr.Dataset, weights: heat.Cells) -> str:
    """What goes to keys that are no patch."""
    outside = one["key_row"].values < 0
    names = [name for name, out in zip(pick.tokens(one, "key"), outside, strict=True) if out]
    return f"Not shown: {np.nansum(weights[outside]):.2g} to {', '.join(names)}" if names else ""
