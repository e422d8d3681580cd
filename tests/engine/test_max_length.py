"""`max_length`: as many tokens as it says, or a sentence."""

import copy
from dataclasses import replace
from functools import partial

import pytest
from tokenizers import processors
from transformers import AutoModelForSequenceClassification

import headscope as hs
from headscope.core.errors import DataWarning, InputError
from tests.models import network, text, tiny, tokenizer

BERT = tiny("bert")


@pytest.mark.parametrize("max_length", [-5, 0, 1, 2])
def test_a_length_without_room_for_a_token_of_each_text_is_an_error(max_length):
    sentence = (
        f"max_length={max_length} leaves no room for the texts: the tokenizer adds 2 special tokens to each text."
    )
    for verb in (hs.capture, hs.stream, partial(hs.by_layer, see=len), partial(hs.measure, statistics="peak")):
        with pytest.raises(InputError, match=f"{sentence} Give at least 3."):
            verb(BERT, [text(9)], max_length=max_length)
    with pytest.raises(InputError, match=r"adds 3 special tokens to each pair\. Give at least 5"):
        hs.capture(BERT, text(9), text(9), max_length=4)


@pytest.mark.filterwarnings("ignore::headscope.core.errors.DataWarning")
def test_a_length_is_the_number_of_tokens():
    for width in (3, 4, 10):
        assert hs.capture(BERT, text(9), max_length=width).attention[0].shape[-1] == min(width, 11)
    assert hs.capture(BERT, text(9), text(9), max_length=5).keys.text[0][2::2] == ["[SEP]", "[SEP]"]
    bare = replace(BERT, tokenizer=tokenizer_without_special_tokens())
    assert hs.capture(bare, text(9), max_length=1).attention[0].shape[-1] == 1
    with pytest.raises(InputError, match="max_length=0 leaves no room for the texts: the tokenizer adds 0 special"):
        hs.capture(bare, text(9), max_length=0)


def tokenizer_without_special_tokens():
    tokens = copy.deepcopy(BERT.tokenizer)
    tokens.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A", pair="$A $B", special_tokens=[]
    )
    return tokens


def test_a_length_beyond_the_positions_is_an_error_unless_they_are_rotary():
    with pytest.raises(InputError, match=r"max_length=65 is more than the 64 tokens that BertModel can read"):
        hs.capture(BERT, text(9), max_length=65)
    llama = tiny("llama")
    positions = llama.network.config.max_position_embeddings
    assert hs.capture(llama, text(9), max_length=positions + 1).attention[0].shape[-1] == 11


def test_a_length_of_pairs_counts_what_the_decoder_reads():
    model = tiny("t5")
    with pytest.raises(InputError, match=r"max_length=3 leaves no room .* Give at least 4"):
        hs.capture(model, text(9), text(9), max_length=3)
    with pytest.warns(DataWarning, match="longer than"):
        trace = hs.capture(model, text(9), text(9), max_length=4, site="cross")
    assert trace.attention[0].shape[-2:] == (3, 4)


def test_scores_and_fine_tuning_refuse_such_lengths(tmp_path):
    config = network("bert").config
    judge = hs.load(AutoModelForSequenceClassification.from_config(config).eval(), tokenizer=tokenizer())
    data = [{"text": "the cat", "label": 0}, {"text": "a dog", "label": 1}]
    with pytest.raises(InputError, match="max_length=0 leaves no room"):
        hs.score(judge, data, max_length=0)
    with pytest.raises(InputError, match="max_length=-5 is too small. Give at least 3"):
        hs.finetune(BERT, data, out=tmp_path / "m", max_length=-5)
