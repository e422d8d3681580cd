"""Changes of a score from one run of a model to others on the same examples."""

from collections.abc import Sequence

import numpy as np

from headscope.training.metrics import DRAWS, SEED, Metric
from headscope.uncertainty.bootstrap import percentile_interval
from headscope.uncertainty.intervals import Array
from headscope.uncertainty.paired import bootstrap_change, mcnemar_test, permutation_test


def compare_scores(before: Metric, after: Sequence[Metric]) -> dict[str, Array]:
    """Return the change from `before` to each of `after`, `change`, with its paired interval and p-value.

    `change_low` and `change_high` are the 95 % percentile interval of the bootstrap over examples, whose draws both
    runs share. `change_p` is that of McNemar's exact test for the accuracy of examples, else of a permutation test.
    """
    assert before.statistics is not None
    assert before.from_sums is not None
    runs = np.stack([metric.statistics for metric in after if metric.statistics is not None], axis=1)
    low, high = percentile_interval(
        bootstrap_change(before.statistics, runs, before.from_sums, draws=DRAWS, seed=SEED), ignore_nan=True
    )
    if before.is_proportion:
        p = mcnemar_test(before.statistics[:, 0], runs[..., 0])
    else:
        p = permutation_test(before.statistics, runs, before.from_sums, seed=SEED)
    change = np.array([metric.value - before.value for metric in after])
    return {"change": change, "change_low": low, "change_high": high, "change_p": p}
