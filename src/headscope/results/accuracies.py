"""Accuracies of predictors on groups of words, with intervals and tests over documents."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Num

from headscope.core.estimate import ENDS, with_interval
from headscope.core.example import Example
from headscope.uncertainty.bootstrap import bootstrap_sums, percentile_interval
from headscope.uncertainty.corrections import correct_p_values
from headscope.uncertainty.intervals import Array
from headscope.uncertainty.paired import permutation_test

DRAWS = 1_000
INTERVAL = "95 %, bootstrap of documents"


def document_name(example: Example) -> str:
    """Return the document of an example: its column `document`, else its id."""
    return str(example.columns.get("document", example.id))


def number_documents(examples: Sequence[Example]) -> dict[str, int]:
    """Return the documents of examples, numbered in the order of their first examples.

    >>> number_documents([Example(name, "", columns={"document": "d"}) for name in "ab"] + [Example("c", "")])
    {'d': 0, 'c': 1}
    """
    return {name: number for number, name in enumerate(dict.fromkeys(map(document_name, examples)))}


def tabulate_accuracies(
    hits: Num[np.ndarray, "task predictor document group"],
    counts: Num[np.ndarray, "document group"],
    *,
    tasks: Sequence[str],
    predictors: Sequence[str],
    groups: Mapping[str, Sequence[str]],  # the name of the axis, and its labels
    seed: int = 0,
) -> xr.Dataset:
    """Return the accuracy of every predictor, and the gain of the first over the second, with intervals.

    `hits` are numbers of right answers, `counts` numbers of questions, by document. Intervals are percentiles of 1,000
    bootstrap draws of documents. `gain_p` is the p-value of a paired permutation test of documents, and
    `gain_p_adjusted` is corrected by Holm for the number of groups; the first group, `all`, is a test of its own.
    Without a question, accuracy is NaN.
    """
    (axis, labels), n = *groups.items(), counts.sum(0)
    stacked = np.moveaxis(hits, 2, 0).astype(float)  # document task predictor group
    size = stacked[0].size
    sums = bootstrap_sums(np.concatenate([stacked.reshape(len(counts), -1), counts], 1), draws=DRAWS, seed=seed)
    totals = sums[:, size:].reshape(DRAWS, 1, 1, -1)
    accuracy, accuracy_draws = (
        divide(stacked.sum(0), n),
        divide(sums[:, :size].reshape(DRAWS, *stacked.shape[1:]), totals),
    )
    dims = ("task", "predictor", axis)
    variables = _bootstrap_interval("accuracy", dims, accuracy, accuracy_draws, "accuracy")
    variables["accuracy_n"] = (dims, np.broadcast_to(n, accuracy.shape).copy())
    if len(predictors) > 1:
        gain, gain_draws = accuracy[:, 0] - accuracy[:, 1], accuracy_draws[:, :, 0] - accuracy_draws[:, :, 1]
        variables |= _bootstrap_interval("gain", dims[::2], gain, gain_draws, f"gain over {predictors[1]}")
        p = [_test_gains(stacked[:, task], counts, seed) for task in range(len(tasks))]
        variables["gain_p"] = (dims[::2], np.array(p), {"long_name": "p, not corrected"})
        corrected = np.array([[row[0], *correct_p_values(row[1:])] for row in p])
        variables["gain_p_adjusted"] = (dims[::2], corrected, {"long_name": "p, corrected by Holm"})
    coords = {"task": list(tasks), "predictor": list(predictors), axis: list(labels)}
    return xr.Dataset(variables, coords).assign(documents=len(counts))


def compare_baselines(
    hits: Num[np.ndarray, "task predictor document group"],
    counts: Num[np.ndarray, "document group"],
    predictors: Sequence[str],
    baselines: Sequence[str],
    **names: Any,
) -> xr.Dataset:
    """Return `gain_over`, the gain of the first predictor over every baseline, as `tabulate_accuracies` has `gain`."""
    gains = []
    for baseline in baselines:
        pair = [predictors[0], baseline]
        table = tabulate_accuracies(
            hits[:, [predictors.index(name) for name in pair]], counts, predictors=pair, **names
        )
        quantities = {f"gain{end}": f"gain_over{end}" for end in (*ENDS, "_p", "_p_adjusted")}
        gains.append(table[list(quantities)].rename(quantities).expand_dims(baseline=[baseline]))
    return xr.concat(gains, "baseline")


def select_adjusted_p(data: xr.Dataset, name: str) -> xr.DataArray:
    """Return the corrected p-values of a variable; older files have only these, as `_p`."""
    return data[f"{name}_p_adjusted" if f"{name}_p_adjusted" in data else f"{name}_p"]


def divide(numerator: Any, denominator: Any) -> Array:
    """Return numerator / denominator, and NaN where the denominator is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.asarray(numerator, float) / np.asarray(denominator, float))


def _bootstrap_interval(name: str, dims: tuple[str, ...], value: Any, draws: Any, long_name: str) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of groups without a question, whose draws are all NaN
        low, high = percentile_interval(draws, ignore_nan=True)
    ends = (value, *(np.where(np.isnan(value), np.nan, end) for end in (low, high)))
    return with_interval(name, dims, ends, long_name=long_name, units="", interval=INTERVAL)


def _test_gains(
    hits: Num[np.ndarray, "document predictor group"], counts: Num[np.ndarray, "document group"], seed: int
) -> Array:
    """Return a p-value for every group; those behind the first will be corrected for their number."""
    first, second = (np.stack([hits[:, predictor], counts], -1) for predictor in (0, 1))  # document group statistic
    groups = counts.shape[1]
    p = [
        permutation_test(second[:, group], first[:, group, None], _accuracy_from_sums, tests=groups, seed=seed).item()
        for group in range(groups)
    ]
    return np.array(p)


def _accuracy_from_sums(sums: Array) -> Array:
    return divide(sums[..., 0], sums[..., 1])
