"""What sections of all kinds of results are made of: names, tables from numbers along axes, pictures that may fail."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Picture, Section
from headscope.core.errors import InputError
from headscope.core.prose import join_words
from headscope.plotting.draw import draw
from headscope.results.summarize import format_count


@dataclass(frozen=True)
class Place:
    """Whose sections these are, where there are several results: for titles, and for the names of files."""

    words: str = ""
    prefix: str = ""

    def title(self, text: str) -> str:
        """A heading, capital first."""
        whole = f"{self.words}: {text}" if self.words else text
        return whole[:1].upper() + whole[1:] if not self.words else whole

    def name(self, *words: str) -> str:
        """A name for files."""
        return self.prefix + "_".join(slug(each) for each in words if each)

    def within(self, words: str) -> "Place":
        """A part of it."""
        return Place(f"{self.words}, {words}" if self.words else words, f"{self.prefix}{slug(words)}_")


def slug(text: str) -> str:
    """Text as part of a file's name.

    >>> slug("effective:keys=paper"), slug("-2"), slug("…")
    ('effective_keys_paper', 'minus2', 'x')
    """
    text = re.sub(r"^[-−](?=\d)", "minus", text)
    return re.sub(r"[^A-Za-z0-9-]+", "_", text).strip("_-") or "x"


def distinct(sections: Sequence[Section]) -> list[Section]:
    """The same sections, in which a table or picture whose name was taken has a number behind it."""
    taken: set[tuple[type, str]] = set()
    found = []
    for section in sections:
        parts: list[Part] = []
        for part in section.parts:
            if not isinstance(part, Paragraph):
                wanted, many = part.name, 2
                while (type(part), part.name) in taken:
                    part, many = replace(part, name=f"{wanted}_{many}"), many + 1
                taken.add((type(part), part.name))
            parts.append(part)
        found.append(Section(section.title, parts))
    return found


def counted(chosen: xr.Dataset) -> int | str:
    """Over how many examples a part is: a number, a range in words, or nothing where it is not known."""
    text = format_count(chosen).removeprefix("n = ")
    return int(text.replace(",", "")) if text.replace(",", "").isdigit() else text


def described(chosen: xr.Dataset, over: Sequence[str]) -> str:
    """What means are over, and what their intervals are."""
    axes = [f"{chosen.sizes[dim]} {dim.replace('_', ' ')}s" for dim in over if chosen.sizes.get(dim, 1) > 1]
    mean = f"Mean over {join_words(axes)}. " if axes else ""
    if "low" not in chosen:
        return mean.strip()
    return (
        f"{mean}Brackets: 95 % interval over examples{'' if 'rows' in chosen or not axes else ', at most this wide'}."
    )


def frame_of(means: xr.Dataset, rows: Sequence[str], columns: str | None, name: str) -> pd.DataFrame:
    """The values of a part with their ends: some axes down, one across, or none.

    Columns are the labels across, each followed by its `_low` and `_high`; the last axis down is the quickest.
    """
    index = _index(means, rows)
    labels = [str(each) for each in means[columns].values] if columns is not None else [name]
    found: dict[str, Any] = {}
    for place, label in enumerate(labels):
        chosen = means if columns is None else means.isel({columns: place})
        for ending, part in (("", "value"), ("_low", "low"), ("_high", "high")):
            if part in means:
                found[f"{label or name}{ending}"] = np.asarray(chosen[part].transpose(*rows).values, float).ravel()
    return pd.DataFrame(found, index=index)


def tried(data: xr.Dataset, figure: str, name: str, caption: str, n: int | str, **options: Any) -> Picture | Paragraph:
    """A picture, or the reason why there is none."""
    try:
        return Picture(name, caption, draw(data, figure, **options), n)
    except InputError as error:
        return Paragraph(f"Not drawn, {caption[:1].lower()}{caption[1:].rstrip('.')}: {error}")


def _index(means: xr.Dataset, rows: Sequence[str]) -> pd.Index:
    labels = [means[axis].values if axis in means.coords else np.arange(means.sizes[axis]) for axis in rows]
    words = [axis.replace("_", " ") for axis in rows]
    if len(rows) == 1:
        named = {} if rows[0] in means.coords else _names_along(means, rows[0])
        labels, words = (list(named.values()), list(named)) if named else (labels, words)
        return pd.MultiIndex.from_arrays(labels, names=words) if named else pd.Index(labels[0], name=words[0])
    return pd.MultiIndex.from_product(labels, names=words)


def _names_along(means: xr.Dataset, axis: str) -> dict[str, Any]:
    """Words that lie along an axis without labels of its own, such as the tokens along `key`."""
    along = {str(name): each for name, each in means.coords.items() if each.dims == (axis,)}
    return {name.replace("_", " "): each.values for name, each in along.items() if each.dtype.kind in "UO"}
