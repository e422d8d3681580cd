"""Reading examples: sources, columns, labels and ids."""

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


def test_examples_are_returned_unchanged():
    examples = [Example("b", "One."), Example("a", "Two.")]
    assert read(examples) == read(tuple(examples)) == read(iter(examples)) == examples
    with pytest.raises(InputError, match="The list, row 1: the id 'b' is already that of row 0"):
        read([examples[0], examples[0]])
    with pytest.raises(InputError, match=r"Columns are named \(review\), but the list holds examples"):
        read(examples, text="review")


def test_missing_values_of_a_data_frame_are_none():
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
        InputError, match="the DataFrame, row 1: the text .column 't'. is missing, but a text is expected"
    ):
        read(pandas.DataFrame({"t": ["One.", None]}), text="t")
    with pytest.raises(InputError, match="Two columns of the DataFrame have the same name: a and a"):
        read(pandas.DataFrame([["x", "y"]], columns=["a", "a"]))


def test_the_format_is_known_by_the_ending_or_by_name(tmp_path):
    path = table(tmp_path, '{"text": "One."}\n', "a.jsonl")
    assert read(path) == read(str(path)) == read(f"jsonl@{path}") == [Example("0", "One.")]
    assert read(table(tmp_path, "text\nOne.", "A.TSV")) == [Example("0", "One.")]


def test_an_existing_path_is_read_as_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path, "One.", "csv:a@b.txt")
    assert read("csv:a@b.txt") == [Example("0", "One.")]


def test_the_bundled_paragraphs_are_called_sample():
    assert len(read("sample")) == 100
    assert read("sample", text="URL", id="row")[7].id == "7"


def test_another_package_can_add_a_format(tmp_path, monkeypatch):
    entry = EntryPoint("backwards", f"{__name__}:Backwards", "headscope.readers")
    monkeypatch.setattr(catalog, "entry_points", lambda group: [entry] if group == "headscope.readers" else [])
    monkeypatch.setattr(EntryPoint, "load", lambda self: Backwards)
    path = table(tmp_path, ".enO", "a.back")
    assert read(path) == read(f"backwards:2@{path}") == [Example("0", "One.")]


@dataclass(frozen=True)
class Backwards(Reader):
    """Texts from right to left."""

    depth: int = 1
    endings = ("back",)

    def __call__(self, path):
        return RecordTable(path, [Record(1, {"text": Path(path).read_text()[::-1]})])


# sources that cannot be read


def test_the_error_for_a_missing_file_lists_its_folder(tmp_path):
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
        ("The cat sat.", r"To read a text itself, give a list: \[text\]"),
        ("Note: it sat.", r"To read a text itself, give a list: \[text\]"),
        ("glue:rte:dev", "'glue:rte:dev' does not say where the data are. Write glue:rte:dev@PATH"),
        ("jsnol@a.jsonl", "No reader is called 'jsnol'. Did you mean 'jsonl'"),
        ("text:unit=word@a", "The parameter 'unit' of 'text' must be line, paragraph or file, but got 'word'"),
        ("text:units=line@a", "No parameter of 'text' is called 'units'. Did you mean 'unit'"),
        ("parquet:x@a", r"The reader 'parquet' takes no parameters, but got 1 parameter: \['x'\]"),
    ],
)
def test_the_error_for_an_unknown_source_says_what_to_write(source, text):
    with pytest.raises(InputError, match=text):
        read(source)


def test_the_error_for_an_unknown_ending_lists_the_known_ones(tmp_path):
    path = table(tmp_path, "x", "a.xlsx")
    with pytest.raises(InputError) as error:
        read(path)
    assert str(error.value) == (
        f"The format of {path} is not known from its ending '.xlsx'. Known: .conll, .conllu, .csv, .json, .jsonl, "
        ".mo, .ndjson, .parquet, .po, .tab, .text, .tsv, .txt, .v4_auto_conll, .v4_gold_conll, .v9_auto_conll and "
        f".v9_gold_conll. Or name the format: 'jsonl@{path}'."
    )


def test_folders_and_other_objects_are_refused(tmp_path):
    table(tmp_path, "x")
    with pytest.raises(InputError, match=r"is a folder, but a file is expected. It holds: a.csv. Name one"):
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
def test_columns_with_common_names_are_found(tmp_path, names, text, pair):
    path = table(tmp_path, f"{names}\n{names}\n")
    (example,) = read(path)
    assert (example.text, example.pair) == (text, pair)
    assert set(example.columns) == set(names.split(",")) - {text, pair}


