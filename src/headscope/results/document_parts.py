"""Parts that sections of all results share: names, captions, tables from means, and figures."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Picture, SectionContext
from headscope.core.errors import InputError
from headscope.core.estimate import interval_names
from headscope.core.prose import count_noun, join_words
from headscope.core.provenance import read_provenance
from headscope.plotting.draw import draw
from headscope.results.summarize import format_count, format_range


def spaced(name: object) -> str:
    """Return a name with spaces in place of underscores."""
    return str(name).replace("_", " ")


def list_lenses(data: xr.Dataset) -> list[str]:
    """Return the lenses in the provenance of a result, or those along its axis."""
    facts = read_provenance(data)
    along = data["lens"].values.ravel().tolist() if "lens" in data.coords else []
    lenses = facts.get("lenses") or facts.get("lens") or along
    return [str(lens) for lens in ([lenses] if isinstance(lenses, str) else lenses) if lens]


def describe_lenses(data: xr.Dataset) -> str:
    """Return the lenses as the end of a sentence; nothing where there are none."""
    names = join_words((f"`{lens}`" for lens in list_lenses(data)), empty="")
    return f", seen through {names}" if names else ""


def describe_count(data: xr.Dataset) -> str:
    """Return the number of examples as the end of a sentence; nothing where it is not known."""
    n = read_provenance(data).get("n")
    return f" over {count_noun(n, 'example')}" if isinstance(n, int) else ""


def describe_place(at: Sequence[str]) -> str:
    """Return choices such as role=sep as the end of a caption."""
    return f", {join_words(choice.replace('=', ' ') for choice in at)}" if at else ""


def known_places(selected: xr.Dataset, axes: Sequence[str]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield choices such as role=sep, and their labels, for every combination of labels that has a value."""
    for labels in product(*(selected[axis].values for axis in axes)):
        index = dict(zip(axes, labels, strict=True))
        if bool(selected["value"].sel(index).notnull().any()):
            yield tuple(f"{axis}={label}" for axis, label in index.items()), [str(label) for label in labels]


def example_count(selected: xr.Dataset) -> int | str:
    """Return the number of examples: an integer, a range in words, or nothing where it is unknown."""
    text = format_count(selected).removeprefix("n = ")
    return int(text.replace(",", "")) if text.replace(",", "").isdigit() else text


def describe_means(selected: xr.Dataset, over: Sequence[str]) -> str:
    """Return what means are over, and what their intervals are."""
    axes = [f"{selected.sizes[dim]} {spaced(dim)}s" for dim in over if selected.sizes.get(dim, 1) > 1]
    mean = f"Mean over {join_words(axes)}. " if axes else ""
    if "low" not in selected:
        return mean.strip()
    bound = "" if "rows" in selected or not axes else ", at most this wide"
    return f"{mean}Brackets: 95 % interval over examples{bound}."


def counts_differ(selected: xr.Dataset) -> bool:
    """Return True if the number of examples is not the same in all cells, so that a table shows it for each."""
    return "n" in selected and len(np.unique(selected["n"])) > 1


def means_to_frame(
    means: xr.Dataset, rows: Sequence[str], columns: str | None, name: str, *, counts: bool = False
) -> pd.DataFrame:
    """Return values with their intervals, with the axes `rows` down and the axis `columns`, if any, across.

    Each column is followed by its `_low` and `_high`, and with `counts` by the number of examples; the last axis down
    varies fastest.
    """
    labels = [str(label) for label in means[columns].values] if columns is not None else [name]
    table: dict[str, Any] = {}
    for index, label in enumerate(labels):
        column = means if columns is None else means.isel({columns: index})
        for title, suffix in zip(interval_names(label or name), ("value", "low", "high"), strict=True):
            if suffix in means:
                table[title] = np.asarray(column[suffix].transpose(*rows).values, float).ravel()
        if counts:
            table[f"n ({label})" if len(labels) > 1 else "n"] = _count_cells(column, rows)
    return pd.DataFrame(table, index=_row_index(means, rows))


def _count_cells(means: xr.Dataset, rows: Sequence[str]) -> list[str]:
    """Return the number of examples of each cell as text: a range where it is not the same in all that is averaged."""
    ends = (means.get(name, means["n"]).transpose(*rows).values.ravel() for name in ("n_least", "n_most"))
    return [format_range(np.array(pair)) for pair in zip(*ends, strict=True)]


def _row_index(means: xr.Dataset, rows: Sequence[str]) -> pd.Index:
    labels = {spaced(axis): means[axis].values for axis in rows}
    if len(rows) > 1:
        return pd.MultiIndex.from_product(labels.values(), names=list(labels))
    if rows[0] not in means.coords and (texts := _texts_along(means, rows[0])):
        return pd.MultiIndex.from_arrays(list(texts.values()), names=list(texts))
    return pd.Index(means[rows[0]].values, name=spaced(rows[0]))


def _texts_along(means: xr.Dataset, axis: str) -> dict[str, Any]:
    """Return texts along an axis without labels of its own, such as the tokens along `key`."""
    along = {str(name): coord for name, coord in means.coords.items() if coord.dims == (axis,)}
    return {spaced(name): coord.values for name, coord in along.items() if coord.dtype.kind in "UO"}


def draw_part(
    context: SectionContext, data: xr.Dataset, figure: str, name: str, caption: str, n: int | str, **options: Any
) -> list[Part]:
    """Return a picture, or a paragraph with the reason why it cannot be drawn; nothing where only tables are wanted."""
    if not context.draws:
        return []
    try:
        return [Picture(name, caption, draw(data, figure, **options), n)]
    except InputError as error:
        return [Paragraph(f"Not drawn, {caption[:1].lower()}{caption[1:].rstrip('.')}: {error}")]
