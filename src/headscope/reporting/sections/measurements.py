"""Sections of a report about `hs.measure`: means by layer, along further axes, and every head."""

import math
from collections.abc import Sequence

import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, Table
from headscope.core.errors import InputError
from headscope.core.prose import join_words
from headscope.reporting.entry_summary import describe_entry
from headscope.reporting.sections.parts import (
    SectionContext,
    capitalize,
    counts_differ,
    describe_means,
    describe_place,
    example_count,
    known_places,
    means_to_frame,
    spaced,
    try_figure,
)
from headscope.results.select import further_axes, head_variables, select_variable
from headscope.results.stamp import read_provenance
from headscope.results.summarize import format_count, mean_over

MAX_PANELS = 8
"""Labels side by side in a table, or figures of one variable."""

MAX_ROWS = 48
"""Rows of a table of labels."""

Sections = tuple[list[Section], set[str]]
"""Sections, and the variables that they are about."""


def measurement_sections(data: xr.Dataset, context: SectionContext) -> Sections:
    """Return a section for each statistic, with all of its variables."""
    groups: dict[str, list[str]] = {}
    for name in head_variables(data):
        groups.setdefault(_statistic_of(data, name), []).append(name)
    sections = []
    for statistic, names in groups.items():
        sentence = describe_entry("statistics", statistic).sentence
        parts: list[Part] = [Paragraph(sentence)] if sentence else []
        for name in names:
            parts += _variable_parts(data, name, context)
        sections.append(Section(context.title(spaced(statistic)), parts))
    return sections, {name for names in groups.values() for name in names}


def _variable_parts(data: xr.Dataset, name: str, context: SectionContext) -> list[Part]:
    """Return the tables and figures of one variable."""
    try:
        data, note = _average_other_heads(data, name)
        chosen = select_variable(data, name)
    except InputError as error:
        return [Paragraph(f"`{name}` cannot be shown: {error}")]
    if not bool(chosen["value"].notnull().any()):
        return [Paragraph(f"`{name}` has no value for any head ({format_count(chosen) or 'n is not known'}).")]
    parts: list[Part] = [Paragraph(note)] if note else []
    if further := further_axes(chosen):
        return [*parts, *_parts_with_axes(data, chosen, name, further, context)]
    return [*parts, *_parts_per_head(data, chosen, name, context)]


def _parts_per_head(data: xr.Dataset, chosen: xr.Dataset, name: str, context: SectionContext) -> list[Part]:
    """Return parts for one number per head: by layer, as a curve, and every head."""
    n, label = example_count(chosen), capitalize(chosen.attrs["label"])
    counts = counts_differ(chosen)
    layers = means_to_frame(mean_over(chosen, ["head"]), ["layer"], "lens", name, counts=counts)
    overall = mean_over(chosen, ["layer", "head"]).expand_dims(layer=["all"])
    total = means_to_frame(overall, ["layer"], "lens", name, counts=counts)
    frame = pd.concat([layers.set_axis(layers.index.astype(str)), total]) if len(layers) > 1 else layers
    caption = f"{label} by layer. {describe_means(chosen, ['head'])}"
    parts: list[Part] = [Table(context.name(name), caption, frame.rename_axis("layer"), n)]
    if chosen.sizes["layer"] > 1:
        interval = " with its 95 % interval" if "low" in chosen else ""
        caption = f"{label} by layer: the mean of all heads{interval}, and every head as a dot"
        parts.append(try_figure(data, "curve", context.name(name, "curve"), caption, n, variable=name))
    if chosen.sizes["layer"] * chosen.sizes["head"] > 1:
        caption = f"{label} of every head"
        parts.append(try_figure(data, "heads", context.name(name, "heads"), caption, n, variable=name))
    return parts


