"""The reader of Winogender."""

import pytest

from headscope.core.errors import InputError
from headscope.data.reading.read import read
from tests.readers.shared import DATA, real

LINE = "technician.customer.1.male.txt\tThe technician told the customer that he could pay with cash."


def test_the_package_has_all_sentences():
    examples = read("winogender")
    assert len(examples) == 720
    assert len({example.columns["document"] for example in examples}) == 60
    first = examples[0]
    assert (first.id, first.words[6]) == ("technician.customer.1.male.txt", "he")
    assert {name: first.columns[name] for name in ("mentions", "mention_heads", "anaphors", "referent", "gender")} == {
        "mentions": ((6, 6, "customer", "person"), (1, 1, "technician", "person"), (4, 4, "customer", "person")),
        "mention_heads": (6, 1, 4),
        "anaphors": (0,),
        "referent": "customer",
        "gender": "male",
    }


def test_every_mention_is_the_word_that_it_names():
    for example in read("winogender"):
        pronoun, occupation, participant = (example.words[head].lower() for head in example.columns["mention_heads"])
        assert (occupation, participant) == (example.columns["occupation"], example.columns["participant"])
        assert pronoun in {"he", "she", "they", "him", "her", "them", "his", "their"}


def test_sentences_of_one_gender_are_a_third():
    assert [len(read(f"winogender:{gender}")) for gender in ("male", "female", "neutral")] == [240] * 3


def test_a_file_or_its_folder_is_read(tmp_path):
    (tmp_path / "all_sentences.tsv").write_text(f"sentid\tsentence\n{LINE}\n")
    for path in (tmp_path, tmp_path / "all_sentences.tsv"):
        assert [example.id for example in read(f"winogender@{path}")] == ["technician.customer.1.male.txt"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (".1.male", ".2.male", "the column 'sentid' is 'technician.customer.2.male.txt', but OCCUPATION"),
        ("the customer", "someone", "the sentence has 0 words of customer, but 1 is expected"),
        ("that he", "that she", "the sentence has 0 words of he, him, his, but 1 is expected"),
    ],
)
def test_the_error_for_a_malformed_sentence_has_its_problem(tmp_path, old, new, problem):
    (tmp_path / "a.tsv").write_text(f"sentid\tsentence\n{LINE.replace(old, new)}\n")
    with pytest.raises(InputError, match=rf"a\.tsv, line 2: {problem}"):
        read(f"winogender@{tmp_path}/a.tsv")


@real
def test_the_sentences_of_the_package_are_the_original_ones():
    original = read(f"winogender@{DATA / 'coreference' / 'winogender'}")
    assert [example.text for example in original] == [example.text for example in read("winogender")]
