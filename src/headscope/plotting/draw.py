"""`hs.draw`: a figure of a Dataset or of Maps."""

import warnings
from collections.abc import Mapping, Sequence, Sized
from typing import Any, Protocol, overload, runtime_checkable

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from headscope.core.catalog import figures
from headscope.core.errors import DataWarning, InputError
from headscope.core.figure import Target
from headscope.core.kind import find_kind
from headscope.core.prose import join_words
from headscope.core.spec import entry_name
from headscope.plotting import fonts, theme
from headscope.plotting.canvas import add_caption, grow_to_fit, new_figure
from headscope.plotting.combine import combine_curves, combine_results
from headscope.plotting.selection import describe_maps, select_example
from headscope.plotting.slot import fit_axes


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
    """Draw a Dataset, Maps, a part of them such as `maps[3, 7]`, or several Maps; return the figure.

    Several Maps are lenses of one trace, or for "compare" also two models or texts. The default figure is "compare" for
    maps of several lenses, "matrix" for one head, and "head_grid" for all heads; for a measured variable of several
    lenses "heads", with a panel for each. Drawn into your own axes or figure, the axes are returned instead, so that a
    notebook shows the figure once. Of the user's matplotlib style, `font.family` and `font.size` are used, and nothing
    is changed.

    Parameters
    ----------
    what
        A Dataset, Maps, some of them such as `maps[3, 7]`, or several Maps as a list or as a dict by name.
    figure
        A name, a spec such as "matrix:layer=3,head=7", or a figure. Default: one that fits.
    example
        The position of the example.
    ax
        Axes to draw into, for figures of one panel. Default: a new figure.
    canvas
        A figure to draw into, for figures of several panels. Default: a new figure.
    options
        Parameters of the figure, see `headscope list figures`.

    >>> figure = hs.draw(hs.view(trace, "raw"), "matrix", layer=3, head=7)
    >>> figure.axes[0].get_title()
    'raw · L3H7'
    """
    data = to_dataset(what, example)
    if "importance" in data and (count := _count_texts(what)) > 1:
        data = data.assign_attrs(selected_text=f"Text {example % count + 1} of {count} (example={example}).")
    entry = figures.make(find_kind(data).figure(data, options) if figure is None else figure, **options)
    name = entry_name(type(entry))
    if missing := fonts.missing_fonts():
        warnings.warn(
            f"matplotlib's font.family asks for {join_words(missing)}, which is not installed here, so the figure is "
            "drawn in DejaVu Sans.",
            DataWarning,
            stacklevel=2,
        )
    with theme.apply():
        if ax is not None and canvas is None:
            fit_axes(ax, lambda trial: entry(data, Target(name, new_figure(), trial)))
        target = Target(name, new_figure(), ax, canvas)
        entry(data, target)
        if target.is_new:
            selected = {axis: getattr(entry, axis, None) for axis in ("lens", "layer", "head")}
            add_caption(target.figure, describe_maps(data, **selected))
            grow_to_fit(target.figure, wider=getattr(entry, "size", None) is None)
    return target.drawn


def to_dataset(what: Any, example: int = 0) -> xr.Dataset:
    """Return one example as a Dataset, with several Maps along `lens`, under their names where `what` has names."""
    if isinstance(what, xr.DataArray) and {"query", "key"} <= set(what.dims):
        missing = [axis for axis in ("lens", "layer", "head") if axis in what.coords and axis not in what.dims]
        what = what.to_dataset(name="weights").expand_dims(missing)
    if isinstance(what, xr.Dataset):
        return select_example(what, example)
    if isinstance(what, Drawable):
        return what.dataset(example)
    named = isinstance(what, Mapping)
    parts = list(what.values()) if named else what
    kinds = (xr.Dataset, xr.DataArray, Drawable)
    if not isinstance(parts, Sequence) or not parts or not all(isinstance(part, kinds) for part in parts):
        empty = "an empty" if isinstance(parts, Sequence) and not len(parts) else "a"
        kind = f"{empty} {type(what).__name__}"
        raise InputError(f"Only a Dataset, Maps, Importances, or a list of these can be drawn, but got {kind}.")
    datasets = [to_dataset(part, example) for part in parts]
    if all("pruned" in part.dims for part in datasets):
        return combine_curves(datasets, list(what) if isinstance(what, Mapping) else None)
    if named:
        datasets = [_rename_lens(part, str(name)) for part, name in zip(datasets, what, strict=True)]
    return combine_results(datasets)


def _count_texts(what: Any) -> int:
    """Return how many texts the largest of some importances holds."""
    if isinstance(what, xr.Dataset):
        return what.sizes.get("example", 1)
    if isinstance(what, Drawable):
        return len(what) if isinstance(what, Sized) else 1
    return max(_count_texts(part) for part in (what.values() if isinstance(what, Mapping) else what))


def _rename_lens(part: xr.Dataset, name: str) -> xr.Dataset:
    if "importance" in part:
        return part.assign_coords(method=[name])
    if part.sizes.get("lens") != 1:
        raise InputError(
            f"Each name must be that of one map, but '{name}' has {part.sizes.get('lens', 0)} lenses. Select one of "
            "them, as in data.sel(lens=['raw'])."
        )
    return part.assign_coords(lens=[name])
