"""Tagged examples: new tags, gold tags and cached tags."""

import sys
import warnings
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pytest

from headscope.core.errors import DataWarning, InputError, MissingExtra
from headscope.core.example import Example
from headscope.data.tagging import tag as tag_cache
from headscope.data.tagging.tag import tag_examples
from headscope.data.tagging.tagger import EnglishTagger, words_at


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A cache folder for each test, used for texts of any length."""
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tag_cache, "MINIMUM", 1)
    return tmp_path / "cache"


DATA = [Example("a", "She didn't sleep."), Example("b", "Paris is big.", pair="Is it?"), Example("c", "x", label=1)]


def test_texts_get_words_and_tags():
    (example,) = tag_examples([Example("a", "She didn't sleep.")])
    assert words_at(example.text, example.columns["spans"]) == ("She", "did", "n't", "sleep", ".")
    assert example.columns["tags"] == ("PRON", "AUX", "PART", "VERB", "PUNCT")
    assert "pair_spans" not in example.columns


def test_the_tags_of_a_pair_follow_those_of_the_text():
    (example,) = tag_examples([Example("b", "Paris is big.", pair="Is it?", label=1, columns={"source": "web"})])
    assert example.columns["tags"] == ("PROPN", "AUX", "ADJ", "PUNCT", "AUX", "PRON", "PUNCT")
    assert words_at(example.pair, example.columns["pair_spans"]) == ("Is", "it", "?")
    assert (example.label, example.columns["source"]) == (1, "web")


def test_words_of_an_example_are_tagged_as_they_are():
    (example,) = tag_examples([Example("a", "dont go", words=("dont", "go"))])
    assert len(example.columns["tags"]) == 2
    assert "spans" not in example.columns
    (spanned,) = tag_examples([Example("a", "New York slept", columns={"spans": ((0, 8), (9, 14))})])
    assert (spanned.columns["spans"], len(spanned.columns["tags"])) == (((0, 8), (9, 14)), 2)


@pytest.mark.parametrize("tagger", ["auto", "english", "gold"])
def test_existing_tags_are_kept(tagger):
    examples = [Example("a", "He ran", words=("He", "ran"), columns={"tags": ("X", "X")})]
    assert tag_examples(examples, tagger) == examples


def test_missing_gold_tags_are_refused():
    examples = [Example("a", "b", columns={"tags": ("X",)}), Example("c", "d")]
    with pytest.raises(InputError, match="tagger='gold' needs tags in the data, but 1 of 2 .* first is 'c'. Give them"):
        tag_examples(examples, "gold")


def test_an_unknown_tagger_is_refused():
    with pytest.raises(InputError, match="No tagger is called 'nltk'. Use 'auto' or 'english' .* 'spacy:MODEL'"):
        tag_examples(DATA, "nltk")


def test_tags_are_cached_and_used_again(folder, monkeypatch):
    first = tag_examples(DATA)
    (file,) = (folder / "tags").iterdir()
    monkeypatch.setattr(EnglishTagger, "__call__", None)  # nothing can be tagged any more
    assert tag_examples(DATA) == first
    assert list((folder / "tags").iterdir()) == [file]


def test_other_data_and_other_taggers_have_their_own_files(folder, monkeypatch):
    tag_examples(DATA)
    tag_examples(DATA[:2])
    tag_examples([Example("a", "She did", words=("She", "did"))])
    tag_examples([Example("a", "She", pair="did")])
    monkeypatch.setattr("headscope.data.tagging.tagger._version", lambda: "another")
    tag_examples(DATA)
    assert len(list((folder / "tags").iterdir())) == 5


@pytest.mark.parametrize("damage", ["empty", "cut", "other", "short"])
def test_a_damaged_file_is_written_again(folder, damage):
    first = tag_examples(DATA)
    (file,) = (folder / "tags").iterdir()
    whole = file.read_bytes()
    if damage == "empty":
        file.write_bytes(b"")
    elif damage == "cut":
        file.write_bytes(whole[: len(whole) // 2])
    elif damage == "other":
        np.savez(file, names=np.array(["X"]))
    else:
        with np.load(file) as arrays:
            np.savez(file, **{**arrays, "tags": arrays["tags"][:-1]})
    assert tag_examples(DATA) == first
    assert file.read_bytes() == whole


def test_tagging_works_without_a_writable_folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "file"))
    assert tag_examples(DATA)[0].columns["tags"][0] == "PRON"


def test_a_failed_write_leaves_no_file(folder, monkeypatch):
    def fail(file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fail)
    assert tag_examples(DATA)[0].columns["tags"][0] == "PRON"
    assert list((folder / "tags").iterdir()) == []


def test_the_cache_is_in_the_users_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("HEADSCOPE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert tag_cache.cache_path(["a"], "b").parent == tmp_path / "xdg" / "headscope" / "tags"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tag_cache.cache_path(["a"], "b").parent == tmp_path / ".cache" / "headscope" / "tags"


def test_short_texts_are_not_cached(folder, monkeypatch):
    monkeypatch.setattr(tag_cache, "MINIMUM", 20_000)
    tag_examples(DATA)
    assert not folder.exists()


def test_text_in_another_script_gives_a_warning():
    with pytest.warns(DataWarning, match="9 of 10 letters are not Latin, but the built-in tagger is for English only"):
        tag_examples([Example("a", "Кот спит!!"), Example("b", "東京 b 12")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tag_examples([Example("a", "naïve Ðorđe 東京 sleeps")])


@dataclass
class Token:
    """A token of spaCy."""

    text: str
    idx: int
    pos_: str

    @property
    def is_space(self):
        return self.text.isspace()


class Pipeline:
    """Words at spaces; what starts with a capital is a name."""

    meta = {"version": "3.8.0", "name": "stub"}  # noqa: RUF012
    vocab = None

    def __init__(self, blank):
        self.blank = blank

    def pipe(self, documents):
        for document in documents:
            words = document.split(" ") if isinstance(document, str) else document
            starts = [sum(len(word) + 1 for word in words[:index]) for index in range(len(words))]
            tags = [
                "SPACE" if not w.strip() else "" if self.blank else "PROPN" if w[0].isupper() else "NOUN" for w in words
            ]
            yield list(map(Token, words, starts, tags))


@pytest.fixture
def spacy(monkeypatch):
    def load(model, exclude):
        if model == "missing":
            raise OSError("[E050] Can't find model")
        return Pipeline(blank=model == "blank")

    module = ModuleType("spacy")
    module.__version__, module.load, module.tokens = "3.8.7", load, ModuleType("spacy.tokens")
    module.tokens.Doc = lambda vocab, words: words
    monkeypatch.setitem(sys.modules, "spacy", module)


@pytest.mark.usefixtures("spacy")
def test_spacy_tags_its_own_words():
    split, words = tag_examples(
        [Example("a", "Kim \n sleeps", pair="now"), Example("b", "", words=("a b", "C"))], "spacy:en_core_web_sm"
    )
    assert (split.columns["tags"], split.columns["spans"]) == (("PROPN", "NOUN", "NOUN"), ((0, 3), (6, 12)))
    assert split.columns["pair_spans"] == ((0, 3),)
    assert words.columns["tags"] == ("NOUN", "PROPN")


@pytest.mark.usefixtures("spacy")
def test_a_spacy_pipeline_that_is_missing_or_does_not_tag_is_refused():
    with pytest.raises(
        InputError, match="There is no spaCy pipeline 'missing'. Install it with: python -m spacy download missing"
    ):
        tag_examples(DATA, "spacy:missing")
    with pytest.raises(InputError, match="The spaCy pipeline 'stub' gives no parts of speech. Use one that does"):
        tag_examples(DATA, "spacy:blank")


def test_without_spacy_the_error_names_the_pip_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(
        MissingExtra,
        match=r"tagger='spacy:en_core_web_sm' needs the package spacy, .* pip install 'headscope\[spacy\]'",
    ):
        tag_examples(DATA, "spacy")
