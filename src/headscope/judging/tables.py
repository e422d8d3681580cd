"""From one number for each example and lens to means, intervals, paired differences and tests."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.core.estimate import with_interval
from headscope.uncertainty.corrections import LEVEL, correct_p_values
from headscope.uncertainty.intervals import mean_interval
from headscope.uncertainty.paired import permutation_test

Table = Float[np.ndarray, "example lens *more"]
Variables = dict[str, Any]


def summarize(name: str, values: Table, dims: Sequence[str], **attrs: Any) -> Variables:
    """Return the mean over examples with its interval and count; `dims` are those after `example`."""
    interval = mean_interval(values)
    return {
        **with_interval(name, dims, interval, interval="95 % over examples, Student's t", **attrs),
        f"{name}_n": (tuple(dims), np.isfinite(values).sum(0)),
    }


def compare_lenses(name: str, values: Table, dims: Sequence[str]) -> Variables:
    """Return the paired difference of every two lenses, the row minus the column, with tests.

    p-values are those of a paired permutation test, corrected together (Holm) for all pairs of lenses and all else that
    `dims` hold; two lenses that agree on every example differ by exactly 0, with p = 1.
    """
    count, name = values.shape[1], f"{name}_difference"
    difference = values[:, :, None] - values[:, None, :]
    pairs = np.array(list(combinations(range(count), 2)), dtype=np.int64).reshape(-1, 2)
    tested = difference[:, pairs[:, 0], pairs[:, 1]]  # example pair …
    p = _test(tested.reshape(len(tested), -1)).reshape(tested.shape[1:])
    adjusted = correct_p_values(p.ravel()).reshape(p.shape)
    shape = (count, count, *values.shape[2:])
    tables = {"p": np.full(shape, np.nan), "p_adjusted": np.full(shape, np.nan)}
    for (first, second), value, corrected in zip(pairs, p, adjusted, strict=True):
        for at in ((first, second), (second, first)):
            tables["p"][at], tables["p_adjusted"][at] = value, corrected
    all_dims = (dims[0], f"other_{dims[0]}", *dims[1:])
    variables = summarize(name, difference, all_dims)
    variables |= {f"{name}_{end}": (all_dims, table) for end, table in tables.items()}
    return {**variables, f"{name}_significant": (all_dims, (tables["p_adjusted"] < LEVEL).astype(np.int8))}


def _test(differences: Float[np.ndarray, "example test"]) -> Float[np.ndarray, " test"]:
    """Return the p-value of each mean difference: of random signs, how often is it as large."""
    known = np.isfinite(differences).any(0)
    if not known.any():
        return np.full(differences.shape[1], np.nan)
    runs = np.where(np.isfinite(differences), differences, 0.0)[..., None]
    p = permutation_test(np.zeros((len(runs), 1)), runs, lambda sums: sums[..., 0], tests=int(known.sum()))
    return np.where(known, p, np.nan)


def average_layers(values: Float[np.ndarray, "... layer"]) -> Float[np.ndarray, "..."]:
    """Return the mean over layers; NaN values are left out."""
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        mean: Any = np.where(finite, values, 0.0).sum(-1) / finite.sum(-1)
    return np.asarray(mean)
