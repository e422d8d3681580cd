"""Sections of what `hs.compare` found: how many heads differ, which most, and all of them."""

from itertools import product

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, Table
from headscope.core.prose import join_words
from headscope.reporting.measured import FEW, Sections
from headscope.reporting.parts import Place, counted, described, slug, tried
from headscope.results.compare import LEVEL
from headscope.results.select import further_axes, head_variables, select_variable
from headscope.results.stamp import read_provenance
from headscope.results.summarize import mean_over

MOST = 10
"""Cells of a variable that are named."""

RULES = {"holm": "Holm's correction", "benjamini_hochberg": "the correction of Benjamini and Hochberg"}


def compared_sections(data: xr.Dataset, place: Place) -> Sections:
    """A section for each variable."""
    names = [name for name in head_variables(data) if f"{name}_p_adjusted" in data]
    found = [
        Section(place.title(f"difference in {name.replace('_', ' ')}"), _parts(data, name, place)) for name in names
    ]
    return found, set(names)


def _parts(data: xr.Dataset, name: str, place: Place) -> list[Part]:
    chosen = select_variable(data, name)
    n, facts = counted(chosen), read_provenance(data)
    parts: list[Part] = [Paragraph(_sentence(chosen, name, facts.get("level", LEVEL), facts.get("correction")))]
    if facts.get("unpaired_because"):
        parts.append(Paragraph(f"Not paired by example: {facts['unpaired_because']}."))
    if len(largest := _largest(chosen)):
        caption = f"The {len(largest)} largest sure differences in {name.replace('_', ' ')}; p is corrected"
        parts.append(Table(place.name(name, "largest"), caption, largest, n))
    if bool(chosen["p"].notnull().any()) and not further_axes(chosen):
        caption = f"Differences in {name.replace('_', ' ')} by layer: their mean, and how many heads differ. "
        caption += described(chosen, ["head"])
        parts.append(Table(place.name(name, "by_layer"), caption, _by_layer(chosen), n))
    return [*parts, *_pictures(data, chosen, name, place)]


def _sentence(chosen: xr.Dataset, name: str, level: float, correction: str | None) -> str:
    """How many cells differ, of how many that could be tested."""
    tested, cells = int(chosen["p"].notnull().sum()), chosen["p"].size
    sure = int((chosen["significant"] == 1).sum())
    rule = f"p < {level:g} after {RULES[correction]}" if correction in RULES else f"p < {level:g}, not corrected"
    left = f" {cells - tested:,} more could not be tested." if tested < cells else ""
    return f"**{sure:,} of {tested:,}** cells of `{name}` differ ({rule}).{left}"


def _largest(chosen: xr.Dataset) -> pd.DataFrame:
    """The cells that differ most among those that differ surely, largest first."""
    dims = list(chosen["value"].dims)
    flat = chosen.drop_vars("rows", errors="ignore").stack(cell=dims, create_index=False)
    sure = np.flatnonzero(flat["significant"].values == 1)
    order = sure[np.argsort(-abs(flat["value"].values[sure]), kind="stable")][:MOST]
    few = flat.isel(cell=order)
    places = [f"L{layer}H{head}" for layer, head in zip(few["layer"].values, few["head"].values, strict=True)]
    axes = {str(dim): few[dim].values for dim in dims if dim not in ("layer", "head") and chosen.sizes[dim] > 1}
    values = {"difference": few["value"], "difference_low": few["low"], "difference_high": few["high"]}
    return pd.DataFrame(
        {**axes, **{key: each.values for key, each in values.items()}, "p": few["p_adjusted"].values},
        index=pd.Index(places, name="head"),
    )


def _by_layer(chosen: xr.Dataset) -> pd.DataFrame:
    """One row for each lens and layer."""
    lenses, layers = (chosen[axis].values for axis in ("lens", "layer"))
    ordered = chosen.transpose("lens", "layer", "head", ...)
    means = mean_over(ordered, ["head"]).transpose("lens", "layer", ...)
    index = pd.MultiIndex.from_product([lenses, layers], names=["lens", "layer"])
    found = pd.DataFrame(
        {
            "mean difference": means["value"].values.ravel(),
            "mean difference_low": means["low"].values.ravel(),
            "mean difference_high": means["high"].values.ravel(),
            "differ": (ordered["significant"] == 1).sum("head").values.ravel(),
            "tested": ordered["p"].notnull().sum("head").values.ravel(),
        },
        index=index,
    )
    return found.droplevel("lens") if len(lenses) == 1 else found


def _pictures(data: xr.Dataset, chosen: xr.Dataset, name: str, place: Place) -> list[Part]:
    """Every head, for each place along further axes if these are few."""
    n, further = counted(chosen), further_axes(chosen)
    labels = list(product(*(chosen[axis].values for axis in further)))
    if len(labels) > FEW or not bool(chosen["value"].notnull().any()):
        why = f"it has {len(labels)} places along {join_words(further)}" if len(labels) > FEW else "no cell has a value"
        return [Paragraph(f"`{name}` is not drawn: {why}.")]
    found: list[Part] = []
    for each in labels:
        if not bool(chosen["value"].sel(dict(zip(further, each, strict=True))).notnull().any()):
            continue  # said above: these cells could not be tested
        at = tuple(f"{axis}={label}" for axis, label in zip(further, each, strict=True))
        where = f", {join_words([one.replace('=', ' ') for one in at])}" if at else ""
        caption = f"Difference in {name.replace('_', ' ')} of every head{where}; bold or dotted where it is sure"
        file = place.name(name, *(slug(str(label)) for label in each), "heads")
        found.append(tried(data, "heads", file, caption, n, variable=name, at=at))
    return found
