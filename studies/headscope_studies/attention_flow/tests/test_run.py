"""The texts of GAP and Winogender, as attention_flow/runs/attention_flow.py reads them."""

import pytest

from headscope.uncertainty.intervals import wilson_interval
from headscope_studies.attention_flow.runs import attention_flow

GAP = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\n"


@pytest.fixture(scope="module")
def script():
    return attention_flow


def read_masked_gap(script, folder, text, pronoun, first, second, *, answer=0):
    """The one example of a file of GAP; the pronoun is marked by < >."""
    plain, at = text.replace("<", "").replace(">", ""), text.index("<")
    true = ["TRUE" if number == answer else "FALSE" for number in (0, 1)]
    row = ["test-1", plain, pronoun, at, first, plain.index(first), true[0], second, plain.index(second), true[1]]
    (folder / "gap.tsv").write_text(GAP + "\t".join(map(str, row)) + "\n", encoding="utf-8")
    (example,) = script.read_masked_gap(folder / "gap.tsv")
    return example


def read_masked_winogender(script, folder, *rows):
    lines = ["sentid\tsentence", *("\t".join(row) for row in rows)]
    (folder / "all.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return script.read_masked_winogender(folder / "all.tsv")


def name_words(example):
    return [example.words[position] for position in example.columns["candidates"]]


@pytest.mark.parametrize(
    ("text", "pronoun", "first", "second", "words"),
    [
        ("Ann met Bea before <she> left.", "she", "Ann", "Bea", ["Ann", "Bea"]),
        ("The hero (Jason Scott Lee) met Danny in <his> town.", "his", "Jason Scott Lee", "Danny", ["(Jason", "Danny"]),
        ("Mae said ``Dunlap knew <her> well.", "her", "Mae", "Dunlap", ["Mae", "``Dunlap"]),
        ("In <his> film, Poe's aide --Burch/Roe-- won.", "his", "Poe", "Burch", ["Poe's", "--Burch/Roe--"]),
        ('Then <he>, (Joe) said, saw "Max.', "he", "Joe", "Max", ["(Joe)", '"Max.']),
    ],
)
def test_a_name_is_found_whatever_stands_before_it(script, tmp_path, text, pronoun, first, second, words):
    example = read_masked_gap(script, tmp_path, text, pronoun, first, second)
    assert name_words(example) == words
    assert example.words.count("{mask}") == 1
    assert f"{pronoun} " not in example.text


def test_a_name_at_the_beginning_of_a_sentence_is_found(script, tmp_path):
    rows = [
        ("plumber.someone.0.male.txt", "Someone called the plumber to get an estimate for his services."),
        ("plumber.someone.0.female.txt", "Someone called the plumber to get an estimate for her services."),
        ("technician.customer.1.male.txt", "The technician told the customer, that he could pay with cash."),
    ]
    examples = read_masked_winogender(script, tmp_path, *rows)
    assert [example.id for example in examples] == [rows[0][0], rows[2][0]]  # the genders are one text
    assert [name_words(example) for example in examples] == [["plumber", "Someone"], ["technician", "customer,"]]
    assert [example.columns["answer"] for example in examples] == [0, 1]


def test_a_sentence_whose_names_are_not_found_is_an_error(script, tmp_path):
    with pytest.raises(ValueError, match=r"plumber\.owner\.0\.male\.txt has no 'owner'"):
        read_masked_winogender(
            script, tmp_path, ("plumber.owner.0.male.txt", "The plumber met the owners of his house.")
        )


def test_the_nearest_name_is_counted_in_words_from_the_pronoun(script, tmp_path):
    texts = [
        ("Ann, long after Bea, said <she> left.", "Ann", "Bea", 1),  # the nearer
        ("Ann, long after Bea, said <she> left.", "Ann", "Bea", 0),  # the farther
        ("Ann said that <she> and (Bea) left.", "Ann", "Bea", 1),  # the nearer stands after it
        ("Ann said <she> and Bea left.", "Ann", "Bea", 0),  # as near as the other: neither is the nearest
    ]
    examples = [
        read_masked_gap(script, tmp_path, text, "she", first, second, answer=answer)
        for text, first, second, answer in texts
    ]
    counted = script.count_nearest(examples)
    assert counted["nearest"][1] == 0.5
    assert (counted["nearest_low"][1], counted["nearest_high"][1]) == pytest.approx(wilson_interval(2, 4))
