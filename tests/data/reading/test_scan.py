"""Examples that are read when they are needed are those that are read at once."""

import json

import datasets
import pandas
import pytest

import headscope as hs
from headscope.core.errors import DataWarning, InputError

ROWS = [
    {"id": f"row {number}", "text": f"the cat {'sat ' * number}", "label": "ab"[number % 2], "year": number}
    for number in range(9)
]


class Rows:
    """An object that gives its items whenever it is gone through, and has no length."""

    def __iter__(self):
        return iter(ROWS)


def write(folder, name="texts.jsonl", rows=ROWS):
    frame = pandas.DataFrame(rows)
    writers = {
        "jsonl": lambda path: path.write_text("".join(json.dumps(row) + "\n" for row in rows)),
        "csv": lambda path: frame.to_csv(path, index=False),
        "tsv": lambda path: frame.to_csv(path, index=False, sep="\t"),
        "parquet": lambda path: frame.to_parquet(path),
        "json": lambda path: path.write_text(json.dumps(rows)),
        "txt": lambda path: path.write_text("\n".join(row["text"] for row in rows)),
    }
    writers[name.partition(".")[2]](folder / name)
    return folder / name


SOURCES = {
    **{name: lambda folder, name=name: write(folder, f"texts.{name}") for name in ("jsonl", "csv", "tsv", "parquet")},
    **{name: lambda folder, name=name: str(write(folder, f"texts.{name}")) for name in ("json", "txt")},
    "format": lambda folder: f"jsonl@{write(folder)}",
    "dataset": lambda _: datasets.Dataset.from_list(ROWS),
    "streamed dataset": lambda _: datasets.Dataset.from_list(ROWS).to_iterable_dataset(),
    "iterable": lambda _: Rows(),
    "iterator": lambda _: iter(ROWS),
    "list": lambda _: ROWS,
    "examples": lambda _: hs.read(ROWS),
    "DataFrame": lambda _: pandas.DataFrame(ROWS),
    "stream": lambda _: hs.scan(ROWS),
    "bundled": lambda _: "sample",
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_stream_has_the_examples_of_a_list_each_time(source, tmp_path):
    wanted, stream = hs.read(SOURCES[source](tmp_path)), hs.scan(SOURCES[source](tmp_path))
    assert list(stream) == list(stream) == wanted
    assert len(stream) == len(wanted)
    assert list(stream[1::3]) == list(stream[1:][::3]) == wanted[1::3]
    assert hs.read(stream) == wanted


def test_columns_are_named_as_for_a_list(tmp_path):
    path = write(tmp_path)
    for options in ({"id": "row"}, {"label": "year"}, {"labels": "b,a"}, {"text": "id", "label": "label"}):
        assert list(hs.scan(path, **options)) == hs.read(path, **options)


def test_rows_are_read_one_by_one():
    given = []

    class Counted:
        def __iter__(self):
            for row in ROWS:
                given.append(row)
                yield row

    stream = hs.scan(Counted())
    assert len(given) == len(ROWS)
    assert next(iter(stream)).id == "row 0"
    assert len(given) == len(ROWS) + 1


@pytest.mark.parametrize("rows", [ROWS[:-1], [*ROWS, {**ROWS[0], "id": "new"}], [{**ROWS[0], "text": "a"}, *ROWS[1:]]])
def test_a_file_that_has_changed_is_an_error(tmp_path, rows):
    stream = hs.scan(write(tmp_path))
    write(tmp_path, rows=rows)
    with pytest.raises(InputError, match=r"texts\.jsonl has changed since its rows were counted\. Start again"):
        list(stream)


def test_what_cannot_be_read_is_an_error_before_anything_is_used(tmp_path):
    path = write(tmp_path, rows=[*ROWS, {"id": "x"}])
    with pytest.raises(InputError, match=r"texts\.jsonl, line 10: there is no column 'text'"):
        hs.scan(path)
    with pytest.warns(
        DataWarning, match=r"skipped 1 of 10 rows of .*texts\.jsonl: line 10: there is no column"
    ) as seen:
        stream = hs.scan(path, malformed="skip")
    assert len(list(stream)) == len(stream) == 9  # without a second warning
    assert len(seen) == 1


def test_an_id_that_comes_twice_is_an_error_as_for_a_list(tmp_path):
    path = write(tmp_path, rows=[*ROWS, {**ROWS[4], "text": "again"}, {**ROWS[7], "text": "and again"}])
    sentence = r"texts\.jsonl, line 10: the id 'row 4' is already that of line 5; to number the rows instead: id='row'"
    for read in (hs.read, hs.scan):
        with pytest.raises(InputError, match=sentence):
            read(path)
    with pytest.warns(DataWarning, match=r"skipped 2 of 11 rows .*the id 'row 4'.*the id 'row 7'"):
        stream = hs.scan(path, malformed="skip")
    assert [example.id for example in stream] == [row["id"] for row in ROWS]


def test_a_stream_is_sliced_and_has_no_single_example():
    stream = hs.scan(ROWS)
    assert ROWS[2]["text"] in [example.text for example in stream[2:3]]
    with pytest.raises(InputError, match=r"A stream has no example \[2\] .* hs\.read\(stream\)"):
        stream[2]


def test_columns_cannot_be_named_for_what_has_been_read():
    with pytest.raises(InputError, match=r"Columns are named \(review\), but the list holds examples"):
        hs.scan(hs.scan(ROWS), text="review")
