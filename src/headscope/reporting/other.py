"""Sections of everything else that is a number: scores, and what lies along few axes."""

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Part, Section, Table
from headscope.core.prose import join_words
from headscope.reporting.parts import Place, frame_of, tried
from headscope.reporting.spread import spreads
from headscope.results.select import main_variables
from headscope.results.stamp import read_provenance

MOST = 200
"""Cells that a table of anything may have."""

CLASSES = 12

Kept = tuple[list[Section], list[str]]
"""What was made, and which variables could not be shown."""


def other_sections(data: xr.Dataset, place: Place, told: set[str]) -> Kept:
    """Scores in one table, other numbers in a table for each set of axes; what is told already is left out."""
    names = [name for name in main_variables(data) if name not in told]
    scores = [name for name in names if not data[name].dims and name != "n" and data[name].dtype.kind in "fiu"]
    rest = [name for name in names if name not in scores]
    parts: list[Part] = [_scores(data, scores, place)] if scores else []
    shown = {*scores, "n"}
    if {"prediction", "label"} <= set(rest) and "class" in data.coords and data.sizes["class"] <= CLASSES:
        parts.append(_confusion(data, place))
        shown |= {"prediction", "label"}
    if {"least", "greatest", "standard"} <= set(rest):
        parts.append(tried(data, "identifiability", place.name("identifiability"), "How far each weight is fixed", 1))
    tables = _tables(data, rest, place)
    spread, said = spreads(data, [name for name in rest if _of_examples(data[name])], place)
    parts += [*tables.values(), *spread]
    shown |= {*said, *(each for group in tables for each in group)}
    title = place.title("scores" if scores else "numbers")
    return [Section(title, parts)] if parts else [], [name for name in names if name not in shown]


def _of_examples(table: xr.DataArray) -> bool:
    """Whether these are numbers of single examples that can be summed up; those of classes and tokens cannot."""
    return "example" in table.dims and table.dtype.kind == "f" and not {"query", "key", "class"} & set(table.dims)


def _scores(data: xr.Dataset, names: list[str], place: Place) -> Table:
    """One row for each metric, with how its interval was found."""
    rows = {
        "value": [float(data[name]) for name in names],
        "value_low": [float(data.get(f"{name}_low", np.nan)) for name in names],
        "value_high": [float(data.get(f"{name}_high", np.nan)) for name in names],
        "interval": [data[name].attrs.get("interval", data[name].attrs.get("long_name", "")) for name in names],
    }
    words = [name.replace("_", " ") for name in names]
    task = read_provenance(data).get("task")
    caption = f"Scores{f' on {task}' if isinstance(task, str) else ''}, with intervals where they are known"
    return Table(place.name("scores"), caption, pd.DataFrame(rows, index=pd.Index(words, name="metric")), _n(data))


def _confusion(data: xr.Dataset, place: Place) -> Table:
    """How often each class was answered for each label."""
    classes = [str(each) for each in data["class"].values]
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (data["label"].values.astype(int), data["prediction"].values.astype(int)), 1)
    frame = pd.DataFrame(
        counts, index=pd.Index(classes, name="label"), columns=[f"answered {each}" for each in classes]
    )
    return Table(place.name("confusion"), "Labels (rows) and answers (columns), in examples", frame, _n(data))


def _tables(data: xr.Dataset, names: list[str], place: Place) -> dict[tuple[str, ...], Table]:
    """A table for each set of axes, by the variables that it has; single examples do not get rows."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        dims = tuple(str(dim) for dim in data[name].dims if data.sizes[dim] > 1)
        if dims and "example" not in dims and data[name].dtype.kind in "fiu" and data[name].size:
            groups.setdefault(dims, []).append(name)
    found = {}
    for dims, together in groups.items():
        many = int(np.prod([data.sizes[dim] for dim in dims]))
        if many <= MOST and bool(data[together].notnull().to_array().any()):
            words = join_words([each.replace("_", " ") for each in dims])
            caption = f"{join_words([_label(data, each) for each in together])} by {words}"
            frame = _frame(data, together, dims)
            empty = int(frame.isna().all(axis=1).sum())
            caption += f". Left out: rows without any value ({empty})" if empty else ""
            frame = frame.dropna(how="all")
            found[tuple(together)] = Table(place.name("by", *dims), caption[:1].upper() + caption[1:], frame, _n(data))
    return found


def _frame(data: xr.Dataset, names: list[str], dims: tuple[str, ...]) -> pd.DataFrame:
    """Variables across; or, of a single one along several axes, the last axis."""
    few = {dim: 0 for dim in data.dims if data.sizes[dim] == 1}
    frames = []
    for name in names:
        held = {each: data[f"{name}_{each}"] for each in ("low", "high") if f"{name}_{each}" in data}
        part = xr.Dataset({"value": data[name], **held}).isel({dim: 0 for dim in few if dim in data[name].dims})
        wide = len(names) == 1 and len(dims) > 1
        frames.append(frame_of(part, dims[:-1] if wide else dims, dims[-1] if wide else None, name))
    return pd.concat(frames, axis=1)


def _label(data: xr.Dataset, name: str) -> str:
    return str(data[name].attrs.get("long_name", name.replace("_", " ")))


def _n(data: xr.Dataset) -> int | str:
    """How many examples, where the result says it."""
    held = data["n"] if "n" in data else read_provenance(data).get("n")
    if isinstance(held, xr.DataArray):
        least, most = int(held.min()), int(held.max())
        return most if least == most else f"{least:,} to {most:,}"
    return held if isinstance(held, int) else ""
