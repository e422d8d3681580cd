"""The figure of shaded words."""

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from headscope.core.errors import InputError, UnknownName
from headscope.plotting import theme
from headscope.plotting.draw import draw
from headscope.plotting.running_text import break_lines, choose_scale, find_colours, read_texts
from headscope.plotting.selection import select_example
from tests.figures.data import dataset, importances
from tests.figures.layout import find_faults
from tests.figures.test_layout import make_text

TEXT = "[CLS] the cat did ##n ' t sit , it slept [SEP]"


def shades(ax):
    return [patch for patch in ax.patches if isinstance(patch, Rectangle)]


def test_every_token_with_a_score_has_a_shade_and_the_text_is_complete():
    data = importances(TEXT)
    ax = draw(data).axes[0]
    assert len(shades(ax)) == int(np.isfinite(data["importance"]).sum())
    drawn = [text.get_text() for text in ax.texts]
    assert drawn[:12] == TEXT.replace("##", "").split(" ")


def test_the_largest_score_is_the_darkest_and_signs_have_colours():
    data = importances(TEXT)
    scores = data["importance"].values[0]
    (text,) = read_texts(data)
    scale, numbers, _ = choose_scale([text])
    colours = find_colours(scale, numbers[0])
    assert colours[0] is None
    largest = int(np.nanargmax(np.abs(scores)))
    luminances = [theme.luminance(pair[0]) if pair else 1.0 for pair in colours]
    assert luminances[largest] == min(luminances)
    for score, pair in zip(scores, colours, strict=True):
        if pair is not None and abs(score) > 0.05 * abs(scores[largest]):
            red, _, blue = to_rgb(pair[0])
            assert (blue > red) == (score > 0)


def test_negative_scores_are_underlined():
    data = importances(TEXT)
    scores = data["importance"].values[0]
    ax = draw(data).axes[0]
    rules = [line for line in ax.lines if isinstance(line, Line2D)]
    assert len(rules) == int((scores < -0.05 * np.nanmax(np.abs(scores))).sum()) > 0
    assert any("Underlined: negative" in text.get_text() for text in ax.texts)
    positive = draw(importances(TEXT, signed=False)).axes[0]
    assert not positive.lines
    assert not any("Underlined" in text.get_text() for text in positive.texts)


def test_white_text_is_only_on_dark_shades():
    data = importances(TEXT)
    ax = draw(data).axes[0]
    for patch, text in zip(shades(ax), [part for part in ax.texts if part.get_color() != theme.quiet], strict=False):
        assert to_hex(text.get_color()) == to_hex(theme.text_colour(patch.get_facecolor()[:3]))


def test_methods_are_below_one_another_and_each_has_its_own_units():
    parts = [importances(TEXT), importances(TEXT, method="input_gradient", signed=False, scale=1e-6)]
    figure = draw(parts)
    drawn = [text.get_text() for text in figure.axes[0].texts]
    largest = [float(abs(part["importance"]).max()) for part in parts]
    for name, number in zip(("blank_out", "input_gradient"), largest, strict=True):
        assert f"{name} · positive 0.93 · largest {number:.2g}" in drawn
    assert len(shades(figure.axes[0])) == 2 * 10
    _, numbers, label = choose_scale([read_texts(part)[0] for part in parts])
    assert label == "score ÷ largest of the text"
    assert np.nanmax(np.abs(numbers[1])) == 1.0
    named = draw({"mine": parts[0], "theirs": parts[1]})
    assert f"mine · positive 0.93 · largest {largest[0]:.2g}" in [text.get_text() for text in named.axes[0].texts]


def test_texts_of_one_method_share_a_scale():
    parts = [importances(TEXT, example="a"), importances("the cat sat", example="b", scale=0.1)]
    figure = draw(parts)
    drawn = [text.get_text() for text in figure.axes[0].texts]
    assert {"a · positive 0.93", "b · positive 0.93"} <= set(drawn)
    _, numbers, label = choose_scale([read_texts(part)[0] for part in parts])
    assert label == "change of the score"
    np.testing.assert_array_equal(numbers[1], parts[1]["importance"].values[0])


