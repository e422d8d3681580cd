"""Words of many texts as integers."""

from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.audit.words import encode_texts, list_words, normalize_text

PIECES = st.sampled_from(["J.", "No.", "no.", "5", "Smith", "don't", "U.S.", "e-mail", ":)", "(", "\u3000", "\n", "x."])
TEXT = st.lists(PIECES | st.text(max_size=4), max_size=6).map(" ".join) | st.text(max_size=20)


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXT, max_size=4))
def test_words_of_pieces_are_those_of_the_whole_text(texts):
    encoded = encode_texts(texts)
    for index, text in enumerate(texts):
        ids = encoded.ids[encoded.starts[index] : encoded.starts[index + 1]]
        assert [encoded.vocabulary[word] for word in ids] == list_words(text)


def test_letters_that_look_the_same_are_the_same():
    assert normalize_text("Caf\u00e9") == normalize_text("CAFE\u0301") == "caf\u00e9"
    assert list_words("don\u2019t") == list_words("Don't") == ["do", "n't"]


def test_characters_that_no_file_can_hold_are_replaced():
    assert set(normalize_text("a\0\ud83d")) == {"a", "\ufffd"}
