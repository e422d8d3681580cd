"""Datasets of a hub and of the package `datasets`, without network."""

import datasets
import pytest

from headscope.core.errors import InputError, MissingExtra
from headscope.data.reading.read import read
from headscope.data.reading.scan import scan

FEATURES = datasets.Features(
    {
        "tokens": datasets.Sequence(datasets.Value("string")),
        "ner": datasets.Sequence(datasets.ClassLabel(names=["O", "PER"])),
        "label": datasets.ClassLabel(names=["neg", "pos"]),
    }
)


def dataset(label=(1, 0)):
    columns = {"tokens": [["Ann", "won"], ["No"]], "ner": [[1, 0], [0]], "label": list(label)}
    return datasets.Dataset.from_dict(columns, features=FEATURES)


def mock_hub(monkeypatch, result):
    """Make a hub return or raise this, and return the list of its calls."""
    calls = []

    def load(*arguments, **options):
        calls.append((*arguments, options["split"]))
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(datasets, "load_dataset", load)
    return calls


def test_a_dataset_object_has_words_labels_and_class_names():
    first, second = read(dataset())
    assert (first.id, first.text, first.words, first.label) == ("0", "Ann won", ("Ann", "won"), 1)
    assert dict(first.columns) == {"ner": ("PER", "O"), "label_name": "pos"}
    assert second.label == 0


def test_classes_keep_their_order_and_minus_one_is_no_label():
    first, second = read(dataset(label=(1, -1)))
    assert (first.label, second.label) == (1, None)


def test_a_streamed_dataset_is_read_too():
    assert read(dataset().to_iterable_dataset()) == read(dataset())


def test_a_format_set_on_a_dataset_does_not_matter():
    assert read(dataset().with_format("numpy")) == read(dataset())


def test_the_error_for_a_row_of_a_dataset_has_its_number():
    rows = datasets.Dataset.from_dict({"text": ["One.", " "]})
    with pytest.raises(InputError, match=r"the dataset, row 1: the text \(column 'text'\) is empty"):
        read(rows)


def test_several_splits_are_refused():
    several = datasets.DatasetDict({"train": dataset(), "test": dataset()})
    with pytest.raises(InputError, match=r"the dataset has several splits \(train and test\). Choose one"):
        read(several)


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ("hub:glue:rte:validation", ("glue", "rte", "validation")),
        ("hub:owner/name", ("owner/name", None, None)),
        ("hub:imdb:test", ("imdb", None, "test")),
        ("hub:imdb::test", ("imdb", None, "test")),
        ("hub:imdb:split=train", ("imdb", None, "train")),
    ],
)
def test_a_hub_is_called_with_id_config_and_split(monkeypatch, source, call):
    calls = mock_hub(monkeypatch, dataset())
    assert len(read(source)) == 2
    assert calls == [call]


def test_rows_of_a_hub_can_be_fetched_as_they_are_read(monkeypatch):
    monkeypatch.setattr(
        datasets,
        "load_dataset",
        lambda *_, streaming, **__: dataset().to_iterable_dataset() if streaming else dataset(),
    )
    assert read("hub:glue:rte:validation:true") == read("hub:glue:rte:validation")
    assert list(scan("hub:glue:rte:validation:streaming=true")) == read("hub:glue:rte:validation")


def test_the_only_split_is_read_and_one_of_several_must_be_named(monkeypatch):
    mock_hub(monkeypatch, datasets.DatasetDict({"train": dataset()}))
    assert len(read("hub:owner/name")) == 2
    mock_hub(monkeypatch, datasets.DatasetDict({"train": dataset(), "test": dataset()}))
    with pytest.raises(
        InputError, match="'owner/name' has the splits train and test. Name one: hub:owner/name:split=…"
    ):
        read("hub:owner/name")


def test_the_error_for_an_unreachable_hub_says_so():
    with pytest.raises(
        InputError, match="The hub cannot be reached for the dataset 'nobody/nothing', and there is no local copy"
    ):
        read("hub:nobody/nothing")


def test_the_message_of_the_hub_is_passed_on(monkeypatch):
    mock_hub(monkeypatch, ValueError("Unknown split 'dev'.\nmore"))
    with pytest.raises(InputError, match=r"The dataset 'imdb' cannot be read: Unknown split 'dev'\.(\n|$)"):
        read("hub:imdb:dev")


def test_without_datasets_the_error_names_the_pip_command(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"needs the package datasets, .* pip install 'headscope\[datasets\]'"):
        read("hub:imdb")


def test_a_hub_needs_an_id_and_takes_no_path():
    with pytest.raises(InputError, match="Which dataset"):
        read("hub:")
    with pytest.raises(InputError, match="has a path, 'DIR', but the reader 'hub' takes none. Write hub:imdb."):
        read("hub:imdb@DIR")
