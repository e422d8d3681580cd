"""Tables of scores, and of all other numbers along few axes."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Part, Section, SectionContext, Table, capitalize
from headscope.core.estimate import estimate, name_ends
from headscope.core.kind import Sections
from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.results.document_parts import draw_part, example_count, means_to_frame, spaced
from headscope.results.select import main_variables

MAX_ROWS = 48  # of the table of spreads
MAX_CELLS = 200  # of a table of other numbers
MAX_CLASSES = 12  # of a confusion matrix
MAX_TEXTS = 10  # translations


def list_scores(data: xr.Dataset, done: Collection[str] = ()) -> list[str]:
    """Return the numbers about the whole: metrics without an axis."""
    names = [name for name in main_variables(data) if name not in done]
    return [name for name in names if not data[name].dims and name != "n" and data[name].dtype.kind in "fiu"]


def number_sections(data: xr.Dataset, context: SectionContext, done: Collection[str] = ()) -> Sections:
    """Return a section with scores and other numbers, without the variables in `done`, and what it shows."""
    names = [name for name in main_variables(data) if name not in done]
    scores = list_scores(data, done)
    rest = [name for name in names if name not in scores]
    parts: list[Part] = [_score_table(data, scores, context)] if scores else []
    shown = {*scores, "n"}
    if {"prediction", "label"} <= set(rest) and "class" in data.coords and data.sizes["class"] <= MAX_CLASSES:
        parts.append(_confusion_table(data, context))
        shown |= {"prediction", "label"}
    if {"prediction", "reference"} <= set(rest):
        parts.append(_text_table(data, context))
        shown |= {"prediction", "reference"}
    if {"least", "greatest", "raw"} <= set(rest):
        name = context.name("identifiability")
        parts += draw_part(context, data, "identifiability", name, "How far each weight is determined", 1)
    tables = _tables_by_axes(data, rest, context)
    spread, spread_names = _spread_table(data, [name for name in rest if _is_per_example(data[name])], context)
    parts += [*tables.values(), *spread]
    shown |= {*spread_names, *(name for group in tables for name in group)}
    title = context.title("scores" if scores else "numbers")
    return [Section(title, parts)] if parts else [], shown


def _score_table(data: xr.Dataset, names: list[str], context: SectionContext) -> Table:
    """Return one row for each metric, with the method of its interval."""
    scores = [estimate(data, name) for name in names]
    ends = [[np.nan if end is None else float(end) for end in (score.value, score.low, score.high)] for score in scores]
    columns = {
        **name_ends("value", zip(*ends, strict=True)),
        "interval": [data[name].attrs.get("interval", data[name].attrs.get("long_name", "")) for name in names],
    }
    task = read_provenance(data).get("task")
    caption = f"Scores{f' on {task}' if isinstance(task, str) else ''}, with intervals where they are known"
    frame = pd.DataFrame(columns, index=pd.Index(list(map(spaced, names)), name="metric"))
    return Table(context.name("scores"), caption, frame, _count_examples(data))


def _confusion_table(data: xr.Dataset, context: SectionContext) -> Table:
    """Return the number of examples for each label and answer."""
    classes = [str(name) for name in data["class"].values]
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (data["label"].values.astype(int), data["prediction"].values.astype(int)), 1)
    answers = [f"answered {name}" for name in classes]
    frame = pd.DataFrame(counts, index=pd.Index(classes, name="label"), columns=answers)
    caption = "Labels (rows) and answers (columns), in examples"
    return Table(context.name("confusion"), caption, frame, _count_examples(data))


def _text_table(data: xr.Dataset, context: SectionContext) -> Table:
    """Return the first texts that a model wrote, beside what it read and what was expected."""
    names = {"text": "source", "reference": "reference", "prediction": "written by the model"}
    first = data.isel(example=slice(MAX_TEXTS))
    columns = {title: [str(text) for text in first[name].values] for name, title in names.items() if name in first}
    frame = pd.DataFrame(columns, index=pd.Index([str(name) for name in first["example"].values], name="example"))
    caption = f"What the model wrote, for the first {len(frame)} of {data.sizes['example']:,} examples"
    return Table(context.name("texts"), caption, frame, len(frame))


def _tables_by_axes(data: xr.Dataset, names: list[str], context: SectionContext) -> dict[tuple[str, ...], Table]:
    """Return a table for each set of axes, by the variables in it; variables of single examples have none."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        dims = tuple(str(dim) for dim in data[name].dims if data.sizes[dim] > 1)
        if dims and "example" not in dims and data[name].dtype.kind in "fiu" and data[name].size:
            groups.setdefault(dims, []).append(name)
    tables = {}
    for dims, group in groups.items():
        cells = int(np.prod([data.sizes[dim] for dim in dims]))
        if cells <= MAX_CELLS and bool(data[group].notnull().to_array().any()):
            labels = join_words(str(data[name].attrs.get("long_name", spaced(name))) for name in group)
            caption = capitalize(f"{labels} by {join_words(map(spaced, dims))}")
            frame = _axes_frame(data, group, dims)
            empty = int(frame.isna().all(axis=1).sum())
            caption += f". Left out: rows without any value ({empty})" if empty else ""
            name = context.name("by", *dims)
            tables[tuple(group)] = Table(name, caption, frame.dropna(how="all"), _count_examples(data))
    return tables


