"""A map in letters has the map's shape."""

import numpy as np

from headscope.patterns.labels.in_letters import in_letters
from headscope.patterns.labels.labelled import PatternMap, Source
from headscope.patterns.labels.sheet import blackness, sheet


def pattern_map(weights):
    n = len(weights)
    return PatternMap(
        Source("x", "random", "raw", "m", "", 0, 0, "d", "t", ("[CLS]",) + ("a",) * (n - 1), (0,) * n), weights
    )


def test_two_rows_share_a_line_and_small_maps_are_drawn_twice_as_large():
    lines = in_letters(pattern_map(np.eye(10)), 76).plain.splitlines()
    assert (len(lines), {len(line) for line in lines}) == (10, {20})


def test_a_long_map_fits_and_keeps_its_diagonal():
    drawn = in_letters(pattern_map(np.eye(200)), 76)
    lines = drawn.plain.splitlines()
    assert (len(lines), {len(line) for line in lines}) == (38, {76})
    dark = [span for span in drawn.spans if "rgb(0,0,0)" in str(span.style)]
    assert len(dark) == 76  # one cell in each row


def test_an_even_map_is_light_and_a_column_is_black():
    assert blackness(np.full((50, 50), 0.02)).max() < 0.34
    column = np.zeros((50, 50))
    column[:, 3] = -1.0
    assert (blackness(column)[:, 3] == 1).all()


def test_a_sheet_tells_nothing_but_the_id_and_the_length():
    drawn = sheet([pattern_map(np.eye(30))])
    titles = [ax.get_title() for ax in drawn.axes if ax.get_title()]
    assert titles == ["x   30 tokens, single text"]
