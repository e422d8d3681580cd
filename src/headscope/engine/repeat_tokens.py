"""`hs.repeat_tokens`: random tokens of a model's vocabulary, repeated, on which induction heads show."""

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.options import takes_options
from headscope.engine.batch import max_input_length
from headscope.engine.model import check_model
from headscope.engine.options import RepeatTokensOptions

CHUNK = 2048
"""Number of words that are tokenized at a time, to find those that are one token each."""


@takes_options(RepeatTokensOptions)
def repeat_tokens(options: RepeatTokensOptions) -> list[Example]:
    """Return texts of random words of the model's vocabulary, each text twice in a row.

    All words of a half are different and are one token each; special tokens are not among them. In the second half
    nothing but the first tells which token comes next: what a head does there is copying from before, not grammar.
    The tokenizer may add its own special tokens around a text.

    >>> data = hs.measure(model, hs.repeat_tokens(model, 16, count=8), statistics=["induction"], progress=False)
    >>> round(float(data.induction_uniform.isel(lens=0).mean()), 3)  # of 34 tokens one
    0.029
    """
    model = options.model
    _check_sizes(model, options.tokens, options.count)
    draw = random.Random(options.seed)
    prefix, words = _find_words(model.tokenizer, options.tokens, options.tokens * options.count, draw)
    halves = [draw.sample(words, options.tokens) for _ in range(options.count)]
    texts = [prefix + " ".join([*half, *half]) for half in halves]
    for text, row in zip(texts, _tokenize(model.tokenizer, texts), strict=True):
        if len(row) != 2 * options.tokens or row[: options.tokens] != row[options.tokens :]:
            raise InputError(
                f"This tokenizer does not split words one by one: the repeated text {text[:60]!r} is not the same "
                "tokens twice. Give hs.capture a tokenized batch with input_ids of your own."
            )
    return [Example(str(index), text) for index, text in enumerate(texts)]


def _check_sizes(model: Any, tokens: int, count: int) -> None:
    check_model(model)
    if model.tokenizer is None:
        raise InputError("Repeated tokens are words of a tokenizer, and this model has none. Load it with tokenizer=….")
    if tokens < 1 or count < 1:
        raise InputError(f"tokens and count must be at least 1, but got tokens={tokens} and count={count}.")
    longest, added = max_input_length(model), model.tokenizer.num_special_tokens_to_add(pair=False)
    if longest is not None and 2 * tokens + added > longest:
        raise InputError(
            f"{tokens} tokens repeated are {2 * tokens + added} with special tokens, but {model.spec} reads {longest}. "
            f"Give tokens={(longest - added) // 2} or less."
        )


def _find_words(tokenizer: Any, least: int, enough: int, draw: random.Random) -> tuple[str, list[str]]:
    """Return words that are one token wherever they stand in a text, and what a text of them begins with.

    Byte-level tokenizers have another token for a word at the beginning of a text, unless a space is before it.
    """
    ids = sorted(set(tokenizer.get_vocab().values()) - set(tokenizer.all_special_ids))
    draw.shuffle(ids)
    found: dict[str, list[str]] = {}
    for prefix in ("", " "):
        found[prefix] = list(islice(_iterate_words(tokenizer, ids, prefix), enough))
        if len(found[prefix]) >= least:
            return prefix, found[prefix]
    raise InputError(
        f"{least} different words of one token each are asked for, but this tokenizer has "
        f"{max(map(len, found.values()))} of them. Give fewer tokens."
    )


def _iterate_words(tokenizer: Any, ids: Sequence[int], prefix: str) -> Iterator[str]:
    for start in range(0, len(ids), CHUNK):
        chunk = ids[start : start + CHUNK]
        words = [tokenizer.decode([number]).strip() for number in chunk]
        rows = _tokenize(tokenizer, [f"{prefix}{word} {word}" for word in words])
        for number, word, row in zip(chunk, words, rows, strict=True):
            if word.isprintable() and row == [number, number]:
                yield word


def _tokenize(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    rows: list[list[int]] = tokenizer(list(texts), add_special_tokens=False, padding=False)["input_ids"]
    return rows
