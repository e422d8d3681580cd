"""Repeated random tokens: the same tokens twice, whatever the tokenizer, and the null of induction on them."""

import pytest
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import headscope as hs
from headscope.core.errors import InputError
from headscope.engine.load import load
from tests.models import network, tiny


def tokenize(model, text):
    return model.tokenizer(text, add_special_tokens=False)["input_ids"]


def byte_level_model():
    """A GPT-2 whose tokenizer has other tokens for words at the beginning of a text, as the real one has."""
    pieces = ["a", "b", "c", "d", "e", "Ġ", "Ġa", "Ġb", "Ġc", "Ġd", "ab", "Ġab"]
    backend = Tokenizer(models.BPE({piece: index for index, piece in enumerate(pieces)}, MERGES))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return load(network("gpt2"), tokenizer=transformers.PreTrainedTokenizerFast(tokenizer_object=backend))


MERGES = [("Ġ", "a"), ("Ġ", "b"), ("Ġ", "c"), ("Ġ", "d"), ("a", "b"), ("Ġa", "b")]


@pytest.mark.parametrize("model", [tiny("bert"), byte_level_model()], ids=["words", "bytes"])
def test_texts_are_the_same_tokens_twice(model):
    for example in hs.repeat_tokens(model, 4, count=6):
        ids = tokenize(model, example.text)
        assert ids[:4] == ids[4:]
        assert len(set(ids)) == 4
        assert not set(ids) & set(model.tokenizer.all_special_ids)


def test_seeds_decide_the_texts():
    first, again, other = (hs.repeat_tokens(tiny("bert"), 5, count=3, seed=seed) for seed in (0, 0, 1))
    assert [example.text for example in first] == [example.text for example in again]
    assert [example.text for example in first] != [example.text for example in other]
    assert len({example.text for example in first}) == 3


def test_induction_is_measured_on_them_beside_its_exact_null():
    model = tiny("gpt2")
    data = hs.measure(model, hs.repeat_tokens(model, 6, count=4), statistics=["induction"], lens="raw", progress=False)
    # [CLS] a … f a … f [SEP]: the second a is the eighth token, the second f the thirteenth; the first a has no row
    null = sum(1 / seen for seen in range(8, 14)) / 6
    assert data.induction_uniform.values == pytest.approx(null)
    assert data.induction_n.values == pytest.approx(4)


def test_more_than_the_model_reads_is_refused():
    with pytest.raises(
        InputError, match=r"40 tokens repeated are 82 with special tokens, but .* reads 64. Give tokens=31"
    ):
        hs.repeat_tokens(tiny("bert"), 40)


def test_more_words_than_the_tokenizer_has_are_refused():
    with pytest.raises(InputError, match="7 different words of one token each are asked for, but .* has 6 of them"):
        hs.repeat_tokens(byte_level_model(), 7)


def test_a_model_without_a_tokenizer_is_refused():
    with pytest.raises(InputError, match="this model has none. Load it with tokenizer="):
        hs.repeat_tokens(load(network("bert")))
    with pytest.raises(InputError, match="must be at least 1, but got tokens=0 and count=64"):
        hs.repeat_tokens(tiny("bert"), 0)