def test_named_columns_have_priority(tmp_path):
    path = table(tmp_path, "id,text,review,stars,label\nx,A.,B.,5,1\n")
    assert read(path, text="review", label="stars", id="text") == [
        Example("A.", "B.", label=5, columns={"id": "x", "label": "1"})
    ]


def test_a_named_text_has_no_guessed_pair(tmp_path):
    path = table(tmp_path, "premise,hypothesis\nA.,B.\n")
    assert read(path, text="hypothesis") == [Example("0", "B.", columns={"premise": "A."})]
    assert read(path, text="hypothesis", pair="premise") == [Example("0", "B.", "A.")]


def test_the_error_for_a_missing_column_suggests_the_closest(tmp_path):
    path = table(tmp_path, "review,stars\nA.,1\n")
    with pytest.raises(InputError) as error:
        read(path, text="revew")
    assert str(error.value) == f"{path}: there is no column 'revew'. Did you mean 'review'? Columns: review and stars."
    with pytest.raises(
        InputError, match=r"no column has a common name of a text .* Name one: hs\.read\(…, text='review'\)"
    ):
        read(path)


def test_words_are_read_from_a_list_or_from_a_text(tmp_path):
    rows = [{"tokens": ["New York", "sleeps"], "tags": ["PROPN", "VERB"]}]
    (listed,) = read(rows)
    assert (listed.words, listed.text, listed.columns["tags"]) == (
        ("New York", "sleeps"),
        "New York sleeps",
        ("PROPN", "VERB"),
    )
    (split,) = read(table(tmp_path, "w,tags,text\nIt  sleeps,PRON VERB,whole\n"), words="w")
    assert (split.words, split.text) == (("It", "sleeps"), "It sleeps")
    assert dict(split.columns) == {"tags": ("PRON", "VERB"), "text": "whole"}


def test_a_column_called_words_without_lists_is_not_used(tmp_path):
    (example,) = read(table(tmp_path, "text,words\nOne two.,2\n"))
    assert (example.words, example.columns["words"]) == (None, "2")


def test_choices_are_read_from_one_column_or_several():
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
def test_numeric_labels_stay_numbers_and_whole_ones_are_integers(values, labels):
    read_labels = [example.label for example in read([{"text": "a", "label": value} for value in values])]
    assert read_labels == labels
    assert list(map(type, read_labels)) == list(map(type, labels))


def test_class_names_become_indices_in_sorted_order_and_are_kept():
    examples = read([{"text": "a", "label": name} for name in ("pos", "neg", "pos", "neutral")])
    assert [example.label for example in examples] == [2, 0, 2, 1]
    assert [example.columns["label_name"] for example in examples] == ["pos", "neg", "pos", "neutral"]


# ids


def test_ids_are_those_of_a_column_or_row_numbers(tmp_path):
    path = table(tmp_path, "idx,text\n7,A.\n3,B.\n")
    assert [example.id for example in read(path)] == ["7", "3"]
    numbered = read(path, id="row")
    assert [(example.id, example.columns) for example in numbered] == [("0", {"idx": "7"}), ("1", {"idx": "3"})]


def test_bundled_data_is_read_by_its_name_alone():
    assert len(read("agreement_templates")) == len(read("agreement_templates:train"))


def test_a_row_with_an_empty_label_is_unlabeled(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nOne.,good\nTwo.,\nThree.,  \n")
    assert [example.label for example in read(tmp_path / "a.csv")] == [0, None, None]
    rows = [{"text": "One.", "label": 1}, {"text": "Two.", "label": ""}, {"text": "Three.", "label": None}]
    assert [example.label for example in read(rows)] == [1, None, None]


def test_a_tuple_of_two_texts_is_a_pair_and_a_list_is_two_texts():
    assert [(example.text, example.pair) for example in read(("One.", "Two."))] == [("One.", "Two.")]
    assert [(example.text, example.pair) for example in read(["One.", "Two."])] == [("One.", None), ("Two.", None)]
    assert [(example.text, example.pair) for example in read([("One.", "Two.")])] == [("One.", "Two.")]
    with pytest.raises(
        InputError, match=r"A tuple of two texts is a pair, but this one has 3 texts. Give .* as a list"
    ):
        read(("One.", "Two.", "Three."))
