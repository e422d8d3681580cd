"""Statistics of every head over a dataset."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import pandas as pd
import xarray as xr

from headscope.core.catalog.entry_summary import describe_entry
from headscope.core.document import Paragraph, Part, Section, SectionContext, Table, capitalize
from headscope.core.errors import InputError
from headscope.core.kind import Kind, Sections
from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.results.document_parts import (
    counts_differ,
    describe_count,
    describe_lenses,
    describe_means,
    describe_place,
    draw_part,
    example_count,
    known_places,
    means_to_frame,
    spaced,
)
from headscope.results.select import further_axes, head_variables, select_variable
from headscope.results.summarize import format_count, mean_over

MAX_PANELS = 8
"""Labels side by side in a table, or figures of one variable."""

MAX_ROWS = 48
"""Rows of a table of labels."""


class Measurement(Kind):
    """Statistics of every head over a dataset: means by layer, along further axes, and every head."""

    variables: ClassVar[Mapping[str, str]] = {}  # those of its statistics
    default_figure = "head_grid"
    general = True

    def fits(self, data: xr.Dataset) -> bool:
        """Whether a variable has a value for every head."""
        return bool(head_variables(data))

    def lead(self, data: xr.Dataset) -> str:
        """Return the statistics, the lenses, and the number of examples."""
        names = join_words(map(spaced, head_variables(data)))
        return f"What was measured for every head: {names}{describe_lenses(data)}{describe_count(data)}."

    def figure(self, data: xr.Dataset, options: Collection[str] = ()) -> str:
        """Return a panel for each of several lenses, of the first variable, or the grid of heads."""
        names = [name for name in head_variables(data) if set(data[name].dims) <= {"lens", "site", "layer", "head"}]
        if data.sizes.get("lens", 1) == 1 or not names or {"colour", "scale"} & set(options):
            return "head_grid"
        return "heads" if "variable" in options else f"heads:variable={names[0]}"

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return a section for each statistic, with all of its variables."""
        return _sections(data, context)


def _sections(data: xr.Dataset, context: SectionContext) -> Sections:
    groups: dict[str, list[str]] = {}
    for name in head_variables(data):
        groups.setdefault(_statistic_of(data, name), []).append(name)
    overview = _overview(data, context)
    sections = [Section(context.title("overview"), [overview])] if overview else []
    for statistic, names in groups.items():
        sentence = describe_entry("statistics", statistic).sentence
        parts: list[Part] = [Paragraph(sentence)] if sentence else []
        for name in names:
            parts += _variable_parts(data, name, context)
        sections.append(Section(context.title(spaced(statistic)), parts))
    return sections, {name for names in groups.values() for name in names}


def _overview(data: xr.Dataset, context: SectionContext) -> Table | None:
    """Return a row for each variable and lens: its mean over heads, and the heads with the least and the most."""
    rows, further, counts = [], [], []
    for name in head_variables(data):
        if further_axes(selected := select_variable(data, name)):
            further.append(name)
            continue
        counts.append(example_count(selected))
        for lens in selected["lens"].values:
            if row := _summarize_heads(selected.sel(lens=lens)["value"]):
                rows.append(
                    {"statistic": name, "lens": str(lens), **row, "n": format_count(selected.sel(lens=lens))[4:]}
                )
    if not rows:
        return None
    caption = "Mean over heads, and the heads with the lowest and highest value"
    caption += f". With further axes: {join_words(further)}" if further else ""
    frame = pd.DataFrame(rows).set_index("statistic")
    frame = frame if set(frame["lens"]) != {""} else frame.drop(columns="lens")
    return Table(context.name("overview"), caption, frame, counts[0] if len(set(counts)) == 1 else "")


def _summarize_heads(values: xr.DataArray) -> dict[str, Any]:
    """Return the mean, and the heads with the lowest and the highest value; nothing where no head has one."""
    flat = values.stack(at=("layer", "head"), create_index=False)
    if not bool(flat.notnull().any()):
        return {}
    positions = {"lowest": int(flat.argmin("at")), "highest": int(flat.argmax("at"))}
    cells = {name: flat.isel(at=position) for name, position in positions.items()}
    named = {name: f"{float(cell):.3g} (L{cell['layer'].item()}H{cell['head'].item()})" for name, cell in cells.items()}
    return {"mean": float(flat.mean()), **named}


def _variable_parts(data: xr.Dataset, name: str, context: SectionContext) -> list[Part]:
    """Return the tables and figures of one variable."""
    try:
        data, note = _average_other_heads(data, name)
        selected = select_variable(data, name)
    except InputError as error:
        return [Paragraph(f"`{name}` cannot be shown: {error}")]
    if not bool(selected["value"].notnull().any()):
        return [Paragraph(f"`{name}` has no value for any head ({format_count(selected) or 'n is not known'}).")]
    parts: list[Part] = [Paragraph(note)] if note else []
    if further := further_axes(selected):
        return [*parts, *_parts_with_axes(data, selected, name, further, context)]
    return [*parts, *_parts_per_head(data, selected, name, context)]


