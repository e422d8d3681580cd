"""Readable tokens for all kinds of tokenizers."""

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from headscope.data.tokenizing.readable import make_readable


def byte_level():
    """A byte-level tokenizer with single bytes and a few merges."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merged = ["Ġt", "he", "Ġthe"]
    vocab = {piece: index for index, piece in enumerate([*alphabet, *merged, "<s>"])}
    backend = Tokenizer(models.BPE(vocab, [("Ġ", "t"), ("h", "e"), ("Ġt", "he")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>")


def metaspace():
    pieces = ["<unk>", "▁the", "▁", "ing", "<0xE4>", "<0xB8>", "<0xAD>", "中", "שלום", "\n"]
    backend = Tokenizer(models.WordLevel({piece: index for index, piece in enumerate(pieces)}, unk_token="<unk>"))
    backend.decoder = decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>"), pieces


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" the", ["·the"]),
        ("a b", ["a", "·", "b"]),
        ("中", ["中(1/3)", "中(2/3)", "中(3/3)"]),
        ("🙂", ["🙂(1/4)", "🙂(2/4)", "🙂(3/4)", "🙂(4/4)"]),
        ("é", ["é(1/2)", "é(2/2)"]),
        ("\n", ["⏎"]),
        ("\t", ["⇥"]),
    ],
)
def test_byte_level_pieces_are_shown_as_characters(text, shown):
    tokenizer = byte_level()
    assert make_readable(tokenizer, tokenizer(text)["input_ids"]) == shown


def test_a_broken_character_is_shown_as_its_bytes():
    tokenizer = byte_level()
    ids = tokenizer("中")["input_ids"]
    assert make_readable(tokenizer, ids[:2]) == ["⟨E4⟩", "⟨B8⟩"]


def test_special_tokens_stay_as_they_are():
    tokenizer = byte_level()
    assert make_readable(tokenizer, [tokenizer.bos_token_id]) == ["<s>"]


def test_sentencepiece_marks_and_byte_pieces_are_read():
    tokenizer, pieces = metaspace()
    ids = [pieces.index(piece) for piece in ("▁the", "▁", "ing", "<0xE4>", "<0xB8>", "<0xAD>", "中", "שלום")]
    assert make_readable(tokenizer, ids) == ["·the", "·", "ing", "中(1/3)", "中(2/3)", "中(3/3)", "中", "שלום"]


def test_an_id_that_the_tokenizer_does_not_know_is_shown_as_it_is():
    assert make_readable(metaspace()[0], [7, 900]) == ["中", "⟨900⟩"]
