"""Plain text, CSV, TSV, JSON Lines and Parquet."""

import csv
import json

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headscope.core.errors import InputError, MissingExtra
from headscope.data.reading.read import read

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)
ROWS = st.lists(st.tuples(TEXTS, st.integers(-9, 9)), min_size=1, max_size=5)
few = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def texts(source):
    return [example.text for example in read(source)]


def test_every_non_empty_line_is_an_example(tmp_path):
    (tmp_path / "a.txt").write_text(" One.\n\n\tTwo.  \n   \nThree.")
    assert texts(tmp_path / "a.txt") == ["One.", "Two.", "Three."]
    assert [example.id for example in read(tmp_path / "a.txt")] == ["0", "1", "2"]


def test_text_can_be_read_by_paragraph_or_by_file(tmp_path):
    (tmp_path / "a.txt").write_text("\nOne\n goes on.\n\n\nTwo.\n")
    assert texts(f"text:unit=paragraph@{tmp_path}/a.txt") == ["One goes on.", "Two."]
    assert texts(f"text:file@{tmp_path}/a.txt") == ["One\n goes on.\n\n\nTwo."]


def test_only_a_line_feed_ends_a_line(tmp_path):
    (tmp_path / "a.txt").write_bytes("one\u2028still\x85one\r\ntwo".encode())
    assert texts(tmp_path / "a.txt") == ["one\u2028still\x85one", "two"]


def test_a_byte_order_mark_is_ignored(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbftext\nOne.\n")
    assert texts(tmp_path / "a.csv") == ["One."]


def test_quoted_fields_can_contain_commas_quotation_marks_and_line_ends(tmp_path):
    (tmp_path / "a.csv").write_text('text,label\n"He said ""no"", and\nleft.",1\n\nYes.,0\n')
    first, second = read(tmp_path / "a.csv")
    assert (first.text, first.label) == ('He said "no", and\nleft.', 1)
    assert (second.id, second.text) == ("1", "Yes.")


@pytest.mark.parametrize(("name", "sign"), [("semicolon", ";"), ("tab", "\t"), ("pipe", "|")])
def test_other_delimiters_have_names(tmp_path, name, sign):
    (tmp_path / "a.csv").write_text(f'text{sign}label\n"a{sign}b"{sign}2\n')
    (example,) = read(f"csv:delimiter={name}@{tmp_path}/a.csv")
    assert (example.text, example.label) == (f"a{sign}b", 2)
    with pytest.raises(InputError, match=f"has one column, .* Write 'csv:delimiter={name}@"):
        read(tmp_path / "a.csv")


def test_an_unknown_delimiter_is_refused(tmp_path):
    with pytest.raises(InputError, match="must be comma, semicolon, tab or pipe, but got 'dot'"):
        read(f"csv:dot@{tmp_path}/a.csv")


@pytest.mark.parametrize(("form", "sign"), [("csv", ","), ("tsv", "\t")])
def test_columns_without_a_header_are_numbered(tmp_path, form, sign):
    (tmp_path / "a").write_text(f"1{sign}One.\n0{sign}Two.\n")
    examples = read(f"{form}:header=false@{tmp_path}/a", text="2", label="1")
    assert [(example.text, example.label) for example in examples] == [("One.", 1), ("Two.", 0)]


def test_tab_separated_values_have_no_quoting(tmp_path):
    (tmp_path / "a.tsv").write_text('sentence\tlabel\n"Quoted\t1\nit\'s "so" \t0\n')
    assert texts(tmp_path / "a.tsv") == ['"Quoted', 'it\'s "so" ']


@few
@given(ROWS)
def test_csv_round_trip(tmp_path, rows):
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    assert [(example.text, example.label) for example in read(tmp_path / "a.csv")] == rows


@few
@given(ROWS, st.booleans())
def test_json_lines_round_trip(tmp_path, rows, ascii_only):
    lines = [json.dumps({"text": text, "label": label, "n": [label]}, ensure_ascii=ascii_only) for text, label in rows]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    examples = read(tmp_path / "a.jsonl")
    assert [(example.text, example.label, example.columns["n"]) for example in examples] == [
        (a, b, (b,)) for a, b in rows
    ]


def parquet(path, **columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=2)
    return path


def test_parquet_keeps_lists_numbers_and_nulls(tmp_path):
    path = parquet(
        tmp_path / "a.parquet",
        tokens=[["a", "b"], ["c"], ["d"]],
        tags=[["X", "Y"], ["Z"], ["W"]],
        label=[1, 0, None],
        score=[0.5, None, 1.0],
    )
    first, second, third = read(path)
    assert (first.words, first.text, first.label) == (("a", "b"), "a b", 1)
    assert dict(first.columns) == {"tags": ("X", "Y"), "score": 0.5}
    assert second.columns["score"] is None
    assert third.label is None


def test_a_truncated_parquet_file_is_refused(tmp_path):
    path = parquet(tmp_path / "a.parquet", text=["One."])
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(
        InputError, match=r"a\.parquet is not a complete Parquet file: .*\. Was it written completely\?"
    ):
        read(path)


def test_without_pyarrow_the_error_names_the_pip_command(tmp_path, monkeypatch):
    path = parquet(tmp_path / "a.parquet", text=["One."])
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtra, match=r"needs the package pyarrow, .* pip install 'headscope\[parquet\]'"):
        read(path)
