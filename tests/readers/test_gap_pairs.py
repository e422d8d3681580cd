"""The bundled pairs of GAP."""

import pytest

from headscope.core.errors import InputError
from headscope.data.bundled.gap import crop_to_sentences
from headscope.data.reading.read import read


@pytest.mark.parametrize(("split", "count"), [("development", 4000), ("validation", 908)])
def test_every_paragraph_gives_two_pairs(split, count):
    examples = read(f"gap_pairs:{split}")
    assert len(examples) == count
    assert len({example.id for example in examples}) == count
    assert {example.columns["label_name"] for example in examples} == {"no", "yes"}
    for first, second in zip(examples[::2], examples[1::2], strict=True):
        assert first.text == second.text
        assert not first.label == second.label == 1  # the pronoun means at most one of the names


def test_the_claim_quotes_the_pronoun_and_the_name():
    first = read("gap_pairs:development")[0]
    assert first.id == "development-1-A"
    assert first.pair == "In \"Simon's class. Dumped her boyfriend following Simon's\", her means Cheryl Cassidy."
    assert (first.label, first.columns["Pronoun"]) == (1, "her")
    assert first.text.startswith("Phoebe Thomas played Cheryl Cassidy")


def test_the_text_is_cropped_to_the_sentences_with_mentions():
    text = "It rained. Ann met Eve. She won! All went home."
    assert crop_to_sentences(text, [11, 24]) == "Ann met Eve. She won!"
    assert crop_to_sentences(text, [0, 40]) == text


def test_an_unknown_split_is_refused():
    with pytest.raises(InputError, match="split"):
        read("gap_pairs:test")
