"""The interval of a relative change takes into account that the raw value is a mean too."""

import numpy as np
import pytest
import xarray as xr

from headscope.experiments.summary import relative_changes, summarise
from headscope.uncertainty.intervals import mean_interval, relative_margin, student_margin


def summarised(raw, other):
    table = xr.DataArray(np.stack([raw, other], 1), dims=("example", "lens"), coords={"lens": ["raw", "other"]})
    return relative_changes(summarise("x", table, baseline="raw"), "x").sel(lens="other")


def test_the_margin_is_that_of_residuals():
    rng = np.random.default_rng(0)
    raw = rng.gamma(2.0, 0.1, 50)
    other = 0.3 * raw + rng.gamma(2.0, 0.05, 50)
    ratio = other.mean() / raw.mean()
    margin = student_margin((other - ratio * raw).std(ddof=1), np.float64(50)) / raw.mean()  # input by input
    found = summarised(raw, other)
    assert float(found["x_relative"]) == pytest.approx(ratio - 1)
    assert float(found["x_relative_high"] - found["x_relative"]) == pytest.approx(float(margin))
    assert float(found["x_relative"] - found["x_relative_low"]) == pytest.approx(float(margin))
    negative = summarised(-raw, -other)  # a part of the absolute raw value
    assert float(negative["x_relative"]) == pytest.approx(1 - ratio)


@pytest.mark.parametrize("slope", [0.2, 1.0, 3.0])
def test_intervals_hold_the_true_change_as_often_as_they_say(slope):
    rng = np.random.default_rng(1)
    raw = rng.gamma(4.0, 0.1, (2000, 100))
    other = slope * raw + rng.gamma(4.0, 0.02, raw.shape)
    true = (slope * 0.4 + 0.08) / 0.4 - 1
    means, margins = {}, {}
    for name, values in {"raw": raw, "other": other, "change": other - raw}.items():
        mean, _, high = mean_interval(values.T)
        means[name], margins[name] = mean, high - mean
    value = means["change"] / means["raw"]
    reach = relative_margin(means["raw"], means["change"], margins["raw"], margins["other"], margins["change"])
    assert 0.93 < np.mean(np.abs(value - true) <= reach) < 0.97
    if slope != 1.0:  # with the raw value taken as known they hold it too often
        assert np.mean(np.abs(value - true) <= margins["change"] / means["raw"]) > 0.98


def test_a_base_that_may_be_zero_has_no_relative_change():
    assert np.isnan(relative_margin(0.1, 0.2, 0.1, 0.1, 0.1))
    assert relative_margin(0.1, 0.0, 0.05, 0.05, 0.01) == pytest.approx(0.1)
