"""The Document that results make by themselves: what was run, and the usual tables and figures of each."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.core.document import Document, Paragraph, Section
from headscope.core.errors import InputError
from headscope.core.prose import join_words
from headscope.reporting.catalogued import cited
from headscope.reporting.compared import compared_sections
from headscope.reporting.mapped import mapped_sections
from headscope.reporting.measured import measured_sections
from headscope.reporting.other import other_sections
from headscope.reporting.parts import Place, distinct, slug
from headscope.results.select import AXES, head_variables, main_variables
from headscope.results.stamp import read_provenance

MANY = 12
"""Results in one Dataset, along axes that all of its variables have, that get sections of their own."""


def document_of(results: Mapping[str, xr.Dataset], *, title: str | None = None) -> Document:
    """A Document of these results, by their names."""
    sections, runs = [], []
    for name, data in results.items():
        if not data.data_vars:
            raise InputError(f"There is nothing to report: '{name}' has no variables. Measure first: hs.measure(…).")
        place = Place(name, f"{slug(name)}_") if len(results) > 1 else Place()
        sections += _sections(data, place)
        runs.append({**({"name": name} if len(results) > 1 else {}), **read_provenance(data)})
    known = [read_provenance(each) for each in results.values()]
    return Document(
        title if title is not None else _title(known),
        _lead(results),
        distinct(sections),
        references=[*cited(spec for each in results.values() for spec in _specs(each)), "headscope"],
        runs=[run for run in runs if set(run) - {"name"}],
    )


def _sections(data: xr.Dataset, place: Place) -> list[Section]:
    """The sections of one Dataset; further axes that all measured variables share set results apart."""
    shared = _shared(data)
    groups = list(product(*(range(data.sizes[axis]) for axis in shared)))
    if not 1 < len(groups) <= MANY:
        return _of_kind(data, place)
    found = []
    for group in groups:
        chosen = dict(zip(shared, group, strict=True))
        labels = [str(data[axis].values[at]) if axis in data.coords else f"{axis} {at}" for axis, at in chosen.items()]
        found += _of_kind(data.isel(chosen, drop=True), place.within(" ".join(labels)))
    return found


def _of_kind(data: xr.Dataset, place: Place) -> list[Section]:
    if {"query", "key"} <= set(data.dims) and "weights" in data:
        found, told = mapped_sections(data, place)
    elif any(f"{name}_p_adjusted" in data for name in data.data_vars):
        found, told = compared_sections(data, place)
    else:
        found, told = measured_sections(data, place)
    more, left = other_sections(data, place, told)
    if left:
        said = f"Not shown here: {join_words([f'`{each}`' for each in left])}. The result file holds all of it."
        more.append(Section(place.title("what else there is"), [Paragraph(said)]))
    return [*found, *more]


def _shared(data: xr.Dataset) -> list[str]:
    """The axes beyond lens, site, layer and head that every measured variable has, if there are several variables."""
    names = head_variables(data)
    if len(names) < 2 or "weights" in data:
        return []
    usual = {*AXES, "site"}
    common = set.intersection(*({str(dim) for dim in data[name].dims} for name in names)) - usual
    return [str(dim) for dim in data[names[0]].dims if dim in common]


def _specs(data: xr.Dataset) -> list[tuple[str, str]]:
    """The lenses, statistics and edits behind a result, also those of either side of a comparison."""
    facts = read_provenance(data)
    sides = [facts, *(facts[side] for side in ("a", "b") if isinstance(facts.get(side), Mapping))]
    found = [("lenses", each) for each in _lenses(data, facts)]
    for key in ("lenses", "statistics", "edits"):
        found += [(key, str(each)) for side in sides for each in side.get(key) or []]
    return found


def _title(known: list[dict[str, Any]]) -> str:
    models = {Path(each["model"]).name for each in known if isinstance(each.get("model"), str)}
    return f"Attention of {models.pop()}" if len(models) == 1 else "What was measured"


def _lead(results: Mapping[str, xr.Dataset]) -> str:
    """What the report holds, in a sentence or two."""
    if len(results) > 1:
        return f"{len(results)} results: {join_words([f'**{each}**' for each in results])}."
    (data,) = results.values()
    facts, names = read_provenance(data), [each.replace("_", " ") for each in head_variables(data)]
    lenses = join_words([f"`{each}`" for each in _lenses(data, facts)], empty="")
    if "weights" in data:
        return f"Attention maps of one text{f', seen through {lenses}' if lenses else ''}."
    if any(f"{name}_p_adjusted" in data for name in data.data_vars):
        return f"How two results differ, head by head, in {join_words(names)}."
    if not names:
        return f"What one result holds: {join_words([str(each).replace('_', ' ') for each in main_variables(data)])}."
    n = facts.get("n")
    seen = f"seen through {lenses}" if lenses else ""
    over = f"over {n:,} example{'s' * (n != 1)}" if isinstance(n, int) else ""
    return (
        ", ".join(filter(None, [f"What was measured for every head: {join_words(names)}", f"{seen} {over}".strip()]))
        + "."
    )


def _lenses(data: xr.Dataset, facts: Mapping[str, Any]) -> list[str]:
    """The lenses that a result says it was seen through, or those along its axis."""
    held = facts.get("lenses") or facts.get("lens") or data.coords.get("lens", xr.DataArray([])).values.ravel().tolist()
    return [str(each) for each in ([held] if isinstance(held, str) else held) if each]
