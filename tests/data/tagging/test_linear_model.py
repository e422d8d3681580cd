"""The linear model of the built-in tagger."""

from argparse import Namespace
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from headscope.core.errors import InputError
from headscope.core.provenance import read_provenance
from headscope.data.tagging.features import Features, letter_case, sentence_style, shape
from headscope.data.tagging.linear_model import LinearTagger, Weights, load_english, read_weights, write_weights
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


def macro_f1(gold, tags):
    gold, tags = np.array(gold), np.array(tags)
    return np.mean([2 * ((gold == t) & (tags == t)).sum() / ((gold == t).sum() + (tags == t).sum()) for t in TYPES])


def treebank(name):
    for block in (TREEBANK / name).read_text(encoding="utf-8").strip().split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if line[0] != "#"]
        yield [(row[1], row[3]) for row in rows if row[0].isdigit()]


def score(sentences):
    gold, tags = [], []
    for sentence in sentences:
        gold += [tag for _, tag in sentence]
        tags += load_english().tag([word for word, _ in sentence])
    return macro_f1(gold, tags)


def plain_sentences():
    return [[tuple(word.rsplit("/", 1)) for word in line.split()] for line in KNOWN.strip().splitlines()]


def test_plain_sentences_are_tagged_correctly():
    assert score(plain_sentences()) >= 0.965


@real
@pytest.mark.parametrize(("name", "minimum"), [("en_ewt-dev.conllu", 0.965), ("en_gum-dev.conllu", 0.96)])
def test_unseen_treebanks_are_tagged_well(name, minimum):
    assert score(treebank(name)) >= minimum


def test_training_twice_gives_the_same_model(tmp_path):
    script = spec_from_file_location("tagger_run", ROOT / "docs" / "runs" / "tagger.py")
    run = module_from_spec(script)
    script.loader.exec_module(run)
    options = Namespace(seed=0, runs=1, epochs=20, lowercase=0.2, dropout=0.1, min_count=2)
    for name in ("one.npz", "two.npz"):
        write_weights(run.train(plain_sentences(), options), tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    tagger = LinearTagger(read_weights(tmp_path / "one.npz"))
    correct = [
        tagger.tag([word for word, _ in sentence]) == [tag for _, tag in sentence] for sentence in plain_sentences()
    ]
    assert sum(correct) >= 5


def test_a_word_is_tagged_by_its_neighbours():
    tagger = load_english()
    assert tagger.tag(["They", "run", "."])[1] == "VERB"
    assert tagger.tag(["A", "run", "."])[1] == "NOUN"


def test_anything_can_be_tagged():
    assert load_english().tag([]) == []
    assert len(load_english().tag(["", "\u200b", "東京", "🙂", "a" * 5000])) == 5


def test_sentences_are_tagged_independently():
    tagger, first, second = load_english(), ["They", "saw", "her", "duck", "."], ["Duck", "soup", "tastes", "good", "."]
    assert tagger.tag([*first, *second]) == tagger.tag(first) + tagger.tag(second)


def test_the_size_of_the_caches_does_not_change_a_tag(monkeypatch):
    words = KNOWN.replace("/", " ").split()
    expected = load_english().tag(words)
    monkeypatch.setattr("headscope.data.tagging.linear_model.CACHE_SIZE", 3)
    assert LinearTagger(read_weights()).tag(words) == expected


def test_scores_are_sums_of_weights_and_fixed_tags_need_none(tmp_path):
    """A model small enough to compute by hand: a noun after a determiner, otherwise a verb."""
    table = np.array([[0, 2, 0], [0, 0, 5], [0, 1, 0]], dtype=np.int8)  # DET VERB NOUN
    weights = Weights(("DET", "VERB", "NOUN"), {"bwalk": 0, "B0": 1, "a": 2}, table, {"walk": "BC"}, {"the": 0})
    write_weights(weights, tmp_path / "small.npz")
    read = read_weights(tmp_path / "small.npz")
    assert (read.tags, read.classes, read.fixed_tags) == (weights.tags, weights.classes, weights.fixed_tags)
    assert {name: read.table[row].tolist() for name, row in read.rows.items()} == {
        "bwalk": [0, 2, 0],
        "B0": [0, 0, 5],
        "a": [0, 1, 0],
    }
    assert LinearTagger(read).tag(["the", "walk"]) == ["DET", "NOUN"]
    assert LinearTagger(read).tag(["walk", "the"]) == ["VERB", "DET"]
    assert LinearTagger(read).tag(["the", "the"]) == ["DET", "DET"]


def test_an_empty_model_is_written_and_read(tmp_path):
    write_weights(Weights(("X",), {}, np.zeros((0, 1), np.int8), {}, {}), tmp_path / "none.npz")
    assert LinearTagger(read_weights(tmp_path / "none.npz")).tag(["a"]) == ["X"]


def test_a_damaged_model_raises(tmp_path):
    weights = Weights(("X",), {"a": 0}, np.ones((1, 1), np.int8), {}, {})
    write_weights(weights, tmp_path / "small.npz")
    content = (tmp_path / "small.npz").read_bytes()
    for damaged in (b"", content[:100], content[:40] + b"?" + content[41:]):
        (tmp_path / "small.npz").write_bytes(damaged)
        with pytest.raises(InputError, match=r"small\.npz: it does not hold the weights of a tagger, or it is damaged"):
            read_weights(tmp_path / "small.npz")


def test_the_bundled_model_is_verified(monkeypatch):
    monkeypatch.setattr("headscope.data.tagging.linear_model.BUNDLED_SHA256", "0" * 64)
    with pytest.raises(InputError, match=r"english_tagger\.npz: .* Install headscope again, or train the tagger again"):
        read_weights()


def test_features_of_different_kinds_have_different_names():
    features = Features({"horses": "H"})
    groups = [
        features.own(("1", "horses")),
        *features.around("horses"),
        *features.pair(("horses", "horses")),
        features.history((1, 1)),
        features.word_history(("horses", 1)),
        features.next_history(("horses", 1)),
    ]
    names = [name for group in groups for name in group]
    assert len(names) == len(set(names))


def test_the_shape_and_case_of_words_and_the_style_of_sentences():
    assert [shape(word) for word in ("McKay", "1990s", "U.S.")] == ["XxXx", "dx", "X.X."]
    assert "".join(map(letter_case, ("NATO", "I", "Cat", "McKay", "cat", "e-mail", "9am", "?", ""))) == "UICMlmd?"
    texts = ["STOP THAT NOW", "no capitals here", "The Great Gatsby Returns", "He went home with her", "Go !", "12 !"]
    assert [sentence_style(text.split()) for text in texts] == ["capitals", "small", "title", "4", "2", "none"]


def test_the_bundled_file_is_small_and_contains_no_code():
    path = ROOT / "src" / "headscope" / "data" / "bundled" / "english_tagger.npz"
    assert path.stat().st_size < 1_000_000
    with np.load(path, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype.kind in "ui" for name in arrays.files)
    assert "Attribution-ShareAlike 4.0" in path.with_name("EWT_NOTICE").read_text()


def test_the_measured_model_is_the_bundled_one():
    measured = read_provenance(open_result(ROOT / "docs" / "results" / "tagger.nc"))
    bundled = ROOT / "src" / "headscope" / "data" / "bundled" / "english_tagger.npz"
    assert measured["weights_hash"] == sha256(bundled.read_bytes()).hexdigest()
