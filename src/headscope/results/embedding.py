"""Positions in two dimensions whose distances are like given ones."""

from typing import Any

import numpy as np

from headscope.core.errors import require_package
from headscope.uncertainty.intervals import Array


def embed_distances(
    distances: Array,  # point other
    order: Any,  # point
) -> tuple[Array, float]:
    """Return positions `point coordinate` by metric multidimensional scaling, and Kruskal's stress 1.

    scikit-learn's SMACOF starts from classical scaling, so the result is the same each time. Positions are centred and
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
    centred = squares - squares.mean(0) - squares.mean(1, keepdims=True) + squares.mean()
    count = len(distances)
    values, vectors = eigh(-centred / 2, subset_by_index=(count - 2, count - 1))
    return np.asarray(vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0)))
