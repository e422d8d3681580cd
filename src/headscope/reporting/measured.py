"""Sections of what was measured for every head: by layer, by what else it is about, and head by head."""

from collections.abc import Sequence
from itertools import product

import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, Table
from headscope.core.errors import InputError
from headscope.core.prose import join_words
from headscope.reporting.catalogued import about
from headscope.reporting.parts import Place, counted, described, frame_of, slug, tried
from headscope.results.select import further_axes, head_variables, select_variable
from headscope.results.stamp import read_provenance
from headscope.results.summarize import format_count, mean_over

FEW = 8
"""Labels that stand side by side in a table, or in panels one after the other."""

MANY = 48
"""Rows that a table of labels may have."""

Sections = tuple[list[Section], set[str]]
"""What was made, and which variables it is about."""


def measured_sections(data: xr.Dataset, place: Place) -> Sections:
    """A section for each statistic, with all of its variables."""
    groups: dict[str, list[str]] = {}
    for name in head_variables(data):
        groups.setdefault(_statistic(data, name), []).append(name)
    found = []
    for statistic, names in groups.items():
        sentence = about("statistics", statistic).sentence
        parts: list[Part] = [Paragraph(sentence)] if sentence else []
        for name in names:
            parts += variable_parts(data, name, place)
        found.append(Section(place.title(statistic.replace("_", " ")), parts))
    return found, {name for names in groups.values() for name in names}


def variable_parts(data: xr.Dataset, name: str, place: Place) -> list[Part]:
    """The tables and figures of one variable."""
    try:
        data, said = _without_others(data, name)
        chosen = select_variable(data, name)
    except InputError as error:
        return [Paragraph(f"`{name}` cannot be shown: {error}")]
    if not bool(chosen["value"].notnull().any()):
        return [Paragraph(f"`{name}` has no value for any head ({format_count(chosen) or 'n is not known'}).")]
    parts: list[Part] = [Paragraph(said)] if said else []
    if further := further_axes(chosen):
        return [*parts, *_with_axes(data, chosen, name, further, place)]
    return [*parts, *_plain(data, chosen, name, place)]


def _plain(data: xr.Dataset, chosen: xr.Dataset, name: str, place: Place) -> list[Part]:
    """A number for each head: by layer, a curve, and every head."""
    n, label = counted(chosen), chosen.attrs["label"]
    layers = frame_of(mean_over(chosen, ["head"]), ["layer"], "lens", name)
    whole = frame_of(mean_over(chosen, ["layer", "head"]).expand_dims(layer=["all"]), ["layer"], "lens", name)
    frame = pd.concat([layers.set_axis(layers.index.astype(str)), whole]) if len(layers) > 1 else layers
    caption = f"{_capital(label)} by layer. {described(chosen, ['head'])}"
    parts: list[Part] = [Table(place.name(name), caption, frame.rename_axis("layer"), n)]
    if chosen.sizes["layer"] > 1:
        shown = f"{_capital(label)} by layer: the mean of all heads with its 95 % interval, and every head as a dot"
        shown = (
            shown if "low" in chosen else f"{_capital(label)} by layer: the mean of all heads, and every head as a dot"
        )
        parts.append(tried(data, "curve", place.name(name, "curve"), shown, n, variable=name))
    if chosen.sizes["layer"] * chosen.sizes["head"] > 1:
        every = f"{_capital(label)} of every head"
        parts.append(tried(data, "heads", place.name(name, "heads"), every, n, variable=name))
    return parts


def _with_axes(data: xr.Dataset, chosen: xr.Dataset, name: str, further: Sequence[str], place: Place) -> list[Part]:
    """Numbers along further axes, such as the weight on each type: over all heads, by layer, and as bars."""
    chosen, absent = _there(chosen, further)
    n, label = counted(chosen), _capital(chosen.attrs["label"])
    labels, by = _size(chosen, further), join_words([each.replace("_", " ") for each in further])
    if labels > MANY:
        return [
            Paragraph(
                f"`{name}` has {labels:,} places along {by}, more than a page can show. As a table it is saved by "
                "hs.save(result, 'result.csv')."
            )
        ]
    whole = mean_over(chosen, ["layer", "head"])
    caption = f"{label} by {by}. {described(chosen, ['layer', 'head'])}{absent}"
    parts: list[Part] = [Table(place.name(name), caption, frame_of(whole, further, "lens", name), n)]
    if chosen.sizes["layer"] > 1 and labels <= FEW:
        joined = _joined(mean_over(chosen, ["head"]), further)
        frame = frame_of(joined, ["lens", "layer"], "label", name)
        frame = frame.droplevel("lens") if list(chosen["lens"].values) == [""] else frame
        caption = f"{label} by layer and {by}. {described(chosen, ['head'])}{absent}"
        parts.append(Table(place.name(name, "by_layer"), caption, frame, n))
    return [*parts, *_bars(data, chosen, name, further, place)]


