"""Where the score of a target is read."""

import pytest
import torch
import transformers

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.target import parse_target
from headscope.engine.capture import prepare_inputs
from headscope.engine.load import load
from headscope.engine.readout import find_readout
from tests.heads import headed
from tests.models import KINDS, text, tokenizer


def read(model, texts, target):
    inputs = prepare_inputs(model, texts, None, max_length=None, pad_to=None)
    with torch.no_grad():
        return find_readout(model, inputs, model.network(**inputs.tensors), parse_target(target))


def test_the_next_word_is_read_at_the_last_word_of_the_text():
    """The tokenizer closes texts with [SEP], which the text that is continued does not have."""
    assert read(headed("gpt2", "causal"), ["the cat sat", "it slept"], "next").position.tolist() == [3, 2]
    written = read(headed("gpt2", "causal"), ["the cat sat [MASK]"], "next")
    assert written.position.tolist() == [4]  # special, but no end of a text


def test_a_decoder_reads_at_its_last_word_or_at_its_start():
    model = headed("bart", "seq2seq")
    assert read(model, [("the cat", "it slept on"), ("a dog", "it")], "next").position.tolist() == [4, 2]
    assert read(model, ["the cat", "a dog ran"], "next").position.tolist() == [0, 0]


def test_replaced_token_detection_is_no_classifier():
    config = transformers.ElectraConfig(**KINDS["electra"], num_labels=5)  # as many as tokens of the first text
    network = transformers.ElectraForPreTraining(config).eval()
    model = load(network, tokenizer=tokenizer())
    for texts in (["the cat sat"], [text(9)]):
        with pytest.raises(InputError, match="ElectraForPreTraining.*Give a function of its output"):
            read(model, texts, "predicted")


def test_a_model_without_a_limit_of_positions_has_importances():
    model = headed("xlnet", "classification")
    assert len(hs.importances(model, "the cat sat", "blank_out").scores[0]) == 5
    assert hs.importances(model, "the cat sat", "blank_out", max_length=9).tokens
