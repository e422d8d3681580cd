"""The bootstrap over seeds and examples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.uncertainty.crossed import bootstrap_crossed


def literal(tables, draws, seed):
    """Repeat rows and columns as often as they are drawn, and average what is known."""
    random = np.random.default_rng(seed)
    size = next(iter(tables.values())).shape[1]
    columns = random.multinomial(size, np.full(size, 1 / size), size=draws)
    result = {}
    for name, table in tables.items():
        rows = random.multinomial(len(table), np.full(len(table), 1 / len(table)), size=draws)
        values = []
        for row, column in zip(rows, columns, strict=True):
            drawn = np.repeat(np.repeat(table, row, axis=0), column, axis=1)
            values.append(np.nan if np.isnan(drawn).all() else np.nanmean(drawn))
        result[name] = np.array(values)
    return result


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_draws_are_means_of_repeated_rows_and_columns(seeds, size, seed):
    random = np.random.default_rng(seed)
    tables = {"a": random.random((seeds, size)), "b": random.random((2, size))}
    tables["b"][random.random((2, size)) < 0.3] = np.nan
    drawn, expected = bootstrap_crossed(tables, draws=7, seed=seed), literal(tables, 7, seed)
    for name in tables:
        np.testing.assert_allclose(drawn[name], expected[name], rtol=1e-12)


def test_tables_share_examples_but_not_seeds():
    same = np.tile(np.arange(50.0), (1, 1))
    drawn = bootstrap_crossed({"a": same, "b": same})
    np.testing.assert_array_equal(drawn["a"], drawn["b"])
    by_seed = np.tile(np.arange(5.0)[:, None], (1, 50))
    drawn = bootstrap_crossed({"a": by_seed, "b": by_seed})
    assert abs(np.corrcoef(drawn["a"], drawn["b"])[0, 1]) < 0.2
    assert drawn["a"].std() == pytest.approx(np.sqrt(2 / 5), rel=0.15)  # the variance of 0 … 4 is 2