def _parts_with_axes(
    data: xr.Dataset, chosen: xr.Dataset, name: str, further: Sequence[str], context: SectionContext
) -> list[Part]:
    """Return parts for a variable with further axes: over all heads, by layer, and as bars."""
    chosen, missing = _drop_missing(chosen, further)
    n, label = example_count(chosen), capitalize(chosen.attrs["label"])
    labels, axes = math.prod(chosen.sizes[axis] for axis in further), join_words(map(spaced, further))
    if labels > MAX_ROWS:
        too_long = f"`{name}` has {labels:,} places along {axes}, more than a page can show."
        return [Paragraph(f"{too_long} As a table it is saved by hs.save(result, 'result.csv').")]
    overall = mean_over(chosen, ["layer", "head"])
    frame = means_to_frame(overall, further, "lens", name, counts=counts_differ(chosen))
    caption = f"{label} by {axes}. {describe_means(chosen, ['layer', 'head'])}{missing}"
    parts: list[Part] = [Table(context.name(name), caption, frame, n)]
    if chosen.sizes["layer"] > 1 and labels <= MAX_PANELS:
        stacked = _stack_axes(mean_over(chosen, ["head"]), further)
        frame = means_to_frame(stacked, ["lens", "layer"], "label", name)
        frame = frame.droplevel("lens") if list(chosen["lens"].values) == [""] else frame
        caption = f"{label} by layer and {axes}. {describe_means(chosen, ['head'])}{missing}"
        parts.append(Table(context.name(name, "by_layer"), caption, frame, n))
    return [*parts, *_bar_figures(data, chosen, name, further, context)]


def _bar_figures(
    data: xr.Dataset, chosen: xr.Dataset, name: str, further: Sequence[str], context: SectionContext
) -> list[Part]:
    """Return bars along the longest axis, also stacked by layer, for every label along the other axes."""
    along = max(further, key=lambda axis: chosen.sizes[axis])
    others = [axis for axis in further if axis != along]
    if (count := math.prod(chosen.sizes[axis] for axis in others)) > MAX_PANELS:
        return [Paragraph(f"`{name}` is not drawn: it has {count} places beside {along}.")]
    n, label, parts = example_count(chosen), capitalize(chosen.attrs["label"]), list[Part]()
    for at, labels in known_places(chosen, others):  # the table shows which values are missing
        file, where = context.name(name, *labels), describe_place(at)
        caption = f"{label} by {spaced(along)}{where}"
        parts.append(try_figure(data, "bars", f"{file}_bars", caption, n, variable=name, along=along, at=at))
        if chosen.sizes["layer"] > 1 and not name.endswith("_absolute"):
            caption = f"{label} by layer, stacked by {spaced(along)}{where}"
            options = {"variable": name, "parts": along, "at": at}
            parts.append(try_figure(data, "stacked_bars", f"{file}_stacked", caption, n, **options))
    return parts


def _average_other_heads(data: xr.Dataset, name: str) -> tuple[xr.Dataset, str]:
    """Return numbers between two heads as means over the other head, with a note that says so."""
    others = [str(dim) for dim in data[name].dims if str(dim).startswith("other_")]
    if not others:
        return data, ""
    means = mean_over(select_variable(data, name), others)
    means = means.drop_vars(["n_least", "n_most"], errors="ignore")
    variables = {f"{name}_{part}" if part != "value" else name: means[part] for part in means.data_vars}
    variables[name] = variables[name].assign_attrs(data[name].attrs)
    note = f"`{name}` is between two heads; shown is its mean over {join_words(map(spaced, others))}."
    return xr.Dataset(variables, attrs=data.attrs), note


def _drop_missing(chosen: xr.Dataset, further: Sequence[str]) -> tuple[xr.Dataset, str]:
    """Drop labels without any value, and return a sentence that names them."""
    missing = []
    for axis in further:
        known = chosen["value"].notnull().any([dim for dim in chosen["value"].dims if dim != axis]).values
        missing += [f"{spaced(axis)} {label}" for label in chosen[axis].values[~known]]
        chosen = chosen.isel({axis: known})
    return chosen, f" No value: {join_words(missing)}." if missing else ""


def _stack_axes(means: xr.Dataset, further: Sequence[str]) -> xr.Dataset:
    """Stack all further axes into one axis `label`."""
    summary = means.drop_vars(["rows"], errors="ignore").drop_dims("example", errors="ignore")
    stacked = summary.stack(label=list(further), create_index=False)
    labels = [" · ".join(map(str, cell)) for cell in zip(*(stacked[axis].values for axis in further), strict=True)]
    return stacked.drop_vars(list(further)).assign_coords(label=labels)


def _statistic_of(data: xr.Dataset, name: str) -> str:
    """Return the statistic of a variable; the variable itself where it is unknown."""
    known = [str(spec).partition(":")[0] for spec in read_provenance(data).get("statistics") or []]
    matching = [statistic for statistic in known if name == statistic or name.startswith(f"{statistic}_")]
    return max(matching, key=len, default=name.removesuffix("_absolute"))
