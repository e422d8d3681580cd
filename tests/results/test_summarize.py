import numpy as np

from headscope.results.compare import compare
from headscope.results.select import select_variable
from headscope.results.summarize import axis_label, describe_mean, format_count, make_title, mean_over
from headscope.uncertainty.intervals import mean_interval
from tests.figures.data import measured


def test_with_rows_the_interval_of_a_mean_over_heads_is_exact():
    selected = select_variable(measured(), "entropy")
    means = mean_over(selected, ["head"])
    rows = measured()["entropy_rows"].isel(site=0).mean("head").values
    for part, expected in zip(("value", "low", "high"), mean_interval(rows), strict=True):
        np.testing.assert_allclose(means[part].values, expected, rtol=1e-12)


def test_without_rows_the_ends_of_the_intervals_are_averaged():
    selected = select_variable(measured(rows=False), "entropy")
    means = mean_over(selected, ["head"])
    np.testing.assert_allclose(means["low"], selected["low"].mean("head"))
    assert (means["n"] == 7).all()
    exact = mean_over(select_variable(measured(), "entropy"), ["head"])
    assert (means["high"] - means["low"] >= exact["high"] - exact["low"]).all()


def test_a_label_has_the_units_and_says_a_difference():
    data = measured()
    assert axis_label(data, "entropy") == "entropy (nats)"
    assert axis_label(data, "distance") == "attention distance (tokens)"
    assert axis_label(compare(data, measured(seed=1)), "entropy") == "difference in entropy (nats)"


def test_titles_and_notes_say_what_is_shown():
    selected = select_variable(measured(rows=False), "token_types", lens="raw", at=("type=noun",))
    assert make_title(selected, "by layer") == "raw · token types by layer · type noun"
    assert format_count(selected) == "n = 7"
    note = "Mean over 3 heads. Band: 95\N{NO-BREAK SPACE}% interval over examples (n = 7), at most this wide."
    assert describe_mean(selected, ["head"], "Band") == note
