"""Malformed rows: the error has file, line and problem; by option they are skipped and counted."""

import warnings

import pytest

from headscope.core.errors import DataWarning, InputError
from headscope.data.reading.read import read

GOOD = {"csv": b"id,text,label\na,One.,1\n", "tsv": b"id\ttext\tlabel\na\tOne.\t1\n", "txt": b"One.\n"}
GOOD["jsonl"] = b'{"id": "a", "text": "One.", "label": 1}\n'

ENCODING = "name the encoding of the file, such as encoding='cp1252', in the shell --encoding cp1252"
ROWS = [  # ending, the row, what is wrong with it
    ("csv", b"b,Two.", "it has 2 fields, but there are 3 columns"),
    ("tsv", b"b\tTwo.\t1\t1", "it has 4 fields, but there are 3 columns"),
    ("csv", b"b,  ,1", "the text (column 'text') is empty"),
    ("csv", b"b,Two.,one", "the label 'one' is a name, but that of line 2 is a number"),
    ("csv", b",Two.,1", "the id (column 'id') is empty"),
    ("csv", b"a,Two.,1", "the id 'a' is already that of line 2; to number the rows instead: id='row'"),
    ("csv", b'b,"Two" and,1', "its quoting is broken: ',' expected after '\"'"),
    (
        "csv",
        b'b,"Two,1',
        "a quotation mark that opens here is never closed, so that the rest of the file is one field",
    ),
    ("csv", b"b,Tw\xf6.,1", f"byte 5 of the line, 0xF6, is not UTF-8; {ENCODING}"),
    ("tsv", b"b\tTw\xf6.\t1", f"byte 5 of the line, 0xF6, is not UTF-8; {ENCODING}"),
    ("txt", b"\xff\xff", f"byte 1 of the line, 0xFF, is not UTF-8; {ENCODING}"),
    ("txt", b"Tw\0o", "byte 3 of the line is 0x00, which is no text"),
    ("jsonl", b'{"id": "b", "text": "Tw', "it is not JSON: Unterminated string starting at (character 21)"),
    ("jsonl", b'["b", "Two.", 1]', "it is a list, but an object {…} is expected"),
    ("jsonl", b'"Two."', "it is the text 'Two.', but an object {…} is expected"),
    (
        "jsonl",
        b'{"id": "b", "text": 2, "label": 1}',
        "the text (column 'text') is the number 2, but a text is expected",
    ),
    ("jsonl", b'{"id": "b", "label": 1}', "there is no column 'text'. Columns: id and label"),
    (
        "jsonl",
        b'{"id": "b", "text": "Two.", "label": NaN}',
        "the label (column 'label') is nan, which is not finite",
    ),
    (
        "jsonl",
        b'{"id": "b", "text": "Two.", "label": [1]}',
        "the label (column 'label') is a list, but a number or a name is expected",
    ),
    (
        "jsonl",
        b'{"id": 1.5, "text": "Two.", "label": 1}',
        "the id (column 'id') is the number 1.5, but a text or an integer is expected",
    ),
    (
        "jsonl",
        b'{"id": "b", "text": "Tw\\ud800", "label": 1}',
        "the text (column 'text') holds U+D800, a lone surrogate",
    ),
    (
        "jsonl",
        b'{"id": "b", "text": "Two.", "label": 1, "pair": "Zwei."}',
        "its pair would be the column 'pair', but in the first row it is missing; name it: pair='pair'",
    ),
]


@pytest.mark.parametrize(("ending", "row", "problem"), ROWS, ids=[f"{row[0]}: {row[2][:50]}" for row in ROWS])
def test_the_error_for_a_malformed_row_has_file_line_and_problem(tmp_path, ending, row, problem):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(GOOD[ending] + row)
    line = (GOOD[ending] + row).count(b"\n") + 1
    with pytest.raises(InputError) as error:
        read(path)
    assert str(error.value) == (
        f"{path}, line {line}: {problem}. Correct it, or skip and count such rows: hs.read(…, malformed='skip'), "
        "in the shell --malformed skip."
    )
    with pytest.warns(DataWarning) as warned:
        assert [example.text for example in read(path, malformed="skip")] == ["One."]
    assert str(warned[0].message) == f"skipped 1 of 2 rows of {path}: line {line}: {problem}."


