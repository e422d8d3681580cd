"""Cluster heads by the distances between their attention."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.core.checks import check_seed
from headscope.core.errors import InputError, require_package
from headscope.core.options import takes_options
from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance, stamp
from headscope.core.spec import parse_spec
from headscope.results.behaviour import label_behaviour, read_behaviour
from headscope.results.options import ClusterOptions
from headscope.results.select import restore_axes
from headscope.uncertainty.group_distances import compare_groups
from headscope.uncertainty.intervals import Array

VARIABLE = "head_distance"
OTHERS = ("other_layer", "other_head")
MAX_CLUSTERS = 12
"""The largest number of clusters that is tried where none is given."""


@takes_options(ClusterOptions)
def cluster(options: ClusterOptions) -> xr.Dataset:
    """Place and group heads by the measured distances between their attention, for each lens (Clark et al., 2019).

    The result has for each head its `position` in two dimensions (metric
    multidimensional scaling, by scikit-learn: `headscope[clusters]`), its `cluster`, and its place `leaf` in the tree
    `merge` of average linkage, as scipy writes it. `stress` is the share of the distances that the positions do not
    show (Kruskal's stress 1).

    `within` and `between` are the mean distances of two heads of one layer and of two layers, `difference` the second
    minus the first, and `p` says how often it is as large when layers are exchanged between heads (`permutations`,
    `seed`). `by_gap` is the mean distance by the number of layers between two heads.

    `behaviour` names what each head does, by layer and head; by default it comes from the measured `offsets`,
    `special_tokens` and `peak`: where more than half of the weight goes, and "broad" for a peak of at most 0.1. It is
    that of raw attention for all lenses, if that was measured.

    >>> texts = ["The cat sat down.", "It rained all day.", "Nobody knew why she had left."]
    >>> data = hs.measure(model, texts, statistics=["head_distance", "offsets"], progress=False)
    >>> clusters = hs.cluster(data, permutations=99)
    >>> clusters["position"].dims, clusters.sizes["step"]
    (('lens', 'layer', 'head', 'coordinate'), 71)
    """
    data, count, permutations, seed = options.data, options.count, options.permutations, options.seed
    distances = _read_distances(data)
    if permutations < 1:
        raise InputError(f"permutations must be at least 1, but got {permutations}.")
    check_seed(seed)
    restored = _drop_site(restore_axes(data))
    lenses = [_cluster_lens(table, count, permutations, seed) for table in distances]
    result = xr.concat(lenses, "lens", join="outer", fill_value={"cluster": 0}, coords="minimal", compat="override")
    labels = label_behaviour(restored) if options.behaviour is None else read_behaviour(options.behaviour, distances)
    result = result.assign({VARIABLE: distances} | ({} if labels is None else {"behaviour": labels}))
    units = distances.attrs.get("units", "")
    result["difference"] = result["between"] - result["within"]
    for name in ("position", "within", "between", "difference", "by_gap"):
        result[name].attrs["units"] = units
    facts = {"permutations": permutations, "seed": seed, "count": count, "linkage": "average"}
    return stamp(result, **{**read_provenance(data), "kind": "clustering", "command": "headscope cluster", **facts})


def name_distance(data: xr.Dataset) -> str:
    """Return what the distances of a result are, with their units, and whether they are sums over tokens or means."""
    units = next((str(data[name].attrs["units"]) for name in ("position", VARIABLE) if _has_units(data, name)), "")
    specs = dict(map(parse_spec, read_provenance(data).get("statistics") or ()))
    name = "distance"
    if VARIABLE in specs:
        name = f"Jensen–Shannon divergence, {specs[VARIABLE].get('reduce', 'sum')} over tokens"
    return f"{name}, {units}" if units else name


def _has_units(data: xr.Dataset, name: str) -> bool:
    return name in data and bool(data[name].attrs.get("units"))


def _read_distances(data: xr.Dataset) -> xr.DataArray:
    """Return the distances `lens layer head other_layer other_head` of the only site."""
    if VARIABLE not in data:
        available = join_words((f"'{name}'" for name in data.data_vars), limit=8)
        raise InputError(
            f"Heads are clustered by the variable '{VARIABLE}', but the data has {available}. Measure it: "
            f"hs.measure(model, texts, statistics=['{VARIABLE}'])."
        )
    if lost := [axis for axis in ("layer", "head", *OTHERS) if axis not in data[VARIABLE].dims]:
        raise InputError(
            f"Heads are clustered by all distances between them, but '{VARIABLE}' has no axis {join_words(lost)}: some "
            "of it was selected. Give the whole result of hs.measure."
        )
    table = _drop_site(restore_axes(data[[VARIABLE]]))[VARIABLE]
    return table.transpose("lens", "layer", "head", *OTHERS).astype(float)


def _drop_site(data: xr.Dataset) -> xr.Dataset:
    """Return the data of the only site; raise InputError for several."""
    if data.sizes.get("site", 1) > 1:
        sites = [str(site) for site in data["site"].values]
        raise InputError(
            f"Heads of one site are clustered, but the data has {join_words(sites)}. Select one: "
            f"data.sel(site='{sites[0]}')."
        )
    return data.isel(site=0, drop=True) if "site" in data.dims else data.drop_vars("site", errors="ignore")


def _cluster_lens(table: xr.DataArray, count: int | None, permutations: int, seed: int) -> xr.Dataset:
    """Return positions, tree, clusters and the test of one lens."""
    shape = (table.sizes["layer"], table.sizes["head"])
    square = table.values.reshape(np.prod(shape), -1)
    present = np.flatnonzero(np.isfinite(square.diagonal()))  # a lens with one map per layer has one head in each
    lens, layers = str(table["lens"].values), np.repeat(table["layer"].values, shape[1])[present]
    square = square[np.ix_(present, present)]
    if len(present) < 3 or not np.isfinite(square).all():
        raise InputError(
            f"At least 3 heads with distances between all of them are needed to cluster, but {lens} has "
            f"{len(present)}. Measure more layers or heads, or texts in which all heads have weight."
        )
    positions, stress = embed_distances(square, layers)
    tree, leaves = _build_tree(square)
    clusters, silhouette = _cut_tree(tree, square, count)
    test = compare_groups(square, layers, permutations=permutations, seed=seed)
    gaps, means = _average_by_gap(square, layers)

    def spread(values: Any, empty: Any = np.nan) -> Any:
        """Return values of the known heads as a table of all heads."""
        filled = np.full((np.prod(shape), *values.shape[1:]), empty)
        filled[present] = values
        return filled.reshape(*shape, *values.shape[1:])

    heads = ("layer", "head")
    tables = {"position": ((*heads, "coordinate"), spread(positions)), "cluster": (heads, spread(clusters, 0))}
    tables |= {"leaf": (heads, spread(np.argsort(leaves).astype(float))), "merge": (("step", "part"), tree)}
    scores = {"stress": stress, "silhouette": silhouette, "clusters": int(clusters.max()), **test._asdict()}
    coords = {"layer": table["layer"].values, "head": table["head"].values, "coordinate": ["x", "y"], "lens": lens}
    coords |= {"step": np.arange(len(tree)), "part": ["first", "second", "distance", "size"], "gap": gaps}
    return xr.Dataset({**tables, "by_gap": ("gap", means), **scores}, coords)


def _build_tree(square: Array) -> tuple[Array, Any]:
    """Return the tree of average linkage as scipy writes it, and the heads in the order of its leaves."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    tree = linkage(squareform(square, checks=False), "average", optimal_ordering=True)
    return tree, leaves_list(tree)


def _cut_tree(tree: Array, square: Array, count: int | None) -> tuple[Any, float]:
    """Return the cluster of each head, from 1, and the mean silhouette; NaN where that is not defined."""
    from scipy.cluster.hierarchy import fcluster

    heads = len(square)
    if count is not None and not 1 <= count <= heads:
        raise InputError(f"count is the number of clusters of {heads} heads, from 1 to {heads}, but got {count}.")
    counts = range(2, min(MAX_CLUSTERS, heads - 1) + 1) if count is None else [count]
    cuts = [fcluster(tree, number, "maxclust") for number in counts]
    scores = [_mean_silhouette(square, labels) for labels in cuts]
    best = int(np.argmax(np.nan_to_num(scores, nan=-2.0)))
    return cuts[best], scores[best]


def _mean_silhouette(square: Array, labels: Any) -> float:
    """Return the mean of (b − a) / max(a, b): a is the mean distance to one's own cluster, b to the nearest other."""
    count = int(labels.max())
    if not 1 < count < len(labels):
        return float("nan")
    member = np.eye(count)[labels - 1]
    sizes, own = member.sum(0), member.astype(bool)
    sums = square @ member
    inner = sums[own] / np.maximum(sizes[labels - 1] - 1, 1)
    outer = np.where(own, np.inf, sums / sizes).min(1)
    larger = np.maximum(inner, outer)
    values = np.where((sizes[labels - 1] > 1) & (larger > 0), (outer - inner) / np.where(larger > 0, larger, 1), 0.0)
    return float(values.mean())


def _average_by_gap(square: Array, layers: Any) -> tuple[Any, Array]:
    """Return the numbers of layers that two heads can be apart, and the mean distance of such heads."""
    first, second = np.triu_indices(len(square), 1)
    gaps, index = np.unique(np.abs(layers[first] - layers[second]), return_inverse=True)
    return gaps, np.bincount(index, square[first, second]) / np.bincount(index)


def embed_distances(
    distances: Array,  # point other
    order: Any,  # point
) -> tuple[Array, float]:
    """Return positions `point coordinate` by metric multidimensional scaling, and Kruskal's stress 1.

    scikit-learn's SMACOF starts from classical scaling, so the result is the same each time. Positions are centered and
    turned to their principal axes; x grows with `order`, such as the layer, and the farthest point along y is positive.
    """
    manifold = require_package("sklearn.manifold", "clusters", "Multidimensional scaling")
    start = _scale_classically(distances)
    points, _ = manifold.smacof(
        distances, metric=True, init=start, n_init=1, max_iter=500, eps=1e-7, normalized_stress=False
    )
    points = points - points.mean(0)
    points = points @ np.linalg.svd(points, full_matrices=False)[2].T
    signs = [points[:, 0] @ (np.asarray(order, float) - np.mean(order)), points[np.abs(points[:, 1]).argmax(), 1]]
    points = points * np.where(np.asarray(signs) < 0, -1.0, 1.0)
    upper = np.triu_indices(len(points), 1)
    embedded = np.linalg.norm(points[:, None] - points, axis=-1)[upper]
    total = float((distances[upper] ** 2).sum())
    return points, float(np.sqrt(((embedded - distances[upper]) ** 2).sum() / total)) if total else 0.0


def _scale_classically(distances: Array) -> Array:
    """Return the first two principal coordinates of points with these distances (Torgerson)."""
    from scipy.linalg import eigh

    squares = distances**2
    centered = squares - squares.mean(0) - squares.mean(1, keepdims=True) + squares.mean()
    count = len(distances)
    values, vectors = eigh(-centered / 2, subset_by_index=(count - 2, count - 1))
    return np.asarray(vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0)))
