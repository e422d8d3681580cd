"""Words and sentences, split as in the treebanks."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.data.tokenizing.words import split_sentences, split_words
from tests.readers.shared import DATA, real

TREEBANK = DATA / "treebank"


def words(text):
    return [text[start:end] for start, end in split_words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat sat.", "The|cat|sat|."),
        ("I don't, can't and won’t.", "I|do|n't|,|ca|n't|and|wo|n’t|."),
        ("She's sure they're Kim's; I'd've left.", "She|'s|sure|they|'re|Kim|'s|;|I|'d|'ve|left|."),
        ("You cannot; gonna dont wanna.", "You|can|not|;|gon|na|do|nt|wan|na|."),
        ("a well-known, state-of-the-art e-mail", "a|well|-|known|,|state|-|of|-|the|-|art|e-mail"),
        (
            "Mr. Fox of the U.S. met Dr. J. Smith, e.g. at Inc. dinners.",
            "Mr.|Fox|of|the|U.S.|met|Dr.|J.|Smith|,|e.g.|at|Inc.|dinners|.",
        ),
        (
            "See https://a.org/b?c=d, www.x.com or me@mail.example.com.",
            "See|https://a.org/b?c=d|,|www.x.com|or|me@mail.example.com|.",
        ),
        ("$3.50, 1,000,000 (5%) at 5:30pm on 12/25/2001", "$|3.50|,|1,000,000|(|5|%|)|at|5:30|pm|on|12/25/2001"),
        ("the 1990s, 3rd, 555-1234", "the|1990s|,|3rd|,|555-1234"),
        ("Great :) so ;-) good <3 :D", "Great|:)|so|;-)|good|<3|:D"),
        ('He said: "Wait... what?!" --no', 'He|said|:|"|Wait|...|what|?!|"|--|no'),
        ("O'Hara's AT&T and/or C3PO", "O'Hara|'s|AT&T|and|/|or|C3PO"),
        ("it 's n't -lrb- already split", "it|'s|n't|-|lrb|-|already|split"),
        ("naïve café — “quoted” 東京", "naïve|café|—|“|quoted|”|東京"),
        ("  \n", ""),
    ],
)
def test_words_are_split_as_in_a_treebank(text, expected):
    assert "|".join(words(text)) == expected


@given(st.text(max_size=60))
def test_words_contain_every_character_once_and_in_order(text):
    spans = split_words(text)
    assert "".join(words(text)) == "".join(text.split())
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_sentences_end_after_closing_quotes():
    text = "He ran . “ Stop ! ” She said ... why ? ! No".split()
    assert [" ".join(text[start:end]) for start, end in split_sentences(text)] == [
        "He ran .",
        "“ Stop ! ”",
        "She said ... why ? !",
        "No",
    ]
    assert split_sentences([]) == []


def spans_of(text, forms):
    end = 0
    for form in forms:
        start = text.index(form, end)
        end = start + len(form)
        yield start, end


@real
@pytest.mark.parametrize(("name", "minimum"), [("en_ewt-dev.conllu", 0.985), ("en_gum-dev.conllu", 0.995)])
def test_words_agree_with_real_treebanks(name, minimum):
    both = total = 0
    for block in (TREEBANK / name).read_text(encoding="utf-8").strip().split("\n\n"):
        text = next(line[9:] for line in block.split("\n") if line.startswith("# text = "))
        rows = [line.split("\t") for line in block.split("\n") if line[0] != "#"]
        gold = set(spans_of(text, [row[1] for row in rows if row[0].isdigit()]))
        words = set(split_words(text))
        both, total = both + 2 * len(gold & words), total + len(gold) + len(words)
    assert both / total >= minimum
