import pytest
from matplotlib.font_manager import fontManager

from headscope.plotting import fonts
from headscope.plotting.fonts import browser_fonts, font_families, to_label


def test_every_font_of_the_list_is_installed():
    assert set(font_families()) <= {font.name for font in fontManager.ttflist}
    assert font_families()[0] == "DejaVu Sans"


@pytest.mark.parametrize("token", ["##ing", "·the", "$x_1$", "שלום", "العربية", "naïve", "x" * 24])
def test_a_drawable_token_is_unchanged(token):
    assert to_label(token) == token


def test_a_long_token_is_shortened():
    assert to_label("x" * 25) == "x" * 23 + "…"


def test_line_breaks_and_control_characters_are_made_visible():
    assert to_label("a\nb\tc\rd\x00") == "a⏎b⇥c↵dU+0000"


def test_a_character_without_a_glyph_is_its_code_point(monkeypatch):
    monkeypatch.setattr(fonts, "_glyphs", lambda: frozenset(range(128)))
    assert to_label("中(1/3)") == "U+4E2D(1/3)"
    assert to_label("中" * 9) == "U+4E2D" * 3 + "…"
    with browser_fonts():
        assert to_label("中(1/3)") == "中(1/3)"


def test_a_lone_surrogate_is_its_code_point_even_in_a_browser():
    with browser_fonts():
        assert to_label("\ud83d") == "U+D83D"


def test_a_wider_word_is_wider():
    assert 0 < fonts.label_width(["i"]) < fonts.label_width(["i", "wide"])