def test_texts_of_different_targets_have_scales_of_their_own():
    first = importances(TEXT)
    logits = importances(TEXT, scale=50).assign_coords(target=("method", ["label:score=logit"]))
    _, numbers, label = choose_scale([read_texts(part)[0] for part in (first, logits)])
    assert label == "score ÷ largest of the text"
    assert np.nanmax(np.abs(numbers[0])) == 1.0
    drawn = [text.get_text() for text in draw([first, logits]).axes[0].texts]
    assert any(text.startswith("blank_out · label:score=logit · positive 0.93 · largest") for text in drawn)


def test_a_note_says_which_of_several_texts_is_drawn():
    single = importances("the cat sat")
    whole = single.expand_dims(example=["0", "1"], axis=1).drop_vars("text").assign_coords(count=("example", [3, 2]))
    tokens = ("piece", "special", "token_text", "word")
    whole = whole.assign_coords({name: (("example", "token"), np.stack([single[name].values] * 2)) for name in tokens})
    for example, sentence in ((1, "Text 2 of 2 (example=1)."), (0, "Text 1 of 2 (example=0).")):
        figure = draw(whole, example=example)
        assert any(sentence in text.get_text() for text in figure.axes[0].texts)
        assert find_faults(figure) == []
    assert not any("Text 1" in text.get_text() for text in draw(single).axes[0].texts)


@pytest.mark.parametrize("width", [3.3, 6.9])
@pytest.mark.parametrize("count", [1, 3])
def test_several_long_texts_are_readable(width, count):
    parts = [importances(make_text(120), example=str(index)) for index in range(count)]
    assert find_faults(draw(parts, size=width)) == []


def test_of_a_very_long_text_the_first_tokens_are_shown_and_a_note_says_so():
    figure = draw(importances(make_text(2200)), size=3.3)
    assert find_faults(figure) == []
    assert figure.get_figheight() <= theme.PAGE[1] + 1e-6
    notes = [text.get_text() for text in figure.axes[0].texts if "tokens are shown" in text.get_text()]
    assert len(notes) == 1
    assert "of 2200 tokens are shown." in notes[0].replace("\n", " ")


def test_a_method_can_be_chosen():
    parts = [importances(TEXT), importances(TEXT, method="input_gradient")]
    assert len(shades(draw(parts, "words", method="input_gradient").axes[0])) == 10
    with pytest.raises(UnknownName, match="No method in this data is called 'blankout'"):
        draw(parts, "words", method="blankout")


def test_other_data_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="This figure needs the variable 'importance'"):
        draw(dataset(), "words")
    with pytest.raises(InputError, match="Maps and importances cannot be put together"):
        draw([dataset(), importances(TEXT)])


def test_a_text_without_any_change_is_drawn():
    data = importances(TEXT)
    zeros = data.assign(importance=data["importance"] * 0)
    assert find_faults(draw(zeros)) == []
    nothing = data.assign(importance=data["importance"] * np.nan)
    assert find_faults(draw(nothing)) == []


def test_lines_break_between_words_only():
    placed = break_lines(("The", " un", "believ", "able", " cat", ","), 0.12)
    lines = {piece.index: piece.line for piece in placed}
    assert lines[1] == lines[2] == lines[3] > lines[0]
    assert lines[4] == lines[5]
    assert all(piece.left + piece.width <= 0.12 + 1e-9 for piece in placed)


def test_one_example_of_several_is_selected():
    single = importances("the cat sat")
    whole = single.expand_dims(example=["0", "1"], axis=1).drop_vars("text").assign_coords(count=("example", [3, 2]))
    tokens = ("piece", "special", "token_text", "word")
    whole = whole.assign_coords({name: (("example", "token"), np.stack([single[name].values] * 2)) for name in tokens})
    assert select_example(whole, 1).sizes["token"] == 2
    with pytest.raises(InputError, match="There is no example 2: these importances hold 2"):
        select_example(whole, 2)
