"""Agreement between two annotation passes, and of a classifier with each: a practical upper bound."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr

from headscope.patterns import CLASSES
from headscope.patterns.labels.labelled_maps import Array
from headscope.patterns.train import metrics
from headscope.patterns.train.training_set import TrainingSet


def measure_agreement(training: TrainingSet, predicted: Array, resampled: Sequence[Array]) -> xr.Dataset:
    """Return F1 and kappa between this pass and the next, and the F1 of predictions against each.

    All are over the maps labelled in both passes; `cnn_ratio` is the F1 of the predictions over that between the
    passes. `resampled` holds the counts of each map in bootstrap draws. Empty where there is only one pass.
    """
    passes = training.labelled.passes
    second = next((name for name in passes if name != training.name), None)
    shared = [index for index, source in enumerate(training.sources) if second and source.id in passes[second]]
    if second is None or not shared:
        return xr.Dataset()
    ids, names = [training.sources[index].id for index in shared], (training.name, second)
    ratings = [*([CLASSES.index(passes[name][map_id]) for map_id in ids] for name in names), predicted[shared]]
    estimates = _score(np.array(ratings), np.ones((1, len(shared))))
    draws = [_score(np.array(ratings), counts[:, shared]) for counts in resampled]
    variables: dict[str, Any] = {"passes_maps": len(shared)}
    for name, estimate in estimates.items():
        rows = zip(*(np.atleast_2d(draw[name]) for draw in draws), strict=True)
        low, high = np.array([metrics.widest_interval(row) for row in rows]).T
        dims = ("labels",) if estimate.ndim > 1 else ()
        for ending, value in (("", estimate[..., 0]), ("_low", low), ("_high", high)):
            variables[f"{name}{ending}"] = (dims, value if dims else np.squeeze(value))
    return xr.Dataset(variables, coords={"labels": np.array(names, dtype=object)})


def _score(ratings: Array, counts: Array) -> dict[str, Array]:
    """Return the agreement of two passes, and of the predictions with each, for each row of counts.

    `ratings` holds the classes in the first pass, in the second pass and of the predictions.
    """
    between, *against = (
        metrics.confusion_matrix(first, second, (len(CLASSES), len(CLASSES)), counts)
        for first, second in combinations(ratings, 2)
    )
    f1, cnn_f1 = metrics.macro_f1(between), np.stack([metrics.macro_f1(confusion) for confusion in against])
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = cnn_f1 / f1
    return {"passes_f1": f1, "passes_kappa": metrics.cohen_kappa(between), "cnn_f1": cnn_f1, "cnn_ratio": ratio}
