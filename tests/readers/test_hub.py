"""Datasets of a hub, and those in hand; no hub is reached here."""

import datasets
import pytest

from headscope.core.errors import InputError, MissingExtra
from headscope.data.reading.read import read

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


def loading(monkeypatch, found):
    """A hub that has this, or fails with it, and notes what it was asked for."""
    asked = []

    def load(*given, **options):
        asked.append((*given, options["split"]))
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(datasets, "load_dataset", load)
    return asked


def test_a_dataset_in_hand_gives_words_labels_and_the_names_of_classes():
    first, second = read(dataset())
    assert (first.id, first.text, first.words, first.label) == ("0", "Ann won", ("Ann", "won"), 1)
    assert dict(first.columns) == {"ner": ("PER", "O"), "label_name": "pos"}
    assert second.label == 0


def test_the_order_of_classes_is_the_datasets_own_and_minus_one_is_no_label():
    first, second = read(dataset(label=(1, -1)))
    assert (first.label, second.label) == (1, None)


def test_a_streamed_dataset_is_read_too():
    assert read(dataset().to_iterable_dataset()) == read(dataset())


def test_a_format_set_on_a_dataset_does_not_matter():
    assert read(dataset().with_format("numpy")) == read(dataset())


def test_a_row_of_a_dataset_is_named_by_its_place():
    rows = datasets.Dataset.from_dict({"text": ["One.", " "]})
    with pytest.raises(InputError, match=r"the dataset, row 1: the text \(column 'text'\) is empty"):
        read(rows)


def test_several_splits_in_hand_are_refused():
    several = datasets.DatasetDict({"train": dataset(), "test": dataset()})
    with pytest.raises(InputError, match=r"the dataset has several splits \(train, test\), where one is expected"):
        read(several)


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("hub:glue:rte:validation", ("glue", "rte", "validation")),
        ("hub:owner/name", ("owner/name", None, None)),
        ("hub:imdb:test", ("imdb", None, "test")),
        ("hub:imdb::test", ("imdb", None, "test")),
        ("hub:imdb:split=train", ("imdb", None, "train")),
    ],
)
def test_a_hub_is_asked_for_id_config_and_split(monkeypatch, source, asked):
    seen = loading(monkeypatch, dataset())
    assert len(read(source)) == 2
    assert seen == [asked]


def test_the_only_split_is_taken_and_one_of_several_must_be_named(monkeypatch):
    loading(monkeypatch, datasets.DatasetDict({"train": dataset()}))
    assert len(read("hub:owner/name")) == 2
    loading(monkeypatch, datasets.DatasetDict({"train": dataset(), "test": dataset()}))
    with pytest.raises(InputError, match="'owner/name' has the splits train, test. Name one: hub:owner/name:split=…"):
        read("hub:owner/name")


def test_a_hub_that_cannot_be_reached_says_so():
    with pytest.raises(
        InputError, match="The hub cannot be reached for the dataset 'nobody/nothing', and no copy of it"
    ):
        read("hub:nobody/nothing")


def test_what_the_hub_answers_is_passed_on(monkeypatch):
    loading(monkeypatch, ValueError("Unknown split 'dev'.\nmore"))
    with pytest.raises(InputError, match=r"The dataset 'imdb' cannot be read: Unknown split 'dev'\.$"):
        read("hub:imdb:dev")


def test_a_hub_without_its_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"needs the package datasets. .* pip install 'headscope\[datasets\]'"):
        read("hub:imdb")


def test_a_hub_needs_an_id_and_takes_no_place():
    with pytest.raises(InputError, match="Which dataset"):
        read("hub:")
    with pytest.raises(InputError, match="names a place, 'DIR', but the reader 'hub' takes none. Write hub:imdb."):
        read("hub:imdb@DIR")
