"""Bootstrap of results that vary with two crossed factors: the training seed and the example."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from headscope.uncertainty.bootstrap import DRAWS

Name = TypeVar("Name", bound=Hashable)


def bootstrap_crossed(
    tables: Mapping[Name, Float[np.ndarray, "seed example"]], *, draws: int = DRAWS, seed: int = 0
) -> dict[Name, Float[np.ndarray, " draws"]]:
    """Return the mean of every table in each draw of its seeds and of the examples.

    Tables have one row for each seed and one column for each example; NaN is no value. All tables share the examples
    of a draw, so that differences between them are paired, while each has seeds of its own. With one seed only
    examples are drawn. A draw in which a table has no value is NaN.

    >>> draws = bootstrap_crossed({"a": np.ones((2, 5)), "b": np.zeros((3, 5))}, draws=10)
    >>> sorted(set((draws["a"] - draws["b"]).tolist()))
    [1.0]
    """
    random = np.random.default_rng(seed)
    sizes = {table.shape[1] for table in tables.values()}
    assert len(sizes) == 1, "tables are over the same examples"
    weights = _draw_weights(random, sizes.pop(), draws)
    means = {}
    for name, table in tables.items():
        finite, rows = np.isfinite(table), _draw_weights(random, len(table), draws)
        total = ((rows @ np.where(finite, table, 0.0)) * weights).sum(-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            means[name] = total / ((rows @ finite.astype(float)) * weights).sum(-1)
    return means


def _draw_weights(random: np.random.Generator, count: int, draws: int) -> Float[np.ndarray, "draws count"]:
    """Return how often each of `count` items occurs in each draw of `count` items with replacement."""
    return np.asarray(random.multinomial(count, np.full(count, 1 / count), size=draws), dtype=float)
