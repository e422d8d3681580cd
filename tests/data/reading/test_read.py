"""Reading examples: sources, columns, labels, ids."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy
import pandas
import pytest

from headscope.core import catalog
from headscope.core.errors import InputError, UnknownName
from headscope.core.example import Example
from headscope.core.reader import Reader, Record, RecordTable
from headscope.data.reading.read import read


def table(tmp_path, text, name="a.csv"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


# sources


def test_a_list_of_texts_pairs_or_dicts_is_read():
    assert read(["One.", "Two."]) == [Example("0", "One."), Example("1", "Two.")]
    assert read([("One.", "Un."), "Two."]) == [Example("0", "One.", "Un."), Example("1", "Two.")]
    assert read([{"text": "One.", "label": 3}]) == [Example("0", "One.", label=3)]
    assert read(iter(["One."])) == [Example("0", "One.")]


def test_examples_stay_as_they_are():
    given = [Example("b", "One."), Example("a", "Two.")]
    assert read(given) == read(tuple(given)) == read(iter(given)) == given
    with pytest.raises(InputError, match="The list, row 1: the id 'b' is that of row 0 already"):
        read([given[0], given[0]])
    with pytest.raises(InputError, match=r"Columns are named \(review\), but the list holds examples"):
        read(given, text="review")


def test_a_frame_is_read_with_what_it_misses_as_none():
    frame = pandas.DataFrame(
        {
            "text": ["One.", "Two."],
            "label": [1.0, numpy.nan],
            "n": [1, 2],
            7: [True, False],
            "l": [numpy.arange(2), [3]],
        },
        index=[5, 5],
    )
    first, second = read(frame)
    assert (first.id, first.text, first.label) == ("0", "One.", 1)
    assert type(first.label) is int
    assert dict(first.columns) == {"n": 1, "7": True, "l": (0, 1)}
    assert second.label is None
    with pytest.raises(
        InputError, match="the frame, row 1: the text .column 't'. is missing, where a text is expected"
    ):
        read(pandas.DataFrame({"t": ["One.", None]}), text="t")
    with pytest.raises(InputError, match="Two columns of the frame have the same name: a, a"):
        read(pandas.DataFrame([["x", "y"]], columns=["a", "a"]))


def test_the_ending_of_a_path_or_the_word_before_it_says_the_format(tmp_path):
    path = table(tmp_path, '{"text": "One."}\n', "a.jsonl")
    assert read(path) == read(str(path)) == read(f"jsonl@{path}") == [Example("0", "One.")]
    assert read(table(tmp_path, "text\nOne.", "A.TSV")) == [Example("0", "One.")]


def test_a_path_that_exists_is_a_path_whatever_it_holds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path, "One.", "csv:a@b.txt")
    assert read("csv:a@b.txt") == [Example("0", "One.")]


def test_the_paragraphs_of_the_package_are_called_sample():
    assert len(read("sample")) == 100
    assert read("sample", text="URL", id="row")[7].id == "7"


def test_another_package_can_offer_a_format(tmp_path, monkeypatch):
    offer = EntryPoint("backwards", f"{__name__}:Backwards", "headscope.readers")
    monkeypatch.setattr(catalog, "entry_points", lambda group: [offer] if group == "headscope.readers" else [])
    monkeypatch.setattr(EntryPoint, "load", lambda self: Backwards)
    path = table(tmp_path, ".enO", "a.back")
    assert read(path) == read(f"backwards:2@{path}") == [Example("0", "One.")]


@dataclass(frozen=True)
class Backwards(Reader):
    """Texts from right to left."""

    depth: int = 1
    endings = ("back",)

    def __call__(self, place):
        return RecordTable(place, [Record(1, {"text": Path(place).read_text()[::-1]})])


# sources that are none


def test_a_file_that_is_not_there_names_its_neighbours(tmp_path):
    table(tmp_path, "x", "reviews.csv")
    with pytest.raises(InputError) as error:
        read(tmp_path / "review.csv")
    assert str(error.value).startswith(
        f"There is no file '{tmp_path}/review.csv'. Did you mean '{tmp_path}/reviews.csv'? "
        "The folder holds: reviews.csv."
    )
    with pytest.raises(InputError, match=r"There is no folder '.*nowhere' either"):
        read(tmp_path / "nowhere" / "a.csv")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("owner/name", "Is it the id of a dataset on a hub. Write 'hub:owner/name'"),
        ("The cat sat.", r"A text itself is read from a list: hs.read\(\[text\]\)"),
        ("Note: it sat.", r"A text itself is read from a list: hs.read\(\[text\]\)"),
        ("glue:rte:dev", "'glue:rte:dev' does not say where the data lie. Write glue:rte:dev@PATH"),
        ("jsnol@a.jsonl", "No reader is called 'jsnol'. Did you mean 'jsonl'"),
        ("text:unit=word@a", "The parameter 'unit' of 'text' must be line, paragraph or file, but got 'word'"),
        ("text:units=line@a", "No parameter of 'text' is called 'units'. Did you mean 'unit'"),
        ("jsonl:x@a", r"The reader 'jsonl' takes none, but 1 parameters are given: \['x'\]"),
    ],
)
def test_a_source_that_cannot_be_found_says_what_to_write(source, text):
    with pytest.raises(InputError, match=text):
        read(source)


def test_an_unknown_ending_names_the_known_ones(tmp_path):
    path = table(tmp_path, "x", "a.xlsx")
    with pytest.raises(InputError) as error:
        read(path)
    assert str(error.value) == (
        f"Cannot tell the format of {path} by its ending '.xlsx'. Known: .conll, .conllu, .csv, .jsonl, .ndjson, "
        f".parquet, .tab, .text, .tsv, .txt. Or say it in front: 'jsonl@{path}'."
    )


def test_a_folder_or_something_else_is_no_file(tmp_path):
    table(tmp_path, "x")
    with pytest.raises(InputError, match=r"is a folder, where a file is expected. It holds: a.csv. Name one"):
        read(tmp_path)
    with pytest.raises(InputError, match="Cannot read the number 3. Give a path"):
        read(3)
    with pytest.raises(UnknownName, match="No reader is called 'https'"):
        read("https://x.org/a.csv")


# columns


@pytest.mark.parametrize(
    ("names", "text", "pair"),
    [
        ("text,sentence", "text", None),
        ("pair,text", "text", "pair"),
        ("sentence,question", "question", "sentence"),
        ("hypothesis,premise", "premise", "hypothesis"),
        ("question1,question2,sentence", "question1", "question2"),
        ("Sentence1,Sentence2", "Sentence1", "Sentence2"),
        ("other,sentence", "sentence", None),
    ],
)
def test_columns_with_well_known_names_are_found(tmp_path, names, text, pair):
    path = table(tmp_path, f"{names}\n{names}\n")
    (found,) = read(path)
    assert (found.text, found.pair) == (text, pair)
    assert set(found.columns) == set(names.split(",")) - {text, pair}


def test_named_columns_come_first(tmp_path):
    path = table(tmp_path, "id,text,review,stars,label\nx,A.,B.,5,1\n")
    assert read(path, text="review", label="stars", id="text") == [
        Example("A.", "B.", label=5, columns={"id": "x", "label": "1"})
    ]


def test_a_named_text_leaves_no_guessed_pair(tmp_path):
    path = table(tmp_path, "premise,hypothesis\nA.,B.\n")
    assert read(path, text="hypothesis") == [Example("0", "B.", columns={"premise": "A."})]
    assert read(path, text="hypothesis", pair="premise") == [Example("0", "B.", "A.")]


def test_a_column_that_is_not_there_names_the_nearest(tmp_path):
    path = table(tmp_path, "review,stars\nA.,1\n")
    with pytest.raises(InputError) as error:
        read(path, text="revew")
    assert str(error.value) == f"{path}: there is no column 'revew' (did you mean 'review'? there are: review, stars)."
    with pytest.raises(InputError, match=r"no column has a name that texts usually have .* Name one: text='review'"):
        read(path)


def test_words_come_from_a_list_or_from_spaces(tmp_path):
    rows = [{"tokens": ["New York", "sleeps"], "tags": ["PROPN", "VERB"]}]
    (found,) = read(rows)
    assert (found.words, found.text, found.columns["tags"]) == (
        ("New York", "sleeps"),
        "New York sleeps",
        ("PROPN", "VERB"),
    )
    (split,) = read(table(tmp_path, "w,tags,text\nIt  sleeps,PRON VERB,whole\n"), words="w")
    assert (split.words, split.text) == (("It", "sleeps"), "It sleeps")
    assert dict(split.columns) == {"tags": ("PRON", "VERB"), "text": "whole"}


def test_a_column_called_words_that_is_no_list_is_left_alone(tmp_path):
    (found,) = read(table(tmp_path, "text,words\nOne two.,2\n"))
    assert (found.words, found.columns["words"]) == (None, "2")


def test_choices_come_from_one_column_or_from_several():
    rows = [{"text": "It", "a": "sat", "b": "ran", "ends": ["x", "y", "z"]}]
    assert read(rows, choices="ends")[0].columns == {"a": "sat", "b": "ran", "choices": ("x", "y", "z")}
    assert read(rows, choices=["a", "b"])[0].columns == {"ends": ("x", "y", "z"), "choices": ("sat", "ran")}


# labels


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["1", "0"], [1, 0]),
        (["1.0", "0.0"], [1, 0]),
        (["1", "0.5"], [1.0, 0.5]),
        (["-1", "2e1"], [-1, 20]),
        ([True, False], [1, 0]),
        ([None, 2], [None, 2]),
    ],
)
def test_numbers_stay_numbers_and_whole_ones_are_whole(values, labels):
    found = [each.label for each in read([{"text": "a", "label": value} for value in values])]
    assert found == labels
    assert list(map(type, found)) == list(map(type, labels))


def test_names_become_numbers_in_their_sorted_order_and_are_kept():
    found = read([{"text": "a", "label": name} for name in ("pos", "neg", "pos", "neutral")])
    assert [each.label for each in found] == [2, 0, 2, 1]
    assert [each.columns["label_name"] for each in found] == ["pos", "neg", "pos", "neutral"]


# ids


def test_ids_are_a_columns_or_the_rows_numbers(tmp_path):
    path = table(tmp_path, "idx,text\n7,A.\n3,B.\n")
    assert [each.id for each in read(path)] == ["7", "3"]
    assert [(each.id, each.columns) for each in read(path, id="row")] == [("0", {"idx": "7"}), ("1", {"idx": "3"})]