def _bars(data: xr.Dataset, chosen: xr.Dataset, name: str, further: Sequence[str], place: Place) -> list[Part]:
    """Bars along the longest axis, stacked by layer too, for every place along the others."""
    along = max(further, key=lambda axis: chosen.sizes[axis])
    others = [axis for axis in further if axis != along]
    if _size(chosen, others) > FEW:
        return [Paragraph(f"`{name}` is not drawn: it has {_size(chosen, others)} places beside {along}.")]
    n, label, parts = counted(chosen), _capital(chosen.attrs["label"]), list[Part]()
    for labels in product(*(chosen[axis].values for axis in others)):
        if not bool(chosen["value"].sel(dict(zip(others, labels, strict=True))).notnull().any()):
            continue  # the table shows that there is nothing
        at = tuple(f"{axis}={each}" for axis, each in zip(others, labels, strict=True))
        where = f", {join_words([each.replace('=', ' ') for each in at])}" if at else ""
        file = place.name(name, *map(slug, map(str, labels)))
        shown = f"{label} by {along.replace('_', ' ')}{where}"
        parts.append(tried(data, "bars", f"{file}_bars", shown, n, variable=name, along=along, at=at))
        if chosen.sizes["layer"] > 1 and not name.endswith("_absolute"):
            stacked = f"{label} by layer, stacked by {along.replace('_', ' ')}{where}"
            parts.append(tried(data, "stacked_bars", f"{file}_stacked", stacked, n, variable=name, parts=along, at=at))
    return parts


def _without_others(data: xr.Dataset, name: str) -> tuple[xr.Dataset, str]:
    """Numbers between two heads as means over the other one, which a table can show."""
    others = [str(dim) for dim in data[name].dims if str(dim).startswith("other_")]
    if not others:
        return data, ""
    chosen = select_variable(data, name)
    means = mean_over(chosen, others)
    kept = {f"{name}_{each}" if each != "value" else name: means[each] for each in means.data_vars}
    kept[name] = kept[name].assign_attrs(data[name].attrs)
    what = join_words([each.replace("_", " ") for each in others])
    return xr.Dataset(kept, attrs=data.attrs), f"`{name}` is between two heads; shown is its mean over {what}."


def _there(chosen: xr.Dataset, further: Sequence[str]) -> tuple[xr.Dataset, str]:
    """Only the labels that have a value somewhere, and which do not."""
    absent = []
    for axis in further:
        there = chosen["value"].notnull().any([dim for dim in chosen["value"].dims if dim != axis]).values
        absent += [f"{axis.replace('_', ' ')} {each}" for each in chosen[axis].values[~there]]
        chosen = chosen.isel({axis: there})
    return chosen, f" No value: {join_words(absent)}." if absent else ""


def _joined(means: xr.Dataset, further: Sequence[str]) -> xr.Dataset:
    """All places along further axes as one axis `label`."""
    kept = means.drop_vars(["rows"], errors="ignore").drop_dims("example", errors="ignore")
    stacked = kept.stack(label=list(further), create_index=False)
    words = [
        " · ".join(str(stacked[axis].values[place]) for axis in further) for place in range(stacked.sizes["label"])
    ]
    return stacked.drop_vars(list(further)).assign_coords(label=words)


def _statistic(data: xr.Dataset, name: str) -> str:
    """The statistic that a variable comes from; itself where that is not known."""
    known = [str(each).partition(":")[0] for each in read_provenance(data).get("statistics") or []]
    fitting = [each for each in known if name == each or name.startswith(f"{each}_")]
    return max(fitting, key=len, default=name.removesuffix("_absolute"))


def _size(chosen: xr.Dataset, axes: Sequence[str]) -> int:
    many = 1
    for axis in axes:
        many *= chosen.sizes[axis]
    return many


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
