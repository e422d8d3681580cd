"""Fields of objects in columns, and JSON files."""

import json

import pytest

from headscope.core.errors import InputError
from headscope.data.reading.read import read

ROWS = [
    {"data": {"review": {"text": "Good.", "stars": 5}}, "n": 1},
    {"data": {"review": {"text": "Bad.", "stars": 1}}, "n": 2},
]
COLUMNS = {"text": "data.review.text", "label": "data.review.stars"}


def write(folder, ending):
    path = folder / f"a.{ending}"
    path.write_text("\n".join(map(json.dumps, ROWS)) if ending == "jsonl" else json.dumps(ROWS, indent=1))
    return path


@pytest.mark.parametrize("ending", ["jsonl", "json", "list", "frame", "dataset", "parquet"])
def test_a_field_of_an_object_is_named_with_dots(tmp_path, ending):
    source = ROWS if ending == "list" else tmp_path / "a.parquet"
    if ending in ("jsonl", "json"):
        source = write(tmp_path, ending)
    elif ending in ("frame", "parquet"):
        frame = pytest.importorskip("pandas").DataFrame(ROWS)
        source = frame if ending == "frame" else frame.to_parquet(source) or source
    elif ending == "dataset":
        source = pytest.importorskip("datasets").Dataset.from_list(ROWS)
    examples = read(source, **COLUMNS)
    assert [(example.text, example.label) for example in examples] == [("Good.", 5), ("Bad.", 1)]
    assert [example.columns["n"] for example in examples] == [1, 2]


def test_a_column_with_a_dot_in_its_name_comes_first():
    (example,) = read([{"a.b": "One.", "a": {"b": "Two."}}], text="a.b")
    assert example.text == "One."


def test_a_field_that_is_missing_is_named_with_those_that_are_there():
    with pytest.raises(
        InputError, match=r"row 0: there is no column 'txt'. Did you mean 'text'\? Columns: text and st"
    ):
        read(ROWS, text="data.review.txt")
    with pytest.raises(InputError, match=r"row 0: 'text' should be a field of 'n', but that is the number 1"):
        read(ROWS, text="n.text")
    with pytest.raises(InputError, match=r"there is no column 'date.review'. Columns: data and n"):
        read(ROWS, text="date.review")


def test_a_json_file_is_a_list_of_objects_or_an_object_with_one(tmp_path):
    path = tmp_path / "a.json"
    rows = [{"text": "One.", "label": "a"}, {"text": "Two.", "label": None}]
    for value in (rows, {"version": "1.1", "data": rows}, {"data": rows, "tags": ["x"]}):
        path.write_text(json.dumps(value))
        assert [(example.text, example.label) for example in read(path)] == [("One.", 0), ("Two.", None)]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('{"text": "One."}\n{"text": "Two."}', "line 2: it is not JSON: Extra data. If every line is an object, wr"),
        ('[{"text": "One."},', "line 1: it is not JSON: "),
        ('{"text": ["One."], "label": [1]}', "holds an object with the fields text and label, but a list of"),
        ('{"a": [{"text": "One."}], "b": [{"text": "Two."}]}', "holds an object with the fields a and b, but a list"),
        ('"One."', "holds the text 'One.', but a list of objects is expected, or an object with one such list."),
        ("[]", "There are no examples in .*: it has no rows"),
        ('["One."]', "row 0: it is the text 'One.', but an object {…} is expected"),
        ("[" * 100_000, "its JSON cannot be read|it is not JSON"),
    ],
)
def test_other_json_is_refused_in_one_sentence(tmp_path, content, text):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(InputError, match=text):
        read(path)


def test_json_lines_under_the_wrong_ending_are_read_as_the_error_says(tmp_path):
    path = write(tmp_path, "jsonl").rename(tmp_path / "a.json")
    assert len(read(f"jsonl@{path}", **COLUMNS)) == 2
