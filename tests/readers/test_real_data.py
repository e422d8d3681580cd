"""Real data in all formats, where available."""

import pytest

from headscope.data.reading.read import read
from tests.readers.shared import DATA, real


@real
@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("arct:train@{}/arct", 1210),
        ("arct:dev@{}/arct/original", 316),
        ("arct:test@{}/arct", 444),
        ("arct:train-adv-negated@{}/arct", 2420),
        ("arct:dev-adv-negated@{}/arct", 632),
        ("arct:test-adv-negated@{}/arct/adversarial", 888),
        ("arct:train-swapped@{}/arct", 2420),
        ("gap:development@{}/coreference/gap", 2000),
        ("gap:validation@{}/coreference/gap", 454),
        ("gap:test@{}/coreference/gap", 2000),
        ("{}/treebank/en_ewt-dev.conllu", 2001),
        ("{}/treebank/en_gum-dev.conllu", 1575),
        ("{}/coreference/winogender/all_sentences.tsv", 720),
    ],
)
def test_real_data_are_read_completely(source, count):
    examples = read(source.format(DATA))
    assert len(examples) == count == len({example.id for example in examples})


@real
def test_large_real_data_are_read_completely():
    assert len(read(f"glue:sst-2:train@{DATA / 'glue'}")) == 67349
    assert len(read(DATA / "treebank" / "en_ewt-train.conllu")) == 12544


@real
def test_the_labels_of_adversarial_sets_are_balanced():
    for split in ("train", "dev", "test"):
        labels = [example.label for example in read(f"arct:{split}-adv-negated@{DATA / 'arct'}")]
        assert labels.count(0) == labels.count(1)


@real
def test_heads_and_mentions_of_gum_are_within_their_sentences():
    for example in read(DATA / "treebank" / "en_gum-dev.conllu"):
        length = len(example.words)
        assert example.columns["heads"].count(-1) == 1
        assert all(-1 <= head < length for head in example.columns["heads"])
        assert all(0 <= start <= end < length and kind for start, end, _, kind in example.columns["mentions"])


@real
def test_every_non_empty_line_of_real_articles_is_an_example():
    path = DATA / "text" / "valid.txt"
    assert len(read(path)) == sum(bool(line.strip()) for line in path.read_text(encoding="utf-8").split("\n"))