def _parts_per_head(data: xr.Dataset, selected: xr.Dataset, name: str, context: SectionContext) -> list[Part]:
    """Return parts for one number per head: by layer, as a curve, and every head."""
    n, label = example_count(selected), capitalize(selected.attrs["label"])
    counts = counts_differ(selected)
    layers = means_to_frame(mean_over(selected, ["head"]), ["layer"], "lens", name, counts=counts)
    overall = mean_over(selected, ["layer", "head"]).expand_dims(layer=["all"])
    total = means_to_frame(overall, ["layer"], "lens", name, counts=counts)
    frame = pd.concat([layers.set_axis(layers.index.astype(str)), total]) if len(layers) > 1 else layers
    caption = f"{label} by layer. {describe_means(selected, ['head'])}"
    parts: list[Part] = [Table(context.name(name), caption, frame.rename_axis("layer"), n)]
    if selected.sizes["layer"] > 1:
        interval = " with its 95 % interval" if "low" in selected else ""
        caption = f"{label} by layer: the mean of all heads{interval}, and every head as a dot"
        parts += draw_part(context, data, "curve", context.name(name, "curve"), caption, n, variable=name)
    if selected.sizes["layer"] * selected.sizes["head"] > 1:
        caption = f"{label} of every head"
        parts += draw_part(context, data, "heads", context.name(name, "heads"), caption, n, variable=name)
    return parts


def _parts_with_axes(
    data: xr.Dataset, selected: xr.Dataset, name: str, further: Sequence[str], context: SectionContext
) -> list[Part]:
    """Return parts for a variable with further axes: over all heads, by layer, and as bars."""
    selected, missing = _drop_missing(selected, further)
    n, label = example_count(selected), capitalize(selected.attrs["label"])
    labels, axes = math.prod(selected.sizes[axis] for axis in further), join_words(map(spaced, further))
    if labels > MAX_ROWS:
        too_long = f"`{name}` has {labels:,} places along {axes}, more than a page can show."
        return [Paragraph(f"{too_long} As a table it is saved by hs.save(result, 'result.csv').")]
    overall = mean_over(selected, ["layer", "head"])
    frame = means_to_frame(overall, further, "lens", name, counts=counts_differ(selected))
    caption = f"{label} by {axes}. {describe_means(selected, ['layer', 'head'])}{missing}"
    parts: list[Part] = [Table(context.name(name), caption, frame, n)]
    if selected.sizes["layer"] > 1 and labels <= MAX_PANELS:
        stacked = _stack_axes(mean_over(selected, ["head"]), further)
        frame = means_to_frame(stacked, ["lens", "layer"], "label", name)
        frame = frame.droplevel("lens") if list(selected["lens"].values) == [""] else frame
        caption = f"{label} by layer and {axes}. {describe_means(selected, ['head'])}{missing}"
        parts.append(Table(context.name(name, "by_layer"), caption, frame, n))
    return [*parts, *_bar_figures(data, selected, name, further, context)]


def _bar_figures(
    data: xr.Dataset, selected: xr.Dataset, name: str, further: Sequence[str], context: SectionContext
) -> list[Part]:
    """Return bars along the longest axis, also stacked by layer, for every label along the other axes."""
    along = max(further, key=lambda axis: selected.sizes[axis])
    others = [axis for axis in further if axis != along]
    if (count := math.prod(selected.sizes[axis] for axis in others)) > MAX_PANELS:
        return [Paragraph(f"`{name}` is not drawn: it has {count} places beside {along}.")]
    n, label, parts = example_count(selected), capitalize(selected.attrs["label"]), list[Part]()
    for at, labels in known_places(selected, others):  # the table shows which values are missing
        file, where = context.name(name, *labels), describe_place(at)
        caption = f"{label} by {spaced(along)}{where}"
        parts += draw_part(context, data, "bars", f"{file}_bars", caption, n, variable=name, along=along, at=at)
        if selected.sizes["layer"] > 1 and not name.endswith("_absolute"):
            caption = f"{label} by layer, stacked by {spaced(along)}{where}"
            options = {"variable": name, "parts": along, "at": at}
            parts += draw_part(context, data, "stacked_bars", f"{file}_stacked", caption, n, **options)
    return parts


def _average_other_heads(data: xr.Dataset, name: str) -> tuple[xr.Dataset, str]:
    """Return numbers between two heads as means over the other head, with a note that says so."""
    others = [str(dim) for dim in data[name].dims if str(dim).startswith("other_")]
    if not others:
        return data, ""
    means = mean_over(select_variable(data, name), others)
    means = means.drop_vars(["n_least", "n_most"], errors="ignore")
    variables = {f"{name}_{suffix}" if suffix != "value" else name: means[suffix] for suffix in means.data_vars}
    variables[name] = variables[name].assign_attrs(data[name].attrs)
    note = f"`{name}` is between two heads; shown is its mean over {join_words(map(spaced, others))}."
    return xr.Dataset(variables, attrs=data.attrs), note


def _drop_missing(selected: xr.Dataset, further: Sequence[str]) -> tuple[xr.Dataset, str]:
    """Drop labels without any value, and return a sentence that names them."""
    missing = []
    for axis in further:
        has_value = selected["value"].notnull().any([dim for dim in selected["value"].dims if dim != axis]).values
        missing += [f"{spaced(axis)} {label}" for label in selected[axis].values[~has_value]]
        selected = selected.isel({axis: has_value})
    return selected, f" No value: {join_words(missing)}." if missing else ""


def _stack_axes(means: xr.Dataset, further: Sequence[str]) -> xr.Dataset:
    """Stack all further axes into one axis `label`."""
    summary = means.drop_vars(["rows"], errors="ignore").drop_dims("example", errors="ignore")
    stacked = summary.stack(label=list(further), create_index=False)
    labels = [" · ".join(map(str, cell)) for cell in zip(*(stacked[axis].values for axis in further), strict=True)]
    return stacked.drop_vars(list(further)).assign_coords(label=labels)


def _statistic_of(data: xr.Dataset, name: str) -> str:
    """Return the statistic of a variable; the variable itself where it is unknown."""
    statistics = [str(spec).partition(":")[0] for spec in read_provenance(data).get("statistics") or []]
    matching = [statistic for statistic in statistics if name == statistic or name.startswith(f"{statistic}_")]
    return max(matching, key=len, default=name.removesuffix("_absolute"))
