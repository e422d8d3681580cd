"""Sections of a report about clusters of heads."""

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, Table
from headscope.reporting.sections.parts import SectionContext, try_figure
from headscope.results.cluster import name_distance
from headscope.results.stamp import read_provenance

COLUMNS = ("within", "between", "difference", "p", "clusters", "silhouette", "stress")
SHOWN = {*COLUMNS, "by_gap", "position", "cluster", "leaf", "merge", "head_distance", "behaviour"}
NOTE = (
    "The p-value is the share of exchanges of layers between heads after which the distance between layers exceeds "
    "that within layers by at least as much. Positions are by metric multidimensional scaling; stress is what they do "
    "not show. Clusters are cut from a tree of average linkage."
)


def cluster_sections(data: xr.Dataset, context: SectionContext) -> tuple[list[Section], set[str]]:
    """Return a section with the test of layers, the positions and the trees; and the variables that it shows."""
    facts = read_provenance(data)
    n = facts.get("n", "")
    distance = name_distance(data)
    test = f"Mean distance ({distance}) of two heads of one layer and of two layers, and the clusters of heads"
    gaps = f"Mean distance of two heads ({distance}) by the number of layers between them; 0 is the same layer"
    parts: list[Part] = [
        Paragraph(NOTE),
        Table(context.name("clusters", "layers"), test, _tabulate(data), n),
        Table(context.name("clusters", "by_gap"), gaps, _tabulate_gaps(data), n),
    ]
    colours = ["layer", *(["behaviour"] if "behaviour" in data else [])]
    for lens in map(str, np.atleast_1d(data["lens"].values)):
        for colour in colours:
            name, caption = context.name("clusters", lens, colour), f"Heads by {colour}, {lens}: near where alike"
            parts.append(try_figure(data, "clusters", name, caption, n, lens=lens, colour=colour))
        caption = f"The tree in which heads are joined, {lens}"
        parts.append(try_figure(data, "dendrogram", context.name("clusters", lens, "tree"), caption, n, lens=lens))
    return [Section(context.title("clusters of heads"), parts)], SHOWN


def _tabulate(data: xr.Dataset) -> pd.DataFrame:
    """Return a row for each lens."""
    columns = {name: data[name].values.astype(int if name == "clusters" else float) for name in COLUMNS}
    return pd.DataFrame(columns, index=pd.Index(data["lens"].values.astype(str), name="lens"))


def _tabulate_gaps(data: xr.Dataset) -> pd.DataFrame:
    """Return a row for each number of layers between two heads, and a column for each lens."""
    table = data["by_gap"].transpose("gap", "lens")
    index = pd.Index(table["gap"].values, name="layers between")
    return pd.DataFrame(table.values, index=index, columns=data["lens"].values.astype(str))