@pytest.mark.parametrize(
    ("row", "columns", "problem"),
    [
        ({"words": "one two".split(), "tags": ["X"]}, {}, "there are 1 tags for 2 words"),
        ({"words": []}, {}, "the words (column 'words') are 0, but at least 1 must be given"),
        ({"words": ["a", 3]}, {}, "word 1 of the words (column 'words') is the number 3, but a text is expected"),
        ({"w": 3}, {"words": "w"}, "the words (column 'w') are the number 3, but a list of words is expected"),
        ({"text": "a", "c": ["x"]}, {"choices": "c"}, "the choices (column 'c') are 1, but at least 2 must be given"),
        ({"text": "a", "c": "x"}, {"choices": "c"}, "the choices (column 'c') are the text 'x', but a list of texts"),
        (
            {"text": "a", "c": " ", "d": "x"},
            {"choices": ("c", "d")},
            "choice 0 of the choices (columns c and d) is empty",
        ),
        ({"text": "a", "pair": ""}, {}, "the second text (column 'pair') is empty"),
        ({"text": {}}, {}, "the text (column 'text') is an object, but a text is expected"),
        (("a", 1), {}, "('a', 1) is neither a text nor a pair of texts nor a dict of columns"),
        (None, {}, "None is neither a text nor a pair of texts nor a dict of columns"),
    ],
)
def test_the_error_for_a_malformed_item_of_a_list_has_its_row(row, columns, problem):
    with pytest.raises(InputError) as error:
        read([row], **columns)
    assert str(error.value).startswith(f"the list, row 0: {problem}")


def test_skipped_rows_are_counted_and_the_first_three_shown(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n" * 4 + '{"text": "One."}\n' * 1000)
    with pytest.warns(DataWarning, match=r"skipped 4 of 1,004 rows of .*: line 1: .*; line 2: .*; line 3: .*; …\.$"):
        examples = read(path, malformed="skip")
    assert (len(examples), examples[0].id) == (1000, "4")  # ids do not depend on skipped rows


def test_there_is_no_warning_if_nothing_is_skipped(tmp_path):
    (tmp_path / "a.txt").write_text("One.")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(tmp_path / "a.txt", malformed="skip")) == 1


def test_skipping_all_rows_is_an_error(tmp_path):
    (tmp_path / "a.jsonl").write_text("1\n2\n")
    with pytest.raises(
        InputError, match=r"no examples in .*a\.jsonl: none of its 2 rows can be read: line 1: it is the n"
    ):
        read(tmp_path / "a.jsonl", malformed="skip")


def test_the_line_of_a_row_is_its_first(tmp_path):
    (tmp_path / "a.csv").write_text('text,label\n"One\ntwo\nthree.",1\n"Four\nfive."\n')
    with pytest.raises(InputError, match=r"a\.csv, line 5: it has 1 field, but there are 2 columns"):
        read(tmp_path / "a.csv")


def test_the_error_for_an_open_quotation_mark_counts_the_lines(tmp_path):
    (tmp_path / "a.csv").write_text('text\nOne.\n"Two.\n' + "Three.\n" * 5)
    with pytest.warns(DataWarning, match=r"line 3: a quotation mark .* the rest of the file \(6 lines\) is one field"):
        assert len(read(tmp_path / "a.csv", malformed="skip")) == 1


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.csv", b"", "a.csv is empty. Was it written completely?"),
        ("a.txt", b" \n\n", "There are no examples in {}: it has no rows."),
        ("a.csv", b"\n\n", "{} has only empty lines. Was it written completely?"),
        ("a.csv", b"text,label\n", "There are no examples in {}: it has no rows."),
        ("a.tsv", b"text\ttext\n", "{}, line 1: the header has the column 'text' twice. Rename one of them."),
        ("a.tsv", b"\ntext\n", "{}, line 1: it is empty. The first line must name the columns."),
        (
            "a.csv",
            b"\xff,text\n",
            f"{{}}, line 1: byte 1 of the line, 0xFF, is not UTF-8; {ENCODING}. The first row must name the columns.",
        ),
        (
            "a.txt",
            "One.".encode("utf-16"),
            "{} is UTF-16, but UTF-8 is expected. Give encoding='utf-16', in the shell --encoding utf-16.",
        ),
    ],
)
def test_a_file_without_rows_is_an_error_with_either_option(tmp_path, name, content, text):
    path = tmp_path / name
    path.write_bytes(content)
    for option in ("error", "skip"):
        with pytest.raises(InputError) as error:
            read(path, malformed=option)
        assert str(error.value).endswith(text.format(path))
    with pytest.raises(InputError, match="There are no examples in the list: it has no rows"):
        read([])


def test_the_error_for_a_long_field_says_how_to_raise_the_limit(tmp_path):
    (tmp_path / "a.csv").write_text("text\n" + "x" * 140_000)
    with pytest.raises(
        InputError, match=r"a field is larger than field limit \(131072\); raise it with csv.field_size_"
    ):
        read(tmp_path / "a.csv")
