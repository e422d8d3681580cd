"""Progress says how far a run is, and how long it takes."""

import pytest

from headscope.core import progress
from headscope.core.progress import show_progress


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand, where a line is printed every second."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "INTERVAL", 1.0)
    return now


def follow(clock, capsys, advances, total, **options):
    """Return what is printed while items are done, each after some seconds."""
    with show_progress(total, **options) as advance:
        for seconds, *amounts in advances:
            clock[0] += seconds
            advance(*amounts)
    return capsys.readouterr().err.splitlines()


def test_the_remaining_time_is_that_of_the_items_that_are_left(clock, capsys):
    lines = follow(clock, capsys, [(2, 10), (2, 10)], 60)
    assert lines == ["10 of 60 examples, 5/s, 10 s left", "20 of 60 examples, 5/s, 8 s left"]


def test_items_that_were_more_work_do_not_count_for_the_time_of_the_others(clock, capsys):
    """Ten long texts take as long as the thirty short ones after them."""
    (line,) = follow(clock, capsys, [(6, 10, 20.0)], 40)
    assert line == "10 of 40 examples, 1.67/s, 6 s left"


def test_what_was_done_before_a_run_was_resumed_took_no_time_of_it(clock, capsys):
    (line,) = follow(clock, capsys, [(5, 10)], 60, done=30)
    assert line == "40 of 60 examples, 2/s, 10 s left"


def test_without_a_number_of_all_no_remaining_time_is_guessed(clock, capsys):
    (line,) = follow(clock, capsys, [(2, 5000)], None, unit="rows counted")
    assert line == "5,000 rows counted, 2.5e+03/s, number of all not known yet"


def test_lines_of_json_have_a_total(monkeypatch, capsys):
    monkeypatch.setenv(progress.VARIABLE, "json")
    for total, lines in ((None, 0), (3, 2)):
        with show_progress(total) as advance:
            advance(3)
        assert capsys.readouterr().err.count('"progress": [') == lines
