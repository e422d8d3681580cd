"""Where the score of a target is read."""

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.target import parse_target
from headscope.engine.capture import prepare_inputs
from headscope.engine.load import load
from headscope.engine.readout import find_readout, find_word_id
from tests.heads import headed, headed_network
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


def make_bpe(space, **parts):
    """Return a tokenizer that knows 'mat' without a space before it, and with one only if it is a mark of its own."""
    merges = [("m", "a"), ("ma", "t")] + ([("▁", "mat")] if space == "▁" else [])
    pieces = [space, "m", "a", "t", "ma", "mat", *(["▁mat"] if space == "▁" else [])]
    backend = Tokenizer(models.BPE({piece: index for index, piece in enumerate(pieces)}, merges))
    for name, part in parts.items():
        setattr(backend, name, part)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend)


def test_a_word_is_not_taken_for_the_end_of_another():
    """Of byte-level tokenizers, the token without a space continues a word."""
    bytes_ = make_bpe("Ġ", pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False))
    with pytest.raises(InputError, match="'mat' must be one token of the tokenizer, but is 2 tokens"):
        find_word_id(bytes_, "mat")
    pieces = make_bpe("▁", normalizer=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]))
    assert find_word_id(pieces, "mat") == 6


def test_an_encoder_decoder_classifier_is_refused():
    model = headed("bart", "classification")
    sentence = "BartForSequenceClassification reads each text in its encoder and again in its decoder"
    ids = tokenizer()(["the cat sat"], return_tensors="pt")["input_ids"]
    for verb in (hs.capture, hs.importances):
        with pytest.raises(InputError, match=sentence):
            verb(model, ["the cat sat"])
    with pytest.raises(InputError, match=sentence):
        hs.capture(model, {"input_ids": ids})


def test_a_model_of_choices_is_captured_but_has_no_importances():
    model = headed("bert", "choice")
    with pytest.raises(InputError, match="BertForMultipleChoice compares several choices, but importances explain"):
        hs.importances(model, ["the cat sat"])
    assert hs.capture(model, "the cat", "a dog").layers == (0, 1)


def test_a_regression_of_several_numbers_needs_a_function():
    network = headed_network("bert", "classification", num_labels=3, problem_type="regression")
    with pytest.raises(InputError, match="predicts 3 numbers for each text. Give a function of its output"):
        read(load(network, tokenizer=tokenizer()), ["the cat"], "predicted")
