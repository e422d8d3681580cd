"""A very long text is tokenized from its beginning alone, with the same first tokens."""

import random
from dataclasses import replace

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from headscope.core.errors import DataWarning
from headscope.core.example import Example
from headscope.data.tokenizing import shorten as module
from headscope.data.tokenizing.encode import encode
from headscope.data.tokenizing.shorten import shorten, shorten_examples
from headscope.training.encode import tokenize_examples

WORDS = "the cat sat on a mat and naïve cafés were 1,024 times over-priced , said <mask> don't été ﬁne".split()
CORPUS = [" ".join(random.Random(seed).choices(WORDS, k=30)) for seed in range(50)]


def write(size, seed=0, space=" "):
    return space.join(random.Random(seed).choices(WORDS, k=size))


def train(model, trainer, normalizer=None, splitter=None):
    tokens = Tokenizer(model)
    if normalizer:
        tokens.normalizer = normalizer
    if splitter:
        tokens.pre_tokenizer = splitter
    tokens.train_from_iterator(CORPUS, trainer)
    tokens.decoder = decoders.ByteLevel()
    ids = [(name, tokens.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokens.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", ids)
    special = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "<mask>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokens, pad_token="[SEP]", **special)


SPECIAL = {"special_tokens": ["[UNK]", "[CLS]", "[SEP]", "<mask>"]}
TOKENIZERS = {
    "wordpiece": lambda: train(
        models.WordPiece(unk_token="[UNK]"),
        trainers.WordPieceTrainer(vocab_size=90, **SPECIAL),
        normalizers.BertNormalizer(),
        pre_tokenizers.BertPreTokenizer(),
    ),
    "byte-level": lambda: train(
        models.BPE(), trainers.BpeTrainer(vocab_size=300, **SPECIAL), splitter=pre_tokenizers.ByteLevel()
    ),
    "unigram": lambda: train(
        models.Unigram(),
        trainers.UnigramTrainer(vocab_size=90, unk_token="[UNK]", **SPECIAL),
        normalizers.NFKC(),
        pre_tokenizers.Metaspace(),
    ),
    "whole-text": lambda: train(  # as Llama's: the text is one word
        models.BPE(unk_token="[UNK]"), trainers.BpeTrainer(vocab_size=120, **SPECIAL), normalizers.Replace(" ", "▁")
    ),
}


@pytest.fixture(scope="module", params=list(TOKENIZERS))
def tokenizer(request):
    return TOKENIZERS[request.param]()


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "MIN_SIZE", 128)
    monkeypatch.setattr(module, "MARGIN", 16)
    for name in ("headscope.data.tokenizing.encode", "headscope.training.encode"):
        monkeypatch.setattr(f"{name}.COUNTED", 1000)


@pytest.mark.parametrize("space", [" ", "   \n", ""])
@pytest.mark.parametrize("tokens", [1, 8, 200])
def test_the_first_tokens_are_those_of_the_whole_text(tokenizer, tokens, space):
    for seed in range(2):
        text = write(3000, seed, space)
        whole = tokenizer(text, add_special_tokens=False)["input_ids"]
        beginning = shorten(tokenizer, text, tokens)
        assert tokenizer(beginning, add_special_tokens=False)["input_ids"][:tokens] == whole[:tokens]
        if space:
            assert len(beginning) < len(text) / 2


def test_an_endless_word_is_read_to_its_end():
    wordpiece = TOKENIZERS["wordpiece"]()
    text = "the cat " + "a" * 100_000 + " sat"  # one unknown token, not a hundred known ones
    assert shorten(wordpiece, text, 50) is text


def truncate_pair(tokenizer, example, max_length):
    """Literally: remove the last token of the longer text until both fit; of equal ones, that of the second."""
    texts = [tokenizer(part, add_special_tokens=False)["input_ids"] for part in (example.text, example.pair)]
    rooms = [min(len(ids), max_length) for ids in texts]
    while sum(rooms) + 3 > max_length:
        longer = rooms[0] > rooms[1] or (rooms[0] == rooms[1] and len(texts[0]) <= len(texts[1]))
        rooms[0 if longer else 1] -= 1
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    return [cls, *texts[0][: rooms[0]], sep, *texts[1][: rooms[1]], sep]


@pytest.mark.parametrize("max_length", [7, 20, 21])
@pytest.mark.parametrize("lengths", [(400, 3), (3, 400), (400, 30), (30, 400), (50, 49), (60, 71)])
def test_pairs_are_truncated_as_the_tokenizer_does(tokenizer, lengths, max_length):
    example = Example("a", *(write(length, seed) for seed, length in enumerate(lengths)))
    expected = tokenizer(example.text, example.pair, truncation=True, max_length=max_length)["input_ids"]
    assert truncate_pair(tokenizer, example, max_length) == expected
    with pytest.warns(DataWarning, match="1 of 1 texts are longer than"):
        (row,) = encode(tokenizer, [example], max_length=max_length)
    assert row.inputs["input_ids"] == expected


@pytest.mark.parametrize("max_length", [7, 20, 21])
@pytest.mark.parametrize("lengths", [(1000, 1100), (1100, 1000)])  # a minute of the tokenizer's own truncation
def test_two_long_texts_share_the_tokens(tokenizer, lengths, max_length):
    example = Example("a", *(write(length, seed) for seed, length in enumerate(lengths)))
    with pytest.warns(DataWarning, match="1 of 1 texts are longer than"):
        (row,) = encode(tokenizer, [example], max_length=max_length)
    assert row.inputs["input_ids"] == truncate_pair(tokenizer, example, max_length)


def test_lists_of_words_are_shortened():
    tokenizer = TOKENIZERS["byte-level"]()
    example = Example("a", "", words=tuple(write(5000).split()))
    (short,) = shorten_examples(tokenizer, [example], 9)
    assert short.words == example.words[:288]
    ids = [tokenizer(list(part.words), is_split_into_words=True)["input_ids"][:9] for part in (short, example)]
    assert ids[0] == ids[1]


def test_the_warning_counts_characters_where_tokens_were_not_counted():
    tokenizer = TOKENIZERS["wordpiece"]()
    text = write(3000)
    examples = [Example("long", text), Example("short", write(30))]
    with pytest.warns(DataWarning, match=rf"were truncated: 'long' \({len(text):,} characters\) and 'short' \(\d"):
        rows = tokenize_examples(tokenizer, examples, 9)
    assert rows[0]["input_ids"] == tokenizer(text, truncation=True, max_length=9)["input_ids"]


def test_texts_are_whole_without_a_length_and_where_their_end_is_read():
    tokenizer = TOKENIZERS["wordpiece"]()
    examples = [Example("a", write(3000))]
    assert shorten_examples(tokenizer, examples, None)[0] is examples[0]
    tokenizer.truncation_side = "left"
    assert shorten_examples(tokenizer, examples, 9)[0] is examples[0]
    assert shorten_examples(tokenizer, [replace(examples[0], pair=write(3000))], 9)[0].text == examples[0].text
