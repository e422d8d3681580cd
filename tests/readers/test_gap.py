"""The reader of GAP."""

import pytest

from headscope.core.errors import InputError
from headscope.data.reading.read import read

GAP = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL"
ROW = "d-1\tAnn told Eve that she won.\tshe\t18\tAnn\t0\tTRUE\tEve\t9\tFALSE\thttp://x"


def test_gap_columns_have_types(tmp_path):
    (tmp_path / "gap-validation.tsv").write_text(f"{GAP}\n{ROW}\n")
    (example,) = read(f"gap:validation@{tmp_path}")
    assert (example.id, example.text, example.label) == ("d-1", "Ann told Eve that she won.", None)
    assert dict(example.columns) == {
        "Pronoun": "she",
        "Pronoun-offset": 18,
        "A": "Ann",
        "A-offset": 0,
        "A-coref": True,
        "B": "Eve",
        "B-offset": 9,
        "B-coref": False,
        "URL": "http://x",
    }


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("\t18\t", "\tx\t", "the column 'Pronoun-offset' is 'x', but an integer is expected"),
        ("\t18\t", "\t17\t", r"the text has ' sh' at offset 17, not 'she' \(column 'Pronoun'\)"),
        ("TRUE", "yes", "the column 'A-coref' is 'yes', but TRUE or FALSE is expected"),
    ],
)
def test_the_error_for_a_malformed_gap_row_has_its_problem(tmp_path, old, new, problem):
    (tmp_path / "a.tsv").write_text(f"{GAP}\n{ROW.replace(old, new)}\n")
    with pytest.raises(InputError, match=rf"a\.tsv, line 2: {problem}"):
        read(f"gap@{tmp_path}/a.tsv")


def test_the_sample_is_from_gap():
    examples = read("sample")
    assert len(examples) == 100
    assert all(each.text[each.columns["B-offset"] :].startswith(each.columns["B"]) for each in examples)


def test_the_package_has_two_splits():
    assert len(read("gap:development")) == 2000
    validation = read("gap:validation")
    assert (len(validation), validation[0].columns["Pronoun-offset"]) == (454, 256)
    with pytest.raises(
        InputError, match=r"holds the splits development and validation of GAP, but got 'test'.*gap:test@PATH"
    ):
        read("gap:test")
