"""How important every token is by several methods, as one table that a step can store."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from headscope.core.example import Example
from headscope.engine.importances import importances
from headscope.engine.model import Model
from headscope.uncertainty.intervals import Array


def measure_token_scores(
    model: Model,
    examples: Sequence[Example],
    methods: Mapping[str, str],
    *,
    target: str,
    max_length: int | None,
    special: bool = False,
) -> xr.Dataset:
    """Return the `scores` of every token, `importance example token`; NaN behind the last one.

    Special tokens have NaN unless `special` counts them. `methods` are specs of `hs.importances` by the labels
    that they get.
    """
    tables: list[list[Array]] = []
    for method in methods.values():
        measured = importances(model, list(examples), method, target=target, max_length=max_length)
        rows = zip(measured.scores, measured.special, strict=True)
        tables.append([scores if special else np.where(hidden, np.nan, scores) for scores, hidden in rows])
    lengths = [len(row) for row in tables[0]]
    table = np.full((len(methods), len(lengths), max(lengths)), np.nan)
    for index, rows_of_method in enumerate(tables):
        for at, row in enumerate(rows_of_method):
            table[index, at, : len(row)] = row
    variables = {"scores": (("importance", "example", "token"), table), "length": ("example", lengths)}
    return xr.Dataset(variables, {"importance": list(methods)})


def split_token_scores(scores: xr.Dataset) -> dict[str, list[Array]]:
    """Return the table by method and example, each as long as its example has tokens."""
    lengths = scores["length"].values.tolist()
    return {
        str(name): [row[:length] for row, length in zip(table, lengths, strict=True)]
        for name, table in zip(scores["importance"].values, scores["scores"].values, strict=True)
    }
