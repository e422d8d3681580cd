"""Parts that sections of all results share: names, captions, tables from means, and figures."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Picture, Section
from headscope.core.errors import InputError
from headscope.core.prose import join_words
from headscope.plotting.draw import draw
from headscope.results.summarize import format_count, format_range


@dataclass(frozen=True)
class SectionContext:
    """The result that a section is about, where there are several: for titles and file names."""

    words: str = ""
    prefix: str = ""

    def title(self, text: str) -> str:
        """Return a heading that names the result."""
        return f"{self.words}: {text}" if self.words else capitalize(text)

    def name(self, *words: str) -> str:
        """Return a file name without its ending."""
        return self.prefix + "_".join(slug(word) for word in words if word)

    def narrow(self, words: str) -> "SectionContext":
        """Return the context of a part of the result."""
        return SectionContext(f"{self.words}, {words}" if self.words else words, f"{self.prefix}{slug(words)}_")


def slug(text: str) -> str:
    """Return text as part of a file name.

    >>> slug("effective:keys=paper"), slug("-2"), slug("…")
    ('effective_keys_paper', 'minus2', 'x')
    """
    text = re.sub(r"^[-−](?=\d)", "minus", text)
    return re.sub(r"[^A-Za-z0-9-]+", "_", text).strip("_-") or "x"


def spaced(name: object) -> str:
    """Return a name with spaces in place of underscores."""
    return str(name).replace("_", " ")


def capitalize(text: str) -> str:
    """Return text with its first letter in upper case; other letters stay."""
    return text[:1].upper() + text[1:]


def describe_place(at: Sequence[str]) -> str:
    """Return choices such as role=sep as the end of a caption."""
    return f", {join_words(choice.replace('=', ' ') for choice in at)}" if at else ""


def known_places(chosen: xr.Dataset, axes: Sequence[str]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield choices such as role=sep, and their labels, for every combination of labels that has a value."""
    for labels in product(*(chosen[axis].values for axis in axes)):
        index = dict(zip(axes, labels, strict=True))
        if bool(chosen["value"].sel(index).notnull().any()):
            yield tuple(f"{axis}={label}" for axis, label in index.items()), [str(label) for label in labels]


def make_names_unique(sections: Sequence[Section]) -> list[Section]:
    """Number the names of tables and pictures that occur again."""
    taken: set[tuple[type, str]] = set()
    numbered = []
    for section in sections:
        parts: list[Part] = []
        for part in section.parts:
            if not isinstance(part, Paragraph):
                name, number = part.name, 2
                while (type(part), part.name) in taken:
                    part, number = replace(part, name=f"{name}_{number}"), number + 1
                taken.add((type(part), part.name))
            parts.append(part)
        numbered.append(Section(section.title, parts))
    return numbered


def example_count(chosen: xr.Dataset) -> int | str:
    """Return the number of examples: an integer, a range in words, or nothing where it is unknown."""
    text = format_count(chosen).removeprefix("n = ")
    return int(text.replace(",", "")) if text.replace(",", "").isdigit() else text


def describe_means(chosen: xr.Dataset, over: Sequence[str]) -> str:
    """Return what means are over, and what their intervals are."""
    axes = [f"{chosen.sizes[dim]} {spaced(dim)}s" for dim in over if chosen.sizes.get(dim, 1) > 1]
    mean = f"Mean over {join_words(axes)}. " if axes else ""
    if "low" not in chosen:
        return mean.strip()
    bound = "" if "rows" in chosen or not axes else ", at most this wide"
    return f"{mean}Brackets: 95 % interval over examples{bound}."


def counts_differ(chosen: xr.Dataset) -> bool:
    """Return True if the number of examples is not the same in all cells, so that a table shows it for each."""
    return "n" in chosen and len(np.unique(chosen["n"])) > 1


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
        chosen = means if columns is None else means.isel({columns: index})
        for ending, part in (("", "value"), ("_low", "low"), ("_high", "high")):
            if part in means:
                table[f"{label or name}{ending}"] = np.asarray(chosen[part].transpose(*rows).values, float).ravel()
        if counts:
            table[f"n ({label})" if len(labels) > 1 else "n"] = _count_cells(chosen, rows)
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


def try_figure(
    data: xr.Dataset, figure: str, name: str, caption: str, n: int | str, **options: Any
) -> Picture | Paragraph:
    """Return a picture, or a paragraph with the reason why it cannot be drawn."""
    try:
        return Picture(name, caption, draw(data, figure, **options), n)
    except InputError as error:
        return Paragraph(f"Not drawn, {caption[:1].lower()}{caption[1:].rstrip('.')}: {error}")
