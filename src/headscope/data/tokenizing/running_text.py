"""The text of an example cut at its tokens, so that it can be shown as it was written."""

from collections.abc import Sequence
from typing import Any

from headscope.core.example import Example
from headscope.data.tokenizing.shorten import shorten_examples


def split_running_text(
    tokenizer: Any, example: Example, tokens: Sequence[str], max_length: int | None = None, *, use_pair: bool = True
) -> tuple[str, ...]:
    """Return a piece of text for each token, with the space before it; joined they are the text that was read.

    Special tokens that the tokenizer adds are pieces of their own. Slow tokenizers give no offsets: then the tokens
    themselves are returned, with spaces between them.
    """
    if not getattr(tokenizer, "is_fast", False):
        return _space_out(tokens)
    truncated = max_length == len(tokens)
    if truncated:
        (example,) = shorten_examples(tokenizer, [example], max_length, use_pair=use_pair)
    words = None if example.words is None else list(example.words)
    encoding = tokenizer(
        example.text if words is None else words,
        example.pair if use_pair else None,
        is_split_into_words=words is not None,
        truncation=truncated,
        max_length=max_length if truncated else None,
        return_offsets_mapping=True,
        verbose=False,
    )
    offsets, sides = encoding["offset_mapping"], encoding.sequence_ids()
    if len(offsets) != len(tokens):
        return _space_out(tokens)
    pieces: list[str] = []
    ends = {0: 0, 1: 0}
    last_word = None
    for (start, end), side, word, token in zip(offsets, sides, encoding.word_ids(), tokens, strict=True):
        if side is None:
            pieces.append(f" {token}" if pieces else token)
        elif words is not None and side == 0:
            pieces.append((" " if word != last_word and pieces else "") + words[word or 0][start:end])
        else:
            text = (example.pair or "") if side else example.text
            piece = text[min(ends[side], end) : end]
            after_special = bool(pieces) and ends[side] == 0
            pieces.append(f" {piece.lstrip()}" if after_special else piece)
            ends[side] = max(ends[side], end)
        last_word = word
    return tuple(pieces)


def _space_out(tokens: Sequence[str]) -> tuple[str, ...]:
    return tuple(token if index == 0 else f" {token}" for index, token in enumerate(tokens))
