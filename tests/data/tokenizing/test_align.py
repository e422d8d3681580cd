"""Tokens and the words they belong to, for every way of cutting text into tokens."""

from functools import cache

import pytest
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.tagging.tag import tag_examples
from headscope.data.tokenizing.align import words_of_tokens
from headscope.data.tokenizing.encode import encode
from headscope.data.tokenizing.words import split

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXT = "Mr. O'Hara didn't read the well-known book; unbelievably, naïve 東京 readers (e.g. Kim's) loved it 😀!"
LEARNED = [TEXT, "the cats were reading books", "unable to read believable words", "it did n't"] * 3


def fast(backend, decoder=None, **options):
    backend.post_processor = options.pop("after", None) or processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    backend.decoder = decoder
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]",
    )  # fmt: skip


@cache
def wordpiece():
    """As BERT: lower case, accents stripped, punctuation apart, pieces with ##."""
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
    """As RoBERTa says it: offsets without the space."""
    made = byte_level()
    backend = Tokenizer.from_str(made.backend_tokenizer.to_str())
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
    "wordpiece": wordpiece, "byte level": byte_level, "byte level, trimmed": byte_level_trimmed,
    "metaspace": metaspace, "across": across,
}  # fmt: skip


def with_words(text, pair=None):
    columns = {"spans": tuple(split(text))}
    return Example("0", text, pair, columns=columns if pair is None else columns | {"pair_spans": tuple(split(pair))})


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_every_token_belongs_to_the_word_that_its_first_letter_stands_in(kind):
    """Letter by letter: the literal way."""
    example = with_words(TEXT)
    (row,) = encode(TOKENIZERS[kind](), [example])
    found = TOKENIZERS[kind]()(TEXT, return_offsets_mapping=True)
    letters = [next((n for n, (a, b) in enumerate(split(TEXT)) if a <= place < b), -1) for place in range(len(TEXT))]
    for word, special, (start, end) in zip(row.word, row.special, found["offset_mapping"], strict=True):
        first = next((place for place in range(start, end) if not TEXT[place].isspace()), None)
        assert word == (-1 if special or first is None else letters[first])


@pytest.mark.parametrize("kind", ["wordpiece", "byte level", "byte level, trimmed"])
def test_every_word_has_a_token(kind):
    (row,) = encode(TOKENIZERS[kind](), [with_words(TEXT)])
    assert {word for word in row.word if word >= 0} == set(range(len(split(TEXT))))
    assert [word for word in row.word if word >= 0] == sorted(word for word in row.word if word >= 0)


def test_punctuation_and_clitics_are_words_of_their_own():
    (row,) = encode(wordpiece(), [with_words("it didn't; read")])
    pieces = ["", "", "", "", ""]
    for piece, word in zip(row.text, row.word, strict=True):
        if word >= 0:
            pieces[word] += piece.removeprefix("##")
    assert pieces == ["it", "did", "n't", ";", "read"]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_the_words_of_a_pair_are_counted_on(kind):
    example = with_words("the cats read.", "it did; unbelievably!")
    (row,) = encode(TOKENIZERS[kind](), [example])
    middle = row.special.index(True, 1)
    assert max(row.word[:middle]) <= 3
    after = [word for word in row.word[middle:] if word >= 0]
    assert (min(after), max(after)) == (4, 8) or kind == "across"
    assert all(word >= 4 for word in after)


def test_a_token_across_two_words_belongs_to_the_first():
    example = Example("0", "of the sea", columns={"spans": ((0, 2), (3, 6), (7, 10))})
    assert words_of_tokens(example, [(0, 4), (4, 6), (6, 10)], [0, 0, 0]) == [0, 1, 2]


def test_tokens_outside_all_words_belong_to_none():
    example = Example("0", "a - b", columns={"spans": ((0, 1), (4, 5))})
    found = words_of_tokens(example, [(0, 0), (0, 1), (1, 2), (2, 3), (3, 5), (0, 0)], [None, 0, 0, 0, 0, None])
    assert found == [-1, 0, -1, -1, 1, -1]


def test_tagged_examples_have_one_tag_for_each_word_of_their_tokens():
    examples = tag_examples([Example("0", TEXT), Example("1", "the cats read.", pair="it did")])
    for row, example in zip(encode(byte_level(), examples), examples, strict=True):
        assert max(row.word) == len(example.columns["tags"]) - 1


def test_words_given_ready_are_those_of_the_tokenizer():
    example = Example("0", "it didn't", words=("it", "did", "n't"), columns={"tags": ("PRON", "AUX", "PART")})
    (row,) = encode(wordpiece(), [example])
    assert sorted({word for word in row.word if word >= 0}) == [0, 1, 2]


def test_a_text_that_is_cut_keeps_the_words_of_what_is_left():
    with pytest.warns(UserWarning, match="were cut"):
        (row,) = encode(wordpiece(), [with_words(TEXT)], longest=8)
    (whole,) = encode(wordpiece(), [with_words(TEXT)])
    assert row.word[:-1] == whole.word[:7]


def test_a_slow_tokenizer_is_refused_with_a_sentence(tmp_path):
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

    with pytest.raises(InputError, match="words of example '0' cannot be matched .* Slow is a slow tokenizer, .* fast"):
        encode(Slow(), [with_words("the cat")])
