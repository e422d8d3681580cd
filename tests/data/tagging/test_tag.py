"""Examples with tags: found, given, or kept from before."""

import sys
import warnings
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pytest

from headscope.core.errors import DataWarning, InputError, MissingExtra
from headscope.core.example import Example
from headscope.data.tagging import cache as tag_cache
from headscope.data.tagging.english import EnglishTags
from headscope.data.tagging.tag import tag_examples
from headscope.data.tagging.tagger import words_at


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A cache of this test's own, worth its while for any text."""
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tag_cache, "WORTH", 1)
    return tmp_path / "cache"


DATA = [Example("a", "She didn't sleep."), Example("b", "Paris is big.", pair="Is it?"), Example("c", "x", label=1)]


def test_texts_get_words_and_tags():
    one = tag_examples([Example("a", "She didn't sleep.")])[0]
    assert words_at(one.text, one.columns["spans"]) == ("She", "did", "n't", "sleep", ".")
    assert one.columns["tags"] == ("PRON", "AUX", "PART", "VERB", "PUNCT")
    assert "pair_spans" not in one.columns


def test_the_tags_of_a_pair_follow_those_of_the_text():
    one = tag_examples([Example("b", "Paris is big.", pair="Is it?", label=1, columns={"source": "web"})])[0]
    assert one.columns["tags"] == ("PROPN", "AUX", "ADJ", "PUNCT", "AUX", "PRON", "PUNCT")
    assert words_at(one.pair, one.columns["pair_spans"]) == ("Is", "it", "?")
    assert (one.label, one.columns["source"]) == (1, "web")


def test_words_given_are_the_words_tagged():
    one = tag_examples([Example("a", "dont go", words=("dont", "go"))])[0]
    assert len(one.columns["tags"]) == 2
    assert "spans" not in one.columns
    two = tag_examples([Example("a", "New York slept", columns={"spans": ((0, 8), (9, 14))})])[0]
    assert (two.columns["spans"], len(two.columns["tags"])) == (((0, 8), (9, 14)), 2)


@pytest.mark.parametrize("tagger", ["auto", "english", "gold"])
def test_tags_that_are_there_stay(tagger):
    given = [Example("a", "He ran", words=("He", "ran"), columns={"tags": ("X", "X")})]
    assert tag_examples(given, tagger) == given


def test_gold_tags_that_are_missing_are_refused():
    given = [Example("a", "b", columns={"tags": ("X",)}), Example("c", "d")]
    with pytest.raises(
        InputError, match="tagger='gold' takes tags from the data, but 1 of 2 .* first is 'c'. Give them"
    ):
        tag_examples(given, "gold")


def test_a_tagger_that_there_is_not_is_refused():
    with pytest.raises(InputError, match="No tagger is called 'nltk'. Use 'auto' or 'english' .* 'spacy:MODEL'"):
        tag_examples(DATA, "nltk")


def test_tags_are_kept_and_used_again(folder, monkeypatch):
    first = tag_examples(DATA)
    (file,) = (folder / "tags").iterdir()
    monkeypatch.setattr(EnglishTags, "__call__", None)  # nobody tags any more
    assert tag_examples(DATA) == first
    assert list((folder / "tags").iterdir()) == [file]


def test_other_data_and_other_taggers_have_files_of_their_own(folder, monkeypatch):
    tag_examples(DATA)
    tag_examples(DATA[:2])
    tag_examples([Example("a", "She did", words=("She", "did"))])
    tag_examples([Example("a", "She", pair="did")])
    monkeypatch.setattr("headscope.data.tagging.english._version", lambda: "another")
    tag_examples(DATA)
    assert len(list((folder / "tags").iterdir())) == 5


@pytest.mark.parametrize("damage", ["empty", "cut", "other", "short"])
def test_a_damaged_file_is_made_again(folder, damage):
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
        with np.load(file) as held:
            np.savez(file, **{**held, "tags": held["tags"][:-1]})
    assert tag_examples(DATA) == first
    assert file.read_bytes() == whole


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "file"))
    assert tag_examples(DATA)[0].columns["tags"][0] == "PRON"


def test_a_write_that_fails_leaves_nothing_behind(folder, monkeypatch):
    def fail(file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fail)
    assert tag_examples(DATA)[0].columns["tags"][0] == "PRON"
    assert list((folder / "tags").iterdir()) == []


def test_the_folder_is_the_users(tmp_path, monkeypatch):
    monkeypatch.delenv("HEADSCOPE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert tag_cache.place_of(["a"], "b").parent == tmp_path / "xdg" / "headscope" / "tags"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tag_cache.place_of(["a"], "b").parent == tmp_path / ".cache" / "headscope" / "tags"


def test_a_few_words_take_no_file(folder, monkeypatch):
    monkeypatch.setattr(tag_cache, "WORTH", 20_000)
    tag_examples(DATA)
    assert not folder.exists()


def test_text_in_another_script_is_warned_about():
    with pytest.warns(DataWarning, match="9 of 10 letters are not Latin, but the built-in tagger knows English only"):
        tag_examples([Example("a", "Кот спит!!"), Example("b", "東京 b 12")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tag_examples([Example("a", "naïve Ðorđe 東京 sleeps")])


@dataclass
class Token:
    """A word as spaCy has it."""

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
        for each in documents:
            words = each.split(" ") if isinstance(each, str) else each
            starts = [sum(len(word) + 1 for word in words[:place]) for place in range(len(words))]
            tags = [
                "SPACE" if not w.strip() else "" if self.blank else "PROPN" if w[0].isupper() else "NOUN" for w in words
            ]
            yield [Token(*each) for each in zip(words, starts, tags, strict=True)]


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
    one, two = tag_examples(
        [Example("a", "Kim \n sleeps", pair="now"), Example("b", "", words=("a b", "C"))], "spacy:en_core_web_sm"
    )
    assert (one.columns["tags"], one.columns["spans"]) == (("PROPN", "NOUN", "NOUN"), ((0, 3), (6, 12)))
    assert one.columns["pair_spans"] == ((0, 3),)
    assert two.columns["tags"] == ("NOUN", "PROPN")


@pytest.mark.usefixtures("spacy")
def test_a_spacy_pipeline_that_is_missing_or_tags_nothing_is_refused():
    with pytest.raises(
        InputError, match="spaCy has no pipeline called 'missing' here. Run python -m spacy download missing"
    ):
        tag_examples(DATA, "spacy:missing")
    with pytest.raises(InputError, match="The spaCy pipeline 'stub' gives no parts of speech. Use one that does"):
        tag_examples(DATA, "spacy:blank")


def test_without_spacy_a_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(
        MissingExtra, match=r"tagger='spacy:en_core_web_sm' needs spaCy, .* pip install 'headscope\[spacy\]'"
    ):
        tag_examples(DATA, "spacy")