def _axes_frame(data: xr.Dataset, names: list[str], dims: tuple[str, ...]) -> pd.DataFrame:
    """Return variables across; or, for a single variable along several axes, the last axis across."""
    single = [dim for dim in data.dims if data.sizes[dim] == 1]
    across = dims[-1] if len(names) == 1 and len(dims) > 1 else None
    frames = []
    for name in names:
        found = estimate(data, name)
        ends = {"low": found.low, "high": found.high} if found.has_interval else {}
        means = xr.Dataset({"value": found.value, **ends}).isel({dim: 0 for dim in single if dim in data[name].dims})
        frames.append(means_to_frame(means, dims[:-1] if across else dims, across, name))
    return pd.concat(frames, axis=1)


def _spread_table(data: xr.Dataset, names: list[str], context: SectionContext) -> tuple[list[Table], list[str]]:
    """Return a table of the spread over examples, a row for each variable and label, and the variables in it."""
    rows: list[dict[str, Any]] = []
    shown = []
    for name in names:
        new = _spread_rows(data[name], name)
        if new and len(rows) + len(new) <= MAX_ROWS:
            rows += new
            shown.append(name)
    if not rows:
        return [], []
    frame = pd.DataFrame(rows)
    keys = ["variable", "where"] if frame["where"].astype(bool).any() else ["variable"]
    frame = frame.drop(columns=[] if len(keys) > 1 else ["where"]).set_index(keys)
    low, high = int(frame["n"].min()), int(frame["n"].max())
    caption = "Spread over examples: mean, standard deviation, quartiles and extremes"
    n = high if low == high else f"{low:,} to {high:,}"
    return [Table(context.name("spread"), caption, frame if low != high else frame.drop(columns="n"), n)], shown


def _is_per_example(table: xr.DataArray) -> bool:
    """Whether these are values of single examples, and not of their classes or tokens."""
    return "example" in table.dims and table.dtype.kind == "f" and not {"query", "key", "class"} & set(table.dims)


def _spread_rows(table: xr.DataArray, name: str) -> list[dict[str, Any]]:
    """Return one row for each label along other axes that has a value."""
    others = [dim for dim in table.dims if dim != "example"]
    flat = table.stack(place=others, create_index=False) if others else table.expand_dims("place")
    rows = []
    for index, values in enumerate(flat.transpose("place", "example").values):
        values = values[np.isfinite(values)].astype(float)
        if values.size:
            labels = [f"{dim} {flat[dim].values[index]}" for dim in others if dim in flat.coords]
            rows.append({"variable": spaced(name), "where": ", ".join(labels), **_summarize(values)})
    return rows


def _summarize(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> dict[str, float | int]:
    names = ("least", "25 %", "median", "75 %", "largest")
    quantiles = dict(zip(names, np.percentile(values, [0, 25, 50, 75, 100]), strict=True))
    sd = values.std(ddof=1) if len(values) > 1 else np.nan
    return {"n": len(values), "mean": values.mean(), "sd": sd, **quantiles}


def _count_examples(data: xr.Dataset) -> int | str:
    """Return the number of examples, where the result has it."""
    count = example_count(data) or read_provenance(data).get("n")
    return count if isinstance(count, int | str) else ""
