"""`hs.draw`: a figure of a Dataset or of Maps."""

import json
from collections.abc import Collection, Sequence
from typing import Any, Protocol, overload, runtime_checkable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from headscope.core.catalog import figures
from headscope.core.errors import InputError
from headscope.core.figure import Target
from headscope.core.spec import entry_name
from headscope.plotting import theme
from headscope.plotting.canvas import new_figure
from headscope.plotting.selection import select_example


@runtime_checkable
class Drawable(Protocol):
    """Anything that returns one example as a Dataset, as Maps do."""

    def dataset(self, example: int = 0) -> xr.Dataset:
        """Return the maps of one example."""


@runtime_checkable
class DrawableBatch(Drawable, Protocol):
    """Anything that also returns all its examples as a Dataset."""

    def to_dataset(self) -> xr.Dataset:
        """Return the maps of all examples."""


@overload
def draw(what: Any, figure: Any = None, *, example: int = 0, ax: Axes, **options: Any) -> Axes: ...
@overload
def draw(
    what: Any, figure: Any = None, *, example: int = 0, canvas: Figure | SubFigure, **options: Any
) -> list[Axes]: ...
@overload
def draw(what: Any, figure: Any = None, *, example: int = 0, **options: Any) -> Figure: ...


def draw(
    what: Any,
    figure: Any = None,
    *,
    example: int = 0,
    ax: Axes | None = None,
    canvas: Figure | SubFigure | None = None,
    **options: Any,
) -> Any:
    """Draw a Dataset, Maps, a part of them such as `maps[3, 7]`, or several Maps of the same text; return the figure.

    `figure` is a name, a spec such as "matrix:layer=3,head=7", or a figure entry; `options` are its fields. By default
    it is "compare" for maps of several lenses, "matrix" for one head, and "head_grid" for all heads.
    It is drawn into `ax` (figures of one panel) or `canvas` (figures of several panels), or else into a new figure.
    Drawn into yours, the axes are returned instead, so that a notebook shows the figure once.
    The user's matplotlib style is neither used nor changed.

    >>> figure = hs.draw(hs.view(trace, "raw"), "matrix", layer=3, head=7)
    >>> figure.axes[0].get_title()
    'raw · L3H7'
    """
    data = to_dataset(what, example)
    entry = figures.make(choose_figure(data, options) if figure is None else figure, **options)
    with theme.apply():
        target = Target(entry_name(type(entry)), new_figure(), ax, canvas)
        entry(data, target)
    return target.drawn


def choose_figure(data: xr.Dataset, options: Collection[str] = ()) -> str:
    """Return the name of the figure that draws this data where none is named, from the variables it holds.

    `options` are the parameters that the figure must have.
    """
    if "weights" in data and "map" not in data.dims:
        lenses = np.atleast_1d(data["lens"].values).tolist() if "lens" in data.coords else []
        if "raw" in lenses and len(lenses) > 1:
            return "compare"
        single = data.sizes.get("layer", 1) * data.sizes.get("head", 1) == 1
        return "matrix" if single or {"layer", "head"} & set(options) else "head_grid"
    figures_of = {"weights": "typical_maps", "least_row": "identifiability", "confusion": "confusion"}
    return next((figure for variable, figure in figures_of.items() if variable in data), "head_grid")


def to_dataset(what: Any, example: int = 0) -> xr.Dataset:
    """Return one example as a Dataset, with several Maps along `lens`."""
    if isinstance(what, xr.DataArray) and {"query", "key"} <= set(what.dims):
        missing = [axis for axis in ("lens", "layer", "head") if axis in what.coords and axis not in what.dims]
        what = what.to_dataset(name="weights").expand_dims(missing)
    if isinstance(what, xr.Dataset):
        return select_example(what, example)
    if isinstance(what, Drawable):
        return what.dataset(example)
    if not isinstance(what, Sequence) or not what or not all(isinstance(maps, Drawable) for maps in what):
        kind = "an empty list" if isinstance(what, Sequence) and not len(what) else f"a {type(what).__name__}"
        raise InputError(f"Only a Dataset, Maps, or a list of Maps can be drawn, but got {kind}.")
    return combine_lenses([maps.dataset(example) for maps in what])


def combine_lenses(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Concatenate maps of the same text along `lens`; diagnostics that a lens does not have are NaN."""
    first = parts[0]
    for part in parts[1:]:
        _check_heads(first, part)
        for name, words in _SHARED.items():
            if not np.array_equal(first[name].values, part[name].values):
                raise InputError(
                    f"Maps that are drawn together must have the same {words}, but those of "
                    f"{_quote_lenses(first)} and {_quote_lenses(part)} differ. View one trace through both lenses."
                )
    diagnostics = dict.fromkeys(name for part in parts for name in part.data_vars if "lens" in part[name].dims)
    dims = [dim for dim in first["weights"].dims if dim not in ("query", "key")]
    filled = []
    for part in parts:
        empty = np.full([part.sizes[dim] for dim in dims], np.nan)
        filled.append(part.assign({name: (dims, empty) for name in diagnostics if name not in part}))
    whole = xr.concat(filled, "lens", data_vars="minimal", coords="minimal", compat="override", join="override")
    facts = {**json.loads(first.attrs.get("headscope", "{}")), "lenses": [str(lens) for lens in whole["lens"].values]}
    return whole.assign_attrs(headscope=json.dumps(facts, sort_keys=True, ensure_ascii=False))


def _check_heads(first: xr.Dataset, second: xr.Dataset) -> None:
    """Raise InputError for maps of heads beside maps of whole layers."""
    merged, others = sorted((first, second), key=lambda part: part.sizes["head"])
    if merged.sizes["head"] == 1 < others.sizes["head"]:
        raise InputError(
            f"{_quote_lenses(merged)} has one map per layer, {_quote_lenses(others)} one for each head, so they cannot "
            "be drawn together. Draw one after the other."
        )


_SHARED = {"query_token": "query tokens", "key_token": "key tokens", "layer": "layers", "head": "heads"}


def _quote_lenses(data: xr.Dataset) -> str:
    return ", ".join(f"'{name}'" for name in data["lens"].values)
