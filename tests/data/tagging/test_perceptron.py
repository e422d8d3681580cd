"""The built-in tagger."""

from argparse import Namespace
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from headscope.data.tagging.features import Features, kind_of, letters, shape
from headscope.data.tagging.perceptron import Tagger, english
from headscope.data.tagging.weights import Weights, read_weights, write_weights
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result
from tests.readers.shared import DATA, real

ROOT = Path(__file__).parents[3]
TREEBANK = DATA / "treebank"
TYPES = ("NOUN", "VERB", "PRON", "PUNCT")
KNOWN = """
The/DET old/ADJ cat/NOUN slept/VERB on/ADP my/PRON warm/ADJ bed/NOUN ./PUNCT
She/PRON told/VERB him/PRON that/SCONJ they/PRON would/AUX leave/VERB tomorrow/NOUN ./PUNCT
Paris/PROPN is/AUX the/DET capital/NOUN of/ADP France/PROPN ,/PUNCT is/AUX n't/PART it/PRON ?/PUNCT
I/PRON can/AUX can/VERB fish/NOUN ,/PUNCT but/CCONJ we/PRON never/ADV drink/VERB cold/ADJ coffee/NOUN !/PUNCT
(/PUNCT Nobody/PRON knows/VERB how/ADV many/ADJ people/NOUN came/VERB to/ADP two/NUM meetings/NOUN ./PUNCT )/PUNCT
He/PRON plans/VERB to/PART sell/VERB his/PRON plans/NOUN ;/PUNCT others/NOUN will/AUX buy/VERB them/PRON ./PUNCT
"""


def macro_f1(gold, found):
    gold, found = np.array(gold), np.array(found)
    return np.mean([2 * ((gold == t) & (found == t)).sum() / ((gold == t).sum() + (found == t).sum()) for t in TYPES])


def treebank(name):
    for block in (TREEBANK / name).read_text(encoding="utf-8").strip().split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if line[0] != "#"]
        yield [(row[1], row[3]) for row in rows if row[0].isdigit()]


def scored(sentences):
    gold, found = [], []
    for sentence in sentences:
        gold += [tag for _, tag in sentence]
        found += english().tag([word for word, _ in sentence])
    return macro_f1(gold, found)


def plain_sentences():
    return [[tuple(each.rsplit("/", 1)) for each in line.split()] for line in KNOWN.strip().splitlines()]


def test_plain_sentences_are_tagged_right():
    assert scored(plain_sentences()) >= 0.965


@real
@pytest.mark.parametrize(("name", "least"), [("en_ewt-dev.conllu", 0.965), ("en_gum-dev.conllu", 0.96)])
def test_unseen_treebanks_are_tagged_well(name, least):
    assert scored(treebank(name)) >= least


def test_training_twice_gives_the_same_model(tmp_path):
    script = spec_from_file_location("tagger_run", ROOT / "docs" / "runs" / "tagger.py")
    run = module_from_spec(script)
    script.loader.exec_module(run)
    options = Namespace(seed=0, runs=1, epochs=20, small=0.2, hide=0.1, sure=2)
    for name in ("one.npz", "two.npz"):
        write_weights(run.trained(plain_sentences(), options), tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    tagger = Tagger(read_weights(tmp_path / "one.npz"))
    right = [tagger.tag([word for word, _ in each]) == [tag for _, tag in each] for each in plain_sentences()]
    assert sum(right) >= 5


def test_a_word_is_tagged_by_its_neighbours():
    tagger = english()
    assert tagger.tag(["They", "run", "."])[1] == "VERB"
    assert tagger.tag(["A", "run", "."])[1] == "NOUN"


def test_anything_can_be_tagged():
    assert english().tag([]) == []
    assert len(english().tag(["", "\u200b", "東京", "🙂", "a" * 5000])) == 5


def test_sentences_do_not_see_one_another():
    tagger, one, two = english(), ["They", "saw", "her", "duck", "."], ["Duck", "soup", "tastes", "good", "."]
    assert tagger.tag([*one, *two]) == tagger.tag(one) + tagger.tag(two)


def test_what_is_kept_for_speed_does_not_change_a_tag(monkeypatch):
    words = KNOWN.replace("/", " ").split()
    expected = english().tag(words)
    monkeypatch.setattr("headscope.data.tagging.perceptron.KEPT", 3)
    assert Tagger(read_weights()).tag(words) == expected


def test_scores_are_sums_of_weights_and_sure_words_need_none(tmp_path):
    """A model small enough to do by hand: after a determiner a noun, otherwise a verb."""
    table = np.array([[0, 2, 0], [0, 0, 5], [0, 1, 0]], dtype=np.int8)  # DET VERB NOUN
    weights = Weights(("DET", "VERB", "NOUN"), {"bwalk": 0, "B0": 1, "a": 2}, table, {"walk": "BC"}, {"the": 0})
    write_weights(weights, tmp_path / "small.npz")
    read = read_weights(tmp_path / "small.npz")
    assert (read.tags, read.classes, read.sure) == (weights.tags, weights.classes, weights.sure)
    assert {name: read.table[row].tolist() for name, row in read.rows.items()} == {
        "bwalk": [0, 2, 0], "B0": [0, 0, 5], "a": [0, 1, 0]
    }  # fmt: skip
    assert Tagger(read).tag(["the", "walk"]) == ["DET", "NOUN"]
    assert Tagger(read).tag(["walk", "the"]) == ["VERB", "DET"]
    assert Tagger(read).tag(["the", "the"]) == ["DET", "DET"]


def test_an_empty_model_is_written_and_read(tmp_path):
    write_weights(Weights(("X",), {}, np.zeros((0, 1), np.int8), {}, {}), tmp_path / "none.npz")
    assert Tagger(read_weights(tmp_path / "none.npz")).tag(["a"]) == ["X"]


def test_names_of_different_kinds_never_meet():
    features = Features({"horses": "H"})
    groups = [
        features.own(("1", "horses")), *features.around("horses"), *features.pair(("horses", "horses")),
        features.history((1, 1)), features.word_history(("horses", 1)), features.next_history(("horses", 1)),
    ]  # fmt: skip
    names = [name for group in groups for name in group]
    assert len(names) == len(set(names))


def test_how_words_and_sentences_are_written():
    assert [shape(word) for word in ("McKay", "1990s", "U.S.")] == ["XxXx", "dx", "X.X."]
    assert "".join(map(letters, ("NATO", "I", "Cat", "McKay", "cat", "e-mail", "9am", "?", ""))) == "UICMlmd?"
    written = ["STOP THAT NOW", "no capitals here", "The Great Gatsby Returns", "He went home with her", "Go !", "12 !"]
    assert [kind_of(text.split()) for text in written] == ["capitals", "small", "title", "4", "2", "none"]


def test_the_shipped_file_is_small_and_holds_no_code():
    path = ROOT / "src" / "headscope" / "data" / "bundled" / "english_tagger.npz"
    assert path.stat().st_size < 1_000_000
    with np.load(path, allow_pickle=False) as held:
        assert all(held[name].dtype.kind in "ui" for name in held.files)
    assert "Attribution-ShareAlike 4.0" in path.with_name("EWT_NOTICE").read_text()


def test_what_was_measured_is_what_is_shipped():
    measured = read_provenance(open_result(ROOT / "docs" / "results" / "tagger.nc"))
    shipped = ROOT / "src" / "headscope" / "data" / "bundled" / "english_tagger.npz"
    assert measured["weights_hash"] == sha256(shipped.read_bytes()).hexdigest()
