"""The figure `cues`."""

import numpy as np
import pytest

from headscope.core.errors import InputError
from headscope.plotting.draw import draw
from headscope.reporting.report import report
from headscope.uncertainty.intervals import wilson_intervals
from tests.figures.data import cues, dataset


def find_dots(figure):
    lines = [line for line in figure.axes[0].lines if line.get_linestyle() == "None"]
    return {tuple(point) for line in lines for point in zip(line.get_xdata(), line.get_ydata(), strict=True)}


def test_it_is_the_default_figure_of_cues():
    data = cues()
    figure = draw(data)
    assert find_dots(figure) == set(zip(data["coverage"].values, data["productivity"].values, strict=True))
    assert figure.axes[0].get_title("left") == "Cues in choices"
    assert "3 cues in 200 examples" in figure.axes[0].get_xlabel()
    assert {text.get_text() for text in figure.axes[0].texts} == {"not", "is not", "can"}


def test_only_the_cues_with_the_largest_gain_are_labelled():
    assert [text.get_text() for text in draw(cues(), labels=1).axes[0].texts] == ["not"]


def test_dots_between_the_lines_have_chance_in_their_interval():
    low, high = (line for line in draw(cues()).axes[0].lines if line.get_linewidth() == 0.6)
    for edge, inwards in ((low, 0.002), (high, -0.002)):
        for share, rate in list(zip(edge.get_xdata(), edge.get_ydata(), strict=True))[60:]:
            total = share * 200
            inside = wilson_intervals((rate + inwards) * total, total)
            outside = wilson_intervals(np.clip(rate - inwards, 0, 1) * total, total)
            assert inside[0] <= 0.5 <= inside[1]
            assert not outside[0] <= 0.5 <= outside[1]


def test_of_several_classes_the_difference_to_chance_is_shown():
    data = cues(several=True)
    figure = draw(data)
    expected = (data["productivity"] - data["chance"]).values
    assert {y for _, y in find_dots(figure)} == set(expected)
    assert figure.axes[0].get_ylabel() == "productivity − chance"


def test_data_without_cues_are_an_error():
    with pytest.raises(InputError, match=r"These are no cues. Count them: hs.cues\(data\)"):
        draw(dataset("a b"), "cues")


def test_a_report_has_the_figure_and_the_ranked_table(tmp_path):
    page = report(cues(), tmp_path / "report").read_text(encoding="utf-8")
    assert "Cues to the label" in page
    assert "A cue applies if it is in exactly one of the choices" in page
    assert "Niven" in page
    assert "Not shown here" not in page
    table = (tmp_path / "report" / "tables" / "cues_ranked.csv").read_text(encoding="utf-8")
    assert table.splitlines()[0].startswith("cue,applies to,productivity")
    assert [line.partition(",")[0] for line in table.splitlines()[1:]] == ["not", "is not", "can"]
