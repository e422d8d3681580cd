"""GAP with its pronouns left out."""

from collections import Counter

import pytest

from headscope.core.errors import InputError
from headscope.data.bundled.gap import find_sentences, read_gap_rows
from headscope.data.reading.read import read
from headscope.readers.gap_pronouns import SHORT


@pytest.mark.parametrize(("split", "count"), [("development", 2000), ("validation", 454)])
def test_every_paragraph_gives_one_text_and_half_of_the_pronouns_are_feminine(split, count):
    examples = read(f"gap_pronouns:{split}")
    assert len({example.id for example in examples}) == count
    assert Counter(example.columns["label_name"] for example in examples) == {
        "feminine": count // 2,
        "masculine": count // 2,
    }
    feminine = {"she", "her", "hers", "herself"}
    assert all((example.columns["Pronoun"].lower() in feminine) == (example.label == 0) for example in examples)


def test_the_pronoun_is_left_out_of_its_sentence_or_paragraph():
    rows = {row["ID"]: row for _, row in read_gap_rows("validation")}
    short = 0
    for example in read("gap_pronouns:validation"):
        row = rows[example.id]
        text, offset = row["Text"], int(row["Pronoun-offset"])
        start, end = find_sentences(text, [offset])
        alone = len(text[start:end].split()) <= SHORT
        before, after = (text[start:offset], text[offset:end]) if alone else (text[:offset], text[offset:])
        assert example.text == f"{before}_{after.removeprefix(row['Pronoun'])}".strip()
        short += alone
    assert 0.3 < short / len(rows) < 0.5  # both kinds are there


def test_a_sentence_is_found_by_an_offset():
    text = "It rained. She won! All went home."
    assert [text[slice(*find_sentences(text, [offset]))].strip() for offset in (0, 11, 30)] == [
        "It rained.",
        "She won!",
        "All went home.",
    ]


def test_an_unknown_split_is_refused():
    with pytest.raises(InputError, match="split"):
        read("gap_pronouns:test")
