"""Drawing what was found."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from headscope.core.catalog import figures
from headscope.core.errors import InputError


@runtime_checkable
class Drawable(Protocol):
    """Anything that gives one example as a Dataset, as Maps do."""

    def dataset(self, example: int = 0) -> xr.Dataset:
        """One example's maps."""


def draw(
    what: Any,
    figure: Any = "matrix",
    *,
    example: int = 0,
    ax: Axes | None = None,
    canvas: Figure | SubFigure | None = None,
    **options: Any,
) -> Figure:
    """A figure of a Dataset, of Maps, or of several Maps of the same text.

    `figure` is a name, a spec such as "matrix:layer=3,head=7", or a figure entry; `options` are its fields.
    It is drawn into `ax` (figures of one panel) or `canvas` (figures of several), or else into a new figure.
    """
    entry = figures.make(figure, **options)
    drawn: Figure = entry(to_dataset(what, example), ax=ax, figure=canvas)
    return drawn


def to_dataset(what: Any, example: int = 0) -> xr.Dataset:
    """One example as a Dataset; several Maps side by side along `lens`."""
    if isinstance(what, xr.Dataset):
        return what
    if isinstance(what, Drawable):
        return what.dataset(example)
    if not isinstance(what, Sequence) or not what or not all(isinstance(each, Drawable) for each in what):
        raise InputError(f"Only a Dataset, Maps, or a list of Maps can be drawn, but got {_kind(what)}.")
    return combine_lenses([each.dataset(example) for each in what])


def combine_lenses(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Maps of the same text along `lens`; what a lens does not measure is NaN there."""
    first = parts[0]
    for other in parts[1:]:
        for name in ("query_token", "key_token", "layer", "head"):
            if not np.array_equal(first[name].values, other[name].values):
                raise InputError(
                    f"Maps that are drawn together must have the same {_WORDS[name]}, but those of "
                    f"{_lenses(first)} and {_lenses(other)} differ. View one trace through both lenses."
                )
    measured = dict.fromkeys(name for part in parts for name in part.data_vars if "lens" in part[name].dims)
    filled = [_filled(part, [name for name in measured if name not in part]) for part in parts]
    return xr.concat(filled, "lens", data_vars="minimal", coords="minimal", compat="override", join="override")


_WORDS = {"query_token": "query tokens", "key_token": "key tokens", "layer": "layers", "head": "heads"}


def _filled(part: xr.Dataset, missing: Sequence[Any]) -> xr.Dataset:
    """The same maps, with NaN for every diagnostic that their lens does not have."""
    dims = ("lens", "layer", "head")
    nothing = np.full([part.sizes[dim] for dim in dims], np.nan)
    return part.assign(dict.fromkeys(missing, (dims, nothing)))


def _lenses(data: xr.Dataset) -> str:
    return ", ".join(f"'{name}'" for name in data["lens"].values)


def _kind(what: Any) -> str:
    return "an empty list" if isinstance(what, Sequence) and not len(what) else f"a {type(what).__name__}"
