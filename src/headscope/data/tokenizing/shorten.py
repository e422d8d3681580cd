"""The beginning of a long text that is enough for its first tokens.

A tokenizer reads a whole text before it truncates it, and keeps what is left over: this takes minutes for a text of
10 MB, and grows with the square of the lengths of a pair.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headscope.core.example import Example

MIN_SIZE = 512
"""Texts up to twice as many characters, or lists of as many words, are never shortened."""

CHARACTERS = 16
"""Characters of a text for each token that is needed, to begin with."""

MARGIN = 64
"""As many tokens after the last one that is needed must be the same, too."""

COUNTED = 200_000
"""Tokens of texts up to this many characters are counted, for the warning that they are truncated."""


def shorten_examples(
    tokenizer: Any,
    examples: Sequence[Example],
    max_length: int | None,
    *,
    use_pair: bool = True,
    longer_than: int = 0,
) -> list[Example]:
    """Return the examples, those with a long text with a beginning of it that is truncated to the same tokens.

    Texts of up to `longer_than` characters or words stay whole. Unchanged examples are the same objects.
    """
    if max_length is None or getattr(tokenizer, "truncation_side", "right") != "right":
        return list(examples)
    least = max(longer_than, 2 * _first_size(max_length))
    return [_shorten_example(tokenizer, example, max_length, least, use_pair) for example in examples]


def _shorten_example(tokenizer: Any, example: Example, max_length: int, least: int, use_pair: bool) -> Example:
    text: Any = example.text if example.words is None else example.words
    pair = example.pair if use_pair else None
    is_long = [side is not None and len(side) > least for side in (text, pair)]
    if not any(is_long):
        return example
    if pair is None:
        return _replace_texts(example, shorten(tokenizer, text, max_length), example.pair)
    if all(is_long):
        return _replace_texts(example, *_shorten_both(tokenizer, text, pair, max_length))
    # the long text must stay the longer one, which keeps the odd token
    if is_long[0]:
        return _replace_texts(example, shorten(tokenizer, text, max_length + _count(tokenizer, pair)), pair)
    return _replace_texts(example, text, shorten(tokenizer, pair, max_length + _count(tokenizer, text)))


def _shorten_both(tokenizer: Any, text: Any, pair: str, max_length: int) -> tuple[Any, str]:
    """Shorten both texts of a pair; the longer one stays the longer one if one of them keeps an odd token."""
    if (max_length - tokenizer.num_special_tokens_to_add(pair=True)) % 2 == 0:
        return shorten(tokenizer, text, max_length), shorten(tokenizer, pair, max_length)
    counts = _count(tokenizer, text), _count(tokenizer, pair)
    if counts[0] == counts[1]:
        return text, pair
    if counts[0] < counts[1]:
        text = shorten(tokenizer, text, max_length)
        return text, shorten(tokenizer, pair, max_length + _count(tokenizer, text))
    pair = shorten(tokenizer, pair, max_length)
    return shorten(tokenizer, text, max_length + _count(tokenizer, pair)), pair


def _replace_texts(example: Example, text: Any, pair: str | None) -> Example:
    if example.words is None:
        return example if text is example.text and pair is example.pair else replace(example, text=text, pair=pair)
    return example if text is example.words and pair is example.pair else replace(example, words=text, pair=pair)


def shorten(tokenizer: Any, text: Any, tokens: int) -> Any:
    """Return the beginning of a text, or of a tuple of words, with the same first tokens; the text itself if unsure.

    What follows a token can change it, but only from nearby: two beginnings, one twice as long as the other, must agree
    in all the tokens and in `MARGIN` more.
    """
    needed, size = tokens + MARGIN, _first_size(tokens)
    while 2 * size < len(text):
        short, long = (_list_ids(tokenizer, text[:end])[:needed] for end in (size, 2 * size))
        if len(short) == needed and short == long:
            return text[: 2 * size]
        size *= 4
    return text


def _first_size(tokens: int) -> int:
    return max(MIN_SIZE, CHARACTERS * tokens)


def _count(tokenizer: Any, text: Any) -> int:
    return len(_list_ids(tokenizer, text))


def _list_ids(tokenizer: Any, text: Any) -> list[int]:
    words = not isinstance(text, str)
    options = {"add_special_tokens": False, "is_split_into_words": words, "verbose": False}
    return list(tokenizer(list(text) if words else text, **options)["input_ids"])
