import numpy as np

from headscope_patterns.labels.labelled_maps import PatternMap, Source
from headscope_patterns.labels.render import darkness, draw_sheet, render_terminal


def make_map(weights):
    n = len(weights)
    tokens = ("[CLS]",) + ("a",) * (n - 1)
    return PatternMap(Source("x", "random", "raw", "m", "", 0, 0, "d", "t", tokens, (0,) * n), weights)


def test_a_line_shows_two_rows_and_small_maps_are_doubled():
    lines = render_terminal(make_map(np.eye(10)), 76).plain.splitlines()
    assert (len(lines), {len(line) for line in lines}) == (10, {20})


def test_a_long_map_is_downsampled_and_keeps_its_diagonal():
    text = render_terminal(make_map(np.eye(200)), 76)
    lines = text.plain.splitlines()
    assert (len(lines), {len(line) for line in lines}) == (38, {76})
    black = [span for span in text.spans if "rgb(0,0,0)" in str(span.style)]
    assert len(black) == 76  # one cell in each row


def test_a_uniform_map_is_light_and_a_column_is_black():
    assert darkness(np.full((50, 50), 0.02)).max() < 0.34
    column = np.zeros((50, 50))
    column[:, 3] = -1.0
    assert (darkness(column)[:, 3] == 1).all()


def test_a_sheet_shows_only_the_id_and_the_length():
    sheet = draw_sheet([make_map(np.eye(30))])
    titles = [ax.get_title() for ax in sheet.axes if ax.get_title()]
    assert titles == ["x   30 tokens, single text"]


def test_a_sheet_names_special_tokens_alike_whatever_the_model_calls_them():
    tokens = ("<s>", "a", "b", "</s>", "</s>", "c", "</s>")
    item = PatternMap(Source("x", "random", "raw", "m", "", 0, 0, "d", "t", tokens, (0,) * 7), np.eye(7))
    labels = [ax.get_xticklabels() for ax in draw_sheet([item]).axes if ax.images]
    assert [(label.get_position()[0], label.get_text()) for label in labels[0]] == [
        (0, "[CLS]"),
        (3, "[SEP]"),
        (6, "[SEP]"),
    ]
