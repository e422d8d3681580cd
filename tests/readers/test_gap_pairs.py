"""GAP as pairs, which come with the package."""

import pytest

from headscope.core.errors import InputError
from headscope.data.reading.read import read
from headscope.readers.gap_pairs import sentences


@pytest.mark.parametrize(("split", "many"), [("development", 4000), ("validation", 908)])
def test_every_paragraph_makes_two_pairs(split, many):
    found = read(f"gap_pairs:{split}")
    assert len(found) == many
    assert len({each.id for each in found}) == many
    assert {each.columns["label_name"] for each in found} == {"no", "yes"}
    for one, other in zip(found[::2], found[1::2], strict=True):
        assert one.text == other.text
        assert not one.label == other.label == 1  # the pronoun means one of the names, or neither


def test_a_pair_says_which_pronoun_and_which_name():
    first = read("gap_pairs:development")[0]
    assert first.id == "development-1-A"
    assert first.pair == "In \"Simon's class. Dumped her boyfriend following Simon's\", her means Cheryl Cassidy."
    assert (first.label, first.columns["Pronoun"]) == (1, "her")
    assert first.text.startswith("Phoebe Thomas played Cheryl Cassidy")


def test_a_text_is_cut_to_the_sentences_that_matter():
    text = "It rained. Ann met Eve. She won! All went home."
    assert sentences(text, [11, 24]) == "Ann met Eve. She won!"
    assert sentences(text, [0, 40]) == text


def test_a_split_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="split"):
        read("gap_pairs:test")
