"""What passes through the edges of a graph of layers on its way between tokens, and the largest part of it."""

import numpy as np

from headscope.plotting.scales import Cells

MAX_PER_TOKEN = 2  # edges of a layer that are drawn at most, for each token


def follow_products(edges: Cells, query: int | None, key: int | None) -> Cells:
    """Return the weight of all paths through each edge; the weight of a path is the product of its edges.

    `edges` is `layer query key`, from the lowest layer up. Paths lead from the input token `key` (None: from all of
    them) to the token `query` above the highest layer (None: to all).
    """
    tokens = edges.shape[-1]
    below = [_start(tokens, key)]
    for layer in edges[:-1]:
        below.append(layer @ below[-1])
    above = [_start(tokens, query)]
    for layer in edges[:0:-1]:
        above.append(above[-1] @ layer)
    return np.stack(above[::-1])[:, :, None] * edges * np.stack(below)[:, None, :]


def follow_capacities(edges: Cells, query: int | None, key: int | None) -> Cells:
    """Return the most that can pass through each edge: its capacity, or less where less can arrive from either end.

    This is a bound on any flow between these tokens, and not one flow.
    """
    tokens = edges.shape[-1]
    below = [np.full(tokens, np.inf) if key is None else np.where(np.arange(tokens) == key, np.inf, 0.0)]
    for layer in edges[:-1]:
        below.append(np.minimum(layer, below[-1]).sum(-1))
    above = [_start(tokens, query)]
    for layer in edges[:0:-1]:
        above.append(np.minimum(1.0, np.minimum(layer, above[-1][:, None]).sum(0)))
    passing: Cells = np.minimum(np.minimum(np.stack(above[::-1])[:, :, None], edges), np.stack(below)[:, None, :])
    return passing


def keep_largest(passing: Cells, mass: float, query: int | None, key: int | None) -> Cells:
    """Set all but the largest edges of each layer to 0, up to a share `mass` of its total.

    Only edges that reach `query` through kept edges above are kept, or, without a `query`, those that `key` reaches
    through kept edges below.
    """
    largest = np.zeros_like(passing)
    down = query is not None
    connected = np.zeros(passing.shape[-1], bool)
    connected[query if down else key] = True
    for index in range(len(passing))[:: -1 if down else 1]:
        layer = passing[index]
        largest[index] = _keep_layer(
            np.where(connected[:, None] if down else connected, layer, 0.0), mass, np.abs(layer)
        )
        connected = largest[index].any(0 if down else 1)
    return largest


def _keep_layer(layer: Cells, mass: float, whole: Cells) -> Cells:
    """Keep the largest edges up to a share of the `whole` layer's total, and no more than can be told apart."""
    sizes = np.abs(layer).ravel()
    order = np.argsort(-sizes, kind="stable")[: MAX_PER_TOKEN * len(layer)]
    before = sizes[order].cumsum() - sizes[order]
    order = order[(before < (mass - 1e-9) * whole.sum()) & (sizes[order] > 0)]
    largest = np.zeros(layer.size)
    largest[order] = layer.ravel()[order]
    return largest.reshape(layer.shape)


def _start(tokens: int, token: int | None) -> Cells:
    """Return 1 for the token and 0 for all others; 1 for all where none is given."""
    return np.ones(tokens) if token is None else (np.arange(tokens) == token).astype(float)
