"""How two measurements differ, head by head."""

import math
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, SectionContext, Table
from headscope.core.estimate import Estimate
from headscope.core.kind import Kind, Sections
from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.results.document_parts import (
    describe_count,
    describe_means,
    describe_place,
    draw_part,
    example_count,
    known_places,
    means_to_frame,
    spaced,
)
from headscope.results.select import further_axes, head_variables, select_variable
from headscope.results.summarize import format_range, mean_over
from headscope.uncertainty.corrections import LEVEL

MAX_PANELS = 8
"""Figures of one variable."""

MAX_LARGEST = 10
"""Rows in the table of the largest differences."""

CORRECTIONS = {"holm": "Holm's correction", "benjamini_hochberg": "the correction of Benjamini and Hochberg"}


class Comparison(Kind):
    """Differences between two measurements: how many heads differ, the largest differences, and every head."""

    variables: ClassVar[Mapping[str, str]] = {}  # each has an x_p_adjusted beside it
    default_figure = "head_grid"
    subject = "How two results differ"

    def fits(self, data: xr.Dataset) -> bool:
        """Whether a variable has tests beside it."""
        return bool(_tested_variables(data))

    def lead(self, data: xr.Dataset) -> str:
        """Return what is compared, and over how many examples."""
        names = join_words(spaced(name) for name in head_variables(data))
        counts = [data[f"{name}_n"] for name in head_variables(data) if f"{name}_n" in data]
        over = (
            f" over {format_range(xr.concat([n.max() for n in counts], 'x'))} examples"
            if counts
            else describe_count(data)
        )
        return f"How two results differ, head by head, in {names}{over}."

    def figure(self, data: xr.Dataset, options: Collection[str] = ()) -> str:
        """Return the differences of every head in the first variable, as in reports, or the grid of heads."""
        names = [name for name in head_variables(data) if not further_axes(select_variable(data, name))]
        if not names or {"colour", "scale"} & set(options):
            return self.default_figure
        return "heads" if "variable" in options else f"heads:variable={names[0]}"

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return a section for each variable."""
        return _sections(data, context)


def _sections(data: xr.Dataset, context: SectionContext) -> Sections:
    names = _tested_variables(data)
    sections = [
        Section(context.title(f"difference in {spaced(name)}"), _variable_parts(data, name, context)) for name in names
    ]
    return sections, set(names)


def _tested_variables(data: xr.Dataset) -> list[str]:
    """Return the variables of heads that have p-values, corrected ones, and what is significant."""
    tests = ("p", "p_adjusted", "significant")
    return [name for name in head_variables(data) if all(f"{name}_{test}" in data for test in tests)]


def _variable_parts(data: xr.Dataset, name: str, context: SectionContext) -> list[Part]:
    selected = select_variable(data, name)
    n, facts = example_count(selected), read_provenance(data)
    parts: list[Part] = [Paragraph(_summarize(selected, name, facts))]
    if facts.get("unpaired_because"):
        parts.append(Paragraph(f"Not paired by example: {facts['unpaired_because']}."))
    if len(largest := _largest_differences(selected)):
        which = f"{len(largest)} largest significant differences" if len(largest) > 1 else "one significant difference"
        caption = f"The {which} in {spaced(name)}; p is corrected"
        parts.append(Table(context.name(name, "largest"), caption, largest, n))
    if bool(selected["p"].notnull().any()) and not further_axes(selected):
        caption = f"Differences in {spaced(name)} by layer: their mean, and how many heads differ. "
        caption += describe_means(selected, ["head"])
        parts.append(Table(context.name(name, "by_layer"), caption, _layer_table(selected), n))
    return [*parts, *_head_figures(data, selected, name, context)]


def _summarize(selected: xr.Dataset, name: str, facts: dict[str, Any]) -> str:
    """Return how many cells differ, of how many that could be tested."""
    tested, cells = int(selected["p"].notnull().sum()), selected["p"].size
    significant = int((selected["significant"] == 1).sum())
    rule = CORRECTIONS.get(str(facts.get("correction")))
    level = f"p < {facts.get('level', LEVEL):g}" + (f" after {rule}" if rule else ", not corrected")
    untested = f" {cells - tested:,} more could not be tested." if tested < cells else ""
    verb = "differs" if significant == 1 else "differ"
    return f"**{significant:,} of {tested:,}** cells of `{name}` {verb} ({level}).{untested}"


def _largest_differences(selected: xr.Dataset) -> pd.DataFrame:
    """Return the significant differences of largest absolute value."""
    dims = list(selected["value"].dims)
    flat = selected.drop_vars("rows", errors="ignore").stack(cell=dims, create_index=False)
    significant = np.flatnonzero(flat["significant"].values == 1)
    order = significant[np.argsort(-abs(flat["value"].values[significant]), kind="stable")][:MAX_LARGEST]
    largest = flat.isel(cell=order)
    heads = [f"L{layer}H{head}" for layer, head in zip(largest["layer"].values, largest["head"].values, strict=True)]
    axes = {str(dim): largest[dim].values for dim in dims if _is_shown(selected, str(dim))}
    difference = Estimate.from_fields(largest).columns("difference")
    return pd.DataFrame({**axes, **difference, "p": largest["p_adjusted"].values}, index=pd.Index(heads, name="head"))


def _is_shown(selected: xr.Dataset, axis: str) -> bool:
    """Whether a table of heads has a column for an axis: always for lenses, else if there are several labels."""
    named = axis == "lens" and list(selected["lens"].values) != [""]
    return axis not in ("layer", "head") and (named or selected.sizes[axis] > 1)


def _layer_table(selected: xr.Dataset) -> pd.DataFrame:
    """Return one row for each lens and layer."""
    ordered = selected.transpose("lens", "layer", "head", ...)
    frame = means_to_frame(mean_over(ordered, ["head"]), ["lens", "layer"], None, "mean difference")
    frame["differ"] = (ordered["significant"] == 1).sum("head").values.ravel()
    frame["tested"] = ordered["p"].notnull().sum("head").values.ravel()
    return frame.droplevel("lens") if list(selected["lens"].values) == [""] else frame


def _head_figures(data: xr.Dataset, selected: xr.Dataset, name: str, context: SectionContext) -> list[Part]:
    """Return a figure of every head, for each label along further axes if these are few."""
    n, further, parts = example_count(selected), further_axes(selected), list[Part]()
    if (count := math.prod(selected.sizes[axis] for axis in further)) > MAX_PANELS:
        return [Paragraph(f"`{name}` is not drawn: it has {count} places along {join_words(further)}.")]
    places = list(known_places(selected, further))  # the summary counts all others as not tested
    if not places:
        return [Paragraph(f"`{name}` is not drawn: no cell has a value.")]
    for at, labels in places:
        caption = f"Difference in {spaced(name)} of every head{describe_place(at)}; bold or dotted where significant"
        file = context.name(name, *labels, "heads")
        parts += draw_part(context, data, "heads", file, caption, n, variable=name, at=at)
    return parts
