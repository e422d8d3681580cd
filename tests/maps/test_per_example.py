import numpy as np
import pytest
from scipy import stats

from headscope.core.errors import InputError
from headscope.maps.per_example import make_state
from headscope.statistics.entropy import Entropy

LABELS = {"layer": [0], "head": [0, 1]}


def summarize(table, *, rows=False):
    table = np.asarray(table, dtype=np.float64)
    ids = [f"example {index}" for index in range(len(table))]
    return Entropy().finish(make_state(Entropy(), {"entropy": table[:, None]}, ids, LABELS, rows=rows))


def test_the_interval_is_students():
    values = [1.0, 2.0, 4.0, 4.5]
    result = summarize([[value, value] for value in values]).isel(layer=0, head=0)
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert result.entropy.item() == pytest.approx(np.mean(values))
    assert result.entropy_sd.item() == pytest.approx(np.std(values, ddof=1))
    assert (result.entropy_low.item(), result.entropy_high.item()) == (pytest.approx(low), pytest.approx(high))


def test_one_example_has_a_mean_but_no_interval():
    result = summarize([[3.0, np.nan]]).isel(layer=0)
    assert result.entropy.values[0] == 3
    assert result.entropy_n.values.tolist() == [1, 0]
    assert np.isnan(result.entropy_sd.values[0])
    assert np.isnan([result.entropy_low.values[0], result.entropy_high.values[0]]).all()


def test_no_example_gives_nan_with_a_count_of_0():
    result = summarize(np.zeros((0, 2)))
    assert (result.entropy_n == 0).all()
    assert all(result[name].isnull().all() for name in result if name != "entropy_n")


def test_missing_values_are_left_out_of_the_cell():
    result = summarize([[1.0, np.nan], [3.0, 7.0]]).isel(layer=0)
    assert result.entropy_n.values.tolist() == [2, 1]
    assert result.entropy.values.tolist() == [2.0, 7.0]


def test_values_per_example_are_kept_on_request():
    result = summarize([[1.0, 2.0], [3.0, 4.0]], rows=True)
    assert result.entropy_rows.dims == ("example", "layer", "head")
    assert result.entropy_rows.sel(example="example 1").values.tolist() == [[3.0, 4.0]]
    assert "entropy_rows" not in summarize([[1.0, 2.0]])


def test_a_duplicate_id_raises():
    with pytest.raises(InputError, match="the id 'same' comes twice"):
        make_state(Entropy(), {"entropy": np.zeros((2, 1, 2))}, ["same", "same"], LABELS, rows=True)
