"""How alike the heads are, and the groups that they form."""

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, SectionContext, Table
from headscope.core.kind import Kind, Sections
from headscope.core.provenance import read_provenance
from headscope.results.cluster import name_distance
from headscope.results.document_parts import describe_count, describe_lenses, draw_part

COLUMNS = ("within", "between", "difference", "p", "clusters", "silhouette", "stress")
SHOWN = {*COLUMNS, "by_gap", "position", "cluster", "leaf", "merge", "head_distance", "behaviour"}
NOTE = (
    "The p-value is the share of exchanges of layers between heads after which the distance between layers exceeds "
    "that within layers by at least as much. Positions are by metric multidimensional scaling; stress is what they do "
    "not show. Clusters are cut from a tree of average linkage."
)


class Clustering(Kind):
    """Distances between heads: positions, a tree, clusters, and a test whether heads of one layer are alike."""

    variables = {"position": "of each head, near where alike", "merge": "the tree in which heads are joined"}
    default_figure = "clusters"

    def lead(self, data: xr.Dataset) -> str:
        """Return what was clustered, and over how many examples."""
        return f"How alike the heads are{describe_lenses(data)}, by the distances between them{describe_count(data)}."

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return a section with the test of layers, the positions and the trees."""
        return _sections(data, context)


def _sections(data: xr.Dataset, context: SectionContext) -> Sections:
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
            parts += draw_part(context, data, "clusters", name, caption, n, lens=lens, colour=colour)
        caption = f"The tree in which heads are joined, {lens}"
        parts += draw_part(context, data, "dendrogram", context.name("clusters", lens, "tree"), caption, n, lens=lens)
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
