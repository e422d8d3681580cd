"""Thresholds are data, in one table, and verdicts are shown against them."""

from collections import Counter
from dataclasses import replace

from headscope.experiments.claims import JudgedClaim, TaskVerdict, Threshold, judge, scale_thresholds
from headscope.experiments.thresholds import SCALES, count_scaled, draw_thresholds, threshold_table
from tests.experiments.test_claims import CLAIM, numbers


def judged():
    """Three claims with two thresholds, one of which does not apply."""
    half = replace(CLAIM, text="It halves.", threshold=Threshold("half", 0.5, "points", "one half", "2026-11-16"))
    moot = JudgedClaim(replace(CLAIM, text="It is moot."), (TaskVerdict("RTE", "does not apply", "no such token"),))
    return [judge(CLAIM, numbers(-0.2, -0.3)), judge(half, numbers(-0.2, -0.9)), moot]


def test_every_threshold_has_one_row_with_its_reason_and_date():
    frame = threshold_table([*judged(), *judged()])  # the claims of two models
    assert frame.index.tolist() == ["change", "half"]
    assert frame["value"].tolist() == ["10 % of the raw value", "50 points"]
    assert frame["claims"].tolist() == [2, 1]
    assert frame["why"].tolist() == ["a tenth", "one half"]
    assert set(frame["set on"]) == {"2026-11-16"}


def test_verdicts_are_counted_at_every_scale():
    assert count_scaled(judged(), 1.0) == {"holds": 1, "refuted by exactness": 1, "does not apply": 1}
    assert count_scaled(judged(), 0.25) == {"holds": 2, "does not apply": 1}
    assert count_scaled(judged(), 4.0) == {"not reproduced": 2, "does not apply": 1}
    for factor in SCALES:
        again = [task.verdict for claim in judged() for task in scale_thresholds(claim, factor).tasks]
        assert count_scaled(judged(), factor) == Counter(again)


def test_the_figure_has_a_line_for_each_verdict_that_occurs():
    figure = draw_thresholds(judged())
    (panel,) = figure.axes
    lines = {line.get_label(): line for line in panel.get_lines() if not line.get_label().startswith("_")}
    assert set(lines) == {"holds", "refuted by exactness", "not reproduced", "undecided"}
    for kind, line in lines.items():
        assert list(line.get_ydata()) == [count_scaled(judged(), factor)[kind] for factor in line.get_xdata()]
    assert [label.get_text() for label in panel.get_xticklabels()] == ["0.25×", "0.5×", "1×", "2×", "4×"]
