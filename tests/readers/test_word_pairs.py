"""Tables of word pairs."""

import pytest

from headscope.core.errors import DataWarning, InputError
from headscope.data.reading.read import read

HEADER = "text\tword_i\tword_j\trelation\n"


def write(tmp_path, *rows):
    path = tmp_path / "pairs.tsv"
    path.write_text(HEADER + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return f"word_pairs@{path}"


def test_rows_of_one_text_are_one_example(tmp_path):
    rows = [
        ("The cat sat .", "0", "cat", "det"),
        ("It slept .", "It", "1", "subject"),
        ("The cat sat .", "1", "2", "a:b"),
    ]
    cat, slept = read(write(tmp_path, *rows))
    assert (cat.text, cat.words) == ("The cat sat .", ("The", "cat", "sat", "."))
    assert cat.columns["word_pairs"] == ((0, 1, "det"), (1, 2, "a:b"))
    assert slept.columns["word_pairs"] == ((0, 1, "subject"),)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (("a b", "0", "2", "x"), "word_j is 2, but the text has the words 0 to 1"),
        (("a b", "c", "1", "x"), "word_i is 'c', which does not occur between the spaces of the text; give its number"),
        (("a b a", "a", "1", "x"), "word_i is 'a', which occurs 2 times"),
        (("a b", "0", "1", " "), "the relation is empty"),
        (("a b", "0", "1"), "it has 3 fields, but there are 4 columns"),
    ],
)
def test_a_row_that_names_no_pair_is_malformed(tmp_path, row, problem):
    source = write(tmp_path, ("It slept .", "0", "1", "subject"), row)
    with pytest.raises(InputError, match=f"line 3: {problem}"):
        read(source)
    with pytest.warns(DataWarning, match="skipped 1 of 2 rows"):
        assert [example.text for example in read(source, malformed="skip")] == ["It slept ."]


def test_a_table_without_the_columns_is_refused(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("text\tfirst\nA b\t0\n", encoding="utf-8")
    with pytest.raises(InputError, match="has no column 'word_i'"):
        read(f"word_pairs@{path}")
