"""`hs.probe`: halves of the documents, training data, words, random weights and options."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.core.provenance import read_provenance
from headscope.measuring.probe import make_stream, make_stream_settings, randomize, split_documents
from headscope.results.accuracies import document_name
from tests.models import tiny
from tests.probes.data import make_tree

TREES = [make_tree(seed) for seed in range(12)]  # three of a document
PROBE = "dependency:min_count=1"


def probe(*arguments, **options):
    return hs.probe(tiny("bert"), *arguments, lens="raw", progress=False, **options)


def test_halves_have_about_as_many_examples_and_no_document_in_common():
    examples = [make_tree(seed, document=f"d{int(seed**0.5)}") for seed in range(100)]  # of 1, 3, 5 … 19 examples
    first, second = split_documents(examples)
    assert abs(len(first) - len(second)) <= 19
    assert sorted(int(example.id) for example in (*first, *second)) == list(range(100))
    assert not {*map(document_name, first)} & {*map(document_name, second)}
    halves = [split_documents(TREES, seed) for seed in range(5)]
    assert all(len(one) == len(other) == 6 for one, other in halves)
    assert len({tuple(example.id for example in one) for one, _ in halves}) > 1
    assert split_documents(TREES, 3) == split_documents(TREES, 3)


def test_one_document_cannot_be_halved():
    with pytest.raises(hs.InputError, match="All examples are of one document.*Give train="):
        probe([make_tree(seed, document="d") for seed in range(4)], PROBE)


def test_data_to_train_on_replace_the_half_and_share_no_document():
    result = probe(TREES[:6], PROBE, train=TREES[6:])
    facts = read_provenance(result)
    assert (facts["n"], facts["n_train"], facts["split"]) == (6, 6, "train was given")
    with pytest.raises(hs.InputError, match="The document 'd1' is both in the data and in train"):
        probe(TREES[:6], PROBE, train=TREES[5:])


def test_an_example_without_document_may_share_its_id_but_not_its_words_with_train():
    alone = [
        hs.Example(
            tree.id, tree.text, words=tree.words, columns={name: tree.columns[name] for name in ("heads", "relations")}
        )
        for tree in TREES
    ]
    others = [replace(tree, id=alone[at].id) for at, tree in enumerate(alone[6:])]
    assert read_provenance(probe(alone[:6], PROBE, train=others))["n"] == 6
    with pytest.raises(hs.InputError, match="The document '2' is both in the data and in train"):
        probe(alone[:6], PROBE, train=[*others[:2], *alone[2:]])


def test_maps_of_a_stream_are_those_of_to_words_and_can_be_read_again():
    model = tiny("bert")
    stream = make_stream(model, TREES, make_stream_settings("raw", query="first", batch_size=5))
    assert isinstance(stream, hs.core.probe.WordStream)
    once = list(stream)
    assert [len(maps.examples) for maps in once] == [5, 5, 2]
    for maps in once:
        expected = hs.to_words(hs.view(hs.capture(model, list(maps.examples)), "raw"), "first")
        torch.testing.assert_close(maps.weights, expected.weights)
        assert maps.keys.word.tolist() == expected.keys.word.tolist()
    for maps, again in zip(once[1:], stream.batches(1), strict=True):
        torch.testing.assert_close(maps.weights, again.weights)


def test_embeddings_of_a_word_are_the_mean_over_its_tokens():
    model = hs.load()
    stream = make_stream(model, TREES, make_stream_settings("raw"))
    vectors = stream.embed(["cat", "tokenizers"])
    table, ids = model.network.get_input_embeddings().weight, model.tokenizer.convert_tokens_to_ids
    pieces = model.tokenizer.tokenize("tokenizers")
    assert len(pieces) > 1
    torch.testing.assert_close(vectors[0], table[ids("cat")].detach())
    torch.testing.assert_close(vectors[1], table[ids(pieces)].mean(0).detach())


def test_random_weights_are_other_weights_of_the_same_model_and_the_same_for_a_seed():
    model = tiny("bert")
    first, second, third = (randomize(model, seed) for seed in (0, 0, 1))
    assert first.weights_hash == second.weights_hash != third.weights_hash != model.weights_hash
    assert first.network.config.to_dict() == model.network.config.to_dict()
    result = probe(TREES, PROBE, random_weights=True)
    plain, random = probe(TREES, PROBE), hs.probe(first, TREES, PROBE, lens="raw", progress=False)
    assert list(result["predictor"].values) == ["head", "fixed_offset", "right_branching", "random_weights"]
    np.testing.assert_array_equal(result["accuracy"].isel(predictor=slice(3)), plain["accuracy"])
    expected = random["accuracy"].sel(predictor="head").values
    np.testing.assert_array_equal(result["accuracy"].sel(predictor="random_weights"), expected)


def test_texts_without_words_are_split():
    examples = [hs.Example(str(row), "the cat sat .", columns={"mentions": ((0, 1, "a", ""),)}) for row in range(4)]
    with pytest.raises(hs.InputError, match="has no syntactic tree"):
        probe(examples, PROBE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"query": "last"}, "query='last' is not known. Give 'mean' or 'first'"),
        ({"site": "cross"}, "cross attention has two"),
        ({"page_size": 3}, "No option of hs.probe is called 'page_size'"),
    ],
)
def test_options_that_a_probe_does_not_have_are_refused(options, message):
    with pytest.raises(hs.InputError, match=message):
        probe(TREES, PROBE, **options)


def test_a_lens_of_gradients_is_refused():
    with pytest.raises(hs.InputError, match="'gradient' needs the gradient of a prediction, and a probe makes none"):
        hs.probe(tiny("bert"), TREES, PROBE, lens="gradient")


def test_lenses_that_merge_heads_and_causal_models_are_read_too():
    merged = hs.probe(tiny("bert"), TREES, PROBE, lens="rollout", progress=False)
    assert merged.sizes["head"] == 1
    causal = hs.probe(tiny("gpt2"), TREES, PROBE, lens="raw", progress=False)
    assert float(causal["accuracy"].max()) <= 1
