"""Tokens and their words, for all kinds of tokenizers."""

from functools import cache

import pytest
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.tagging.tag import tag_examples
from headscope.data.tokenizing.encode import align_words, encode
from headscope.data.tokenizing.words import split_words

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXT = "Mr. O'Hara didn't read the well-known book; unbelievably, naïve 東京 readers (e.g. Kim's) loved it 😀!"
LEARNED = [TEXT, "the cats were reading books", "unable to read believable words", "it did n't"] * 3


def fast(backend, decoder=None, **options):
    backend.post_processor = options.pop("after", None) or processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    backend.decoder = decoder
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


@cache
def wordpiece():
    """As BERT: lower case, no accents, punctuation apart, pieces with ##."""
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.train_from_iterator(LEARNED, trainers.WordPieceTrainer(vocab_size=90, special_tokens=SPECIAL))
    return fast(backend, decoders.WordPiece())


@cache
def byte_level(space=False):
    """As GPT-2 and RoBERTa: bytes, the space before a word belongs to its first token."""
    backend = Tokenizer(models.BPE(unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(
        LEARNED, trainers.BpeTrainer(vocab_size=320, special_tokens=SPECIAL, initial_alphabet=alphabet)
    )
    return fast(backend, decoders.ByteLevel())


@cache
def byte_level_trimmed():
    """As RoBERTa: offsets without the space."""
    backend = Tokenizer.from_str(byte_level().backend_tokenizer.to_str())
    return fast(backend, decoders.ByteLevel(), after=processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2)))


@cache
def metaspace():
    """As T5 and Llama: ▁ for the space, a unigram model over it."""
    backend = Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.train_from_iterator(
        LEARNED, trainers.UnigramTrainer(vocab_size=90, special_tokens=SPECIAL, unk_token="[UNK]")
    )
    return fast(backend, decoders.Metaspace())


@cache
def across():
    """Tokens that may run across words: no pre-tokenizer at all."""
    backend = Tokenizer(models.BPE(unk_token="[UNK]"))
    backend.train_from_iterator(LEARNED, trainers.BpeTrainer(vocab_size=160, special_tokens=SPECIAL))
    return fast(backend)


TOKENIZERS = {
    "wordpiece": wordpiece,
    "byte level": byte_level,
    "byte level, trimmed": byte_level_trimmed,
    "metaspace": metaspace,
    "across": across,
}


def with_words(text, pair=None):
    columns = {"spans": tuple(split_words(text))}
    return Example(
        "0", text, pair, columns=columns if pair is None else columns | {"pair_spans": tuple(split_words(pair))}
    )


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_every_token_belongs_to_the_word_of_its_first_character(kind):
    """Compare with a lookup of every character."""
    example = with_words(TEXT)
    (row,) = encode(TOKENIZERS[kind](), [example])
    encoding = TOKENIZERS[kind]()(TEXT, return_offsets_mapping=True)
    spans = split_words(TEXT)
    letters = [next((n for n, (a, b) in enumerate(spans) if a <= index < b), -1) for index in range(len(TEXT))]
    for word, special, (start, end) in zip(row.word, row.special, encoding["offset_mapping"], strict=True):
        first = next((index for index in range(start, end) if not TEXT[index].isspace()), None)
        assert word == (-1 if special or first is None else letters[first])


@pytest.mark.parametrize("kind", ["wordpiece", "byte level", "byte level, trimmed"])
def test_every_word_has_a_token(kind):
    (row,) = encode(TOKENIZERS[kind](), [with_words(TEXT)])
    assert {word for word in row.word if word >= 0} == set(range(len(split_words(TEXT))))
    assert [word for word in row.word if word >= 0] == sorted(word for word in row.word if word >= 0)


def test_punctuation_and_clitics_are_words_of_their_own():
    (row,) = encode(wordpiece(), [with_words("it didn't; read")])
    pieces = ["", "", "", "", ""]
    for piece, word in zip(row.text, row.word, strict=True):
        if word >= 0:
            pieces[word] += piece.removeprefix("##")
    assert pieces == ["it", "did", "n't", ";", "read"]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_the_words_of_a_pair_are_numbered_after_those_of_the_text(kind):
    example = with_words("the cats read.", "it did; unbelievably!")
    (row,) = encode(TOKENIZERS[kind](), [example])
    middle = row.special.index(True, 1)
    assert max(row.word[:middle]) <= 3
    after = [word for word in row.word[middle:] if word >= 0]
    assert (min(after), max(after)) == (4, 8) or kind == "across"
    assert all(word >= 4 for word in after)


def test_a_token_across_two_words_belongs_to_the_first():
    example = Example("0", "of the sea", columns={"spans": ((0, 2), (3, 6), (7, 10))})
    assert align_words(example, [(0, 4), (4, 6), (6, 10)], [0, 0, 0]) == [0, 1, 2]


def test_tokens_outside_all_words_have_no_word():
    example = Example("0", "a - b", columns={"spans": ((0, 1), (4, 5))})
    words = align_words(example, [(0, 0), (0, 1), (1, 2), (2, 3), (3, 5), (0, 0)], [None, 0, 0, 0, 0, None])
    assert words == [-1, 0, -1, -1, 1, -1]


def test_tagged_examples_have_one_tag_for_each_word_of_their_tokens():
    examples = tag_examples([Example("0", TEXT), Example("1", "the cats read.", pair="it did")])
    for row, example in zip(encode(byte_level(), examples), examples, strict=True):
        assert max(row.word) == len(example.columns["tags"]) - 1


def test_words_of_an_example_are_those_of_the_tokens():
    example = Example("0", "it didn't", words=("it", "did", "n't"), columns={"tags": ("PRON", "AUX", "PART")})
    (row,) = encode(wordpiece(), [example])
    assert sorted({word for word in row.word if word >= 0}) == [0, 1, 2]


def test_a_truncated_text_keeps_the_words_of_its_tokens():
    with pytest.warns(UserWarning, match="were truncated"):
        (row,) = encode(wordpiece(), [with_words(TEXT)], max_length=8)
    (whole,) = encode(wordpiece(), [with_words(TEXT)])
    assert row.word[:-1] == whole.word[:7]


def test_a_slow_tokenizer_is_refused(tmp_path):
    class Slow(transformers.PreTrainedTokenizer):
        def __init__(self, **options):
            super().__init__(unk_token="[UNK]", pad_token="[PAD]", **options)

        vocab_size = 2

        def get_vocab(self):
            return {"[UNK]": 0, "[PAD]": 1}

        def _tokenize(self, text, **_):
            return text.split()

        def _convert_token_to_id(self, token):
            return 0

        def _convert_id_to_token(self, index):
            return "[UNK]"

    with pytest.raises(InputError, match="words of example '0' cannot be aligned .* Slow is a slow tokenizer, .* fast"):
        encode(Slow(), [with_words("the cat")])
