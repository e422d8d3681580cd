"""Templates of pages and reports look numbers up, and an unknown name is an error."""

import jinja2
import numpy as np
import pytest
import xarray as xr

from headscope.experiments.template import fill_template, format_interval


def test_a_name_without_a_value_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="'gain' is undefined"):
        fill_template("It gains {{ gain }}.")


def test_a_file_imports_sentences_from_a_file_beside_it(tmp_path):
    (tmp_path / "shared.md").write_text("{% macro gain() %}It gains {{ gained }}.{% endmacro %}", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text('{% import "shared.md" as shared with context %}\n{{ shared.gain() }}\n', encoding="utf-8")
    assert fill_template(page, gained=3) == "It gains 3.\n"


def test_an_interval_has_no_minus_before_zero_and_a_dash_where_nothing_is_known():
    data = xr.Dataset({"gain": -0.001, "gain_low": -0.2, "gain_high": 0.1})
    assert format_interval(data, "gain", ".1f") == "0.0 [−0.2, 0.1]"
    assert format_interval(xr.full_like(data, np.nan), "gain", ".1f") == "–"
    assert format_interval(data[["gain"]], "gain", "+.1f", -1000) == "+1.0"
