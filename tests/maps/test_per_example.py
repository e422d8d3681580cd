"""Means over examples, with what is known of their error."""

import numpy as np
import pytest
from scipy import stats

from headscope.core.errors import InputError
from headscope.maps.per_example import make_state, summarize_state
from headscope.statistics.entropy import Entropy

LABELS = {"layer": [0], "head": [0, 1]}


def result(table, *, rows=False):
    table = np.asarray(table, dtype=np.float64)
    ids = [f"example {place}" for place in range(len(table))]
    return summarize_state(make_state(Entropy(), {"entropy": table[:, None]}, ids, LABELS, rows=rows))


def test_the_interval_is_students():
    values = [1.0, 2.0, 4.0, 4.5]
    found = result([[each, each] for each in values]).isel(layer=0, head=0)
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert found.entropy.item() == pytest.approx(np.mean(values))
    assert found.entropy_sd.item() == pytest.approx(np.std(values, ddof=1))
    assert (found.entropy_low.item(), found.entropy_high.item()) == (pytest.approx(low), pytest.approx(high))


def test_one_example_has_a_mean_and_no_spread():
    found = result([[3.0, np.nan]]).isel(layer=0)
    assert found.entropy.values[0] == 3
    assert found.entropy_n.values.tolist() == [1, 0]
    assert np.isnan(found.entropy_sd.values[0])
    assert np.isnan([found.entropy_low.values[0], found.entropy_high.values[0]]).all()


def test_no_example_gives_nan_with_a_count_of_0():
    found = result(np.zeros((0, 2)))
    assert (found.entropy_n == 0).all()
    assert all(found[name].isnull().all() for name in found if name != "entropy_n")


def test_an_example_without_a_value_does_not_count_where_it_has_none():
    found = result([[1.0, np.nan], [3.0, 7.0]]).isel(layer=0)
    assert found.entropy_n.values.tolist() == [2, 1]
    assert found.entropy.values.tolist() == [2.0, 7.0]


def test_values_per_example_are_kept_on_request():
    found = result([[1.0, 2.0], [3.0, 4.0]], rows=True)
    assert found.entropy_rows.dims == ("example", "layer", "head")
    assert found.entropy_rows.sel(example="example 1").values.tolist() == [[3.0, 4.0]]
    assert "entropy_rows" not in result([[1.0, 2.0]])


def test_an_id_that_comes_twice_in_one_batch_is_refused():
    with pytest.raises(InputError, match="the id 'same' comes twice"):
        make_state(Entropy(), {"entropy": np.zeros((2, 1, 2))}, ["same", "same"], LABELS, rows=True)
