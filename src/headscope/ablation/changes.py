"""Changes of a score from one run of a model to others on the same examples."""

from collections.abc import Sequence

import numpy as np

from headscope.core.estimate import name_ends
from headscope.training.metrics import DRAWS, SEED, Metric
from headscope.uncertainty.bootstrap import percentile_interval
from headscope.uncertainty.intervals import Array
from headscope.uncertainty.paired import bootstrap_change, least_margin, mcnemar_test, permutation_test


def compare_scores(before: Metric, after: Sequence[Metric]) -> dict[str, Array]:
    """Return the change from `before` to each of `after`, `change`, with its paired interval and p-value.

    `change_low` and `change_high` are the 95 % percentile interval of the bootstrap over examples, whose draws both
    runs share; for accuracy, neither end is nearer to the change than `least_margin`. A run compared with itself has no
    interval but 0. `change_p` is that of McNemar's exact test for the accuracy of examples, else of a permutation test.
    """
    assert before.statistics is not None
    assert before.from_sums is not None
    runs = np.stack([metric.statistics for metric in after if metric.statistics is not None], axis=1)
    low, high = percentile_interval(
        bootstrap_change(before.statistics, runs, before.from_sums, draws=DRAWS, seed=SEED), ignore_nan=True
    )
    change = np.array([metric.value - before.value for metric in after])
    if before.is_proportion:
        p = mcnemar_test(before.statistics[:, 0], runs[..., 0])
        margin = np.array([0.0 if metric is before else least_margin(len(runs)) for metric in after])
        low, high = np.minimum(low, change - margin), np.maximum(high, change + margin)
    else:
        p = permutation_test(before.statistics, runs, before.from_sums, seed=SEED)
    return {**name_ends("change", (change, low, high)), "change_p": p}
