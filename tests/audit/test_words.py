"""Words of many texts as integers."""

from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.audit.words import encode_texts, list_words, locate_words, normalize_text

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


ACCENTS = st.text(st.sampled_from("aes t'\u0301\u0323\u0327\u1100\u1161\u11a8\u0915\u093e\u212a."), max_size=10)


@settings(max_examples=200, deadline=None)
@given(ACCENTS | st.text(max_size=10))
def test_words_are_located_in_the_text_as_it_is_written(text):
    spans, words = locate_words(text), list_words(text)
    assert len(spans) == len(words)
    for (start, end), word in zip(spans, words, strict=True):
        assert 0 <= start < end <= len(text)
        assert word in normalize_text(text[start:end])
    starts = [start for start, _ in spans]
    assert starts == sorted(starts)


def test_an_accent_that_is_a_character_of_its_own_belongs_to_the_word():
    assert list_words("Cafe\u0301s") == list_words("caf\u00e9s") == ["caf\u00e9s"]
    assert locate_words("a cafe\u0301, s") == [(0, 1), (2, 7), (7, 8), (9, 10)]
    assert list_words("\u1112\u1161\u11ab") == ["\ud55c"]


def test_characters_that_no_file_can_hold_are_replaced():
    assert set(normalize_text("a\0\ud83d")) == {"a", "\ufffd"}
