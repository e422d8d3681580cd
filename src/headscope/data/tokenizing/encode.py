"""Tokenize, truncate and pad texts, with a warning when texts are truncated."""

import warnings
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.core.lazy import LazyFields
from headscope.core.prose import join_words
from headscope.core.tokens import ROLES, Tokens
from headscope.data.tokenizing.readable import make_readable
from headscope.data.tokenizing.shorten import COUNTED, shorten_examples
from headscope.data.tokenizing.words import Span

EncodedExample = Mapping[str, Any]
"""The model inputs of one example as lists of integers."""


@dataclass(frozen=True)
class Encoded(LazyFields):
    """One tokenized example: the inputs of the model, and what each token is."""

    inputs: Mapping[str, Sequence[int]]
    text: Sequence[str]
    special: Sequence[bool]
    segment: Sequence[int]
    word: Sequence[int]
    role: Sequence[int]  # indices into ROLES


def encode(
    tokenizer: Any,
    examples: Sequence[Example],
    *,
    max_length: int | None = None,
    use_pair: bool = True,
    add_special: bool = True,
) -> list[Encoded]:
    """Tokenize every example; those longer than `max_length` are truncated, and a warning says how many.

    `use_pair=False` tokenizes the text alone, for models whose decoder reads the pair; `add_special=False` adds no
    special tokens, for texts that contain them already.
    """
    if tokenizer is None:
        raise InputError("This model has no tokenizer. Give one to hs.load(…, tokenizer=…), or pass a tokenized batch.")
    short = shorten_examples(tokenizer, examples, max_length, use_pair=use_pair, longer_than=COUNTED)
    rows = _encode_all(tokenizer, short, None, use_pair, add_special)
    lengths = [len(row.special) for row in rows]
    for index in warn_truncated(examples, lengths, max_length, "were truncated", shortened=short, stacklevel=5):
        (example,) = shorten_examples(tokenizer, [short[index]], max_length, use_pair=use_pair)
        (rows[index],) = _encode_all(tokenizer, [example], max_length, use_pair, add_special)
    _check(tokenizer, examples, rows)
    return rows


def tokenize(
    tokenizer: Any,
    texts: Sequence[str | list[str]],
    pairs: Sequence[str | None],
    *,
    max_length: int | None = None,
) -> list[EncodedExample]:
    """Tokenize texts; those of one form are tokenized together, which is many times as fast."""
    forms = {(isinstance(text, list), pair is None) for text, pair in zip(texts, pairs, strict=True)}
    if len(forms) > 1:
        return [
            row
            for text, pair in zip(texts, pairs, strict=True)
            for row in tokenize(tokenizer, [text], [pair], max_length=max_length)
        ]
    if not forms:
        return []
    ((split, single),) = forms
    encoding = tokenizer(
        list(texts),
        None if single else list(pairs),
        is_split_into_words=split,
        padding=False,
        truncation=max_length is not None,
        max_length=max_length,
        return_special_tokens_mask=True,
        verbose=False,
    )
    names = [name for name in encoding if name in (*tokenizer.model_input_names, "special_tokens_mask")]
    return [{name: encoding[name][index] for name in names} for index in range(len(texts))]


def warn_truncated(
    examples: Sequence[Example],
    lengths: Sequence[int],
    max_length: int | None,
    verb: str,
    *,
    shortened: Sequence[Example] | None = None,
    stacklevel: int,
) -> list[int]:
    """Warn of texts with more than `max_length` tokens, and return their indices.

    Of those that were tokenized `shortened`, the number of characters is given, because that of tokens is not known.
    """
    long = [index for index, length in enumerate(lengths) if max_length and length > max_length]
    if long:
        short = {index for index in long if shortened is not None and shortened[index] is not examples[index]}
        sizes = {index: _describe_size(examples[index]) if index in short else lengths[index] for index in long}
        names = join_words((f"'{examples[index].id}' ({sizes[index]})" for index in long), limit=3)
        warnings.warn(
            f"{len(long)} of {len(examples)} texts are longer than {max_length} tokens and {verb}: {names}. Truncated "
            "tokens are not part of any result.",
            DataWarning,
            stacklevel=stacklevel,
        )
    return long


def _describe_size(example: Example) -> str:
    return f"{len(example.text) + len(example.pair or ''):,} characters"


def pad_sequences(
    rows: Sequence[Encoded],
    fill: Mapping[str, int],
    *,
    width: int | None = None,
    device: Any = None,
    left: bool = False,
) -> tuple[dict[str, Tensor], Tokens]:
    """Pad rows on the right (or the left) to the longest or to `width`; the Tokens stay on the CPU."""
    table = partial(pad_lists, left=left, width=width)
    tables = {name: table([row.inputs[name] for row in rows], fill.get(name, 0)) for name in rows[0].inputs}
    inputs = {name: tensor.to(device, non_blocking=True) for name, tensor in tables.items()}
    tokens = Tokens.lazy(
        text=lambda _: [row.text for row in rows],
        real=table([[True] * len(row.special) for row in rows], False),
        special=table([row.special for row in rows], False),
        segment=table([row.segment for row in rows], -1),
        word=table([row.word for row in rows], -1),
        role=table([row.role for row in rows], 0),
    )
    return inputs, tokens


def pad_lists(rows: Sequence[Sequence[Any]], value: Any, *, left: bool, width: int | None = None) -> Tensor:
    """Return lists of different lengths as one tensor, padded on the left or right to the longest or to `width`."""
    longest = max(map(len, rows))
    if width is not None and width < longest:
        raise InputError(f"pad_to={width} is less than the longest text, which has {longest} tokens.")
    padding = [[value] * ((width or longest) - len(row)) for row in rows]
    pairs = zip(padding, rows, strict=True) if left else zip(rows, padding, strict=True)
    return torch.tensor([[*first, *second] for first, second in pairs])


def _encode_all(
    tokenizer: Any, examples: Sequence[Example], max_length: int | None, use_pair: bool, add_special: bool
) -> list[Encoded]:
    """Tokenize examples; those of one form are tokenized together, which is many times as fast."""
    forms: dict[tuple[bool, bool, bool], list[int]] = {}
    for index, example in enumerate(examples):
        split, aligned = example.words is not None, "spans" in example.columns and example.words is None
        if aligned and not tokenizer.is_fast:
            raise InputError(
                f"The words of example '{example.id}' cannot be aligned with tokens: {type(tokenizer).__name__} is a "
                "slow tokenizer, which gives no offsets. Load the fast one (use_fast=True)."
            )
        forms.setdefault((split, use_pair and example.pair is not None, aligned), []).append(index)
    rows: dict[int, Encoded] = {}
    roles = special_roles(tokenizer)
    for (split, paired, aligned), indices in forms.items():
        encoding = tokenizer(
            [list(examples[index].words or ()) if split else examples[index].text for index in indices],
            [examples[index].pair for index in indices] if paired else None,
            is_split_into_words=split,
            padding=False,
            truncation=max_length is not None,
            max_length=max_length,
            add_special_tokens=add_special,
            return_offsets_mapping=aligned,
            verbose=False,
        )
        rows |= {
            index: _read_row(tokenizer, examples[index], encoding, place, aligned=aligned, roles=roles)
            for place, index in enumerate(indices)
        }
    return [rows[index] for index in range(len(examples))]


def _read_row(
    tokenizer: Any, example: Example, encoding: Any, place: int, *, aligned: bool, roles: Mapping[int, int]
) -> Encoded:
    """Return one row of what a tokenizer made of several examples."""
    ids = encoding["input_ids"][place]
    words = encoding.word_ids(place) if tokenizer.is_fast else [None] * len(ids)
    sides = encoding.sequence_ids(place) if tokenizer.is_fast else [0] * len(ids)
    return Encoded.lazy(
        inputs={name: encoding[name][place] for name in encoding if name in tokenizer.model_input_names},
        text=lambda _: make_readable(tokenizer, ids),  # decoding is slow, and the text is often not used
        special=[token in roles for token in ids],
        segment=_segments(sides),
        word=align_words(example, encoding["offset_mapping"][place], sides) if aligned else _number_words(words, sides),
        role=[roles.get(token, 0) for token in ids],
    )


def _number_words(words: Sequence[int | None], sides: Sequence[int | None]) -> list[int]:
    """Return the tokenizer's word indices, those of the pair after those of the text."""
    tokens = list(zip(words, sides, strict=True))
    first = 1 + max((word for word, side in tokens if word is not None and side == 0), default=-1)
    return [-1 if word is None else word + (first if side == 1 else 0) for word, side in tokens]


def align_words(example: Example, offsets: Sequence[Span], sides: Sequence[int | None]) -> list[int]:
    """Return the word index of each token, or -1; the words of the pair are numbered after those of the text.

    The columns `spans` and `pair_spans` hold the start and end of each word. A token belongs to the word that contains
    its first character, so that a token across two words belongs to the first.
    """
    first, second = (tuple(example.columns.get(name, ())) for name in ("spans", "pair_spans"))
    words = []
    for (start, end), side in zip(offsets, sides, strict=True):
        spans, text = (second, example.pair or "") if side else (first, example.text)
        piece = text[start:end]
        if piece.strip():  # byte-level tokenizers include the space before a word
            start += len(piece) - len(piece.lstrip())
        index = bisect_right(spans, start, key=lambda span: span[0]) - 1
        inside = side is not None and bool(piece) and index >= 0 and start < spans[index][1]
        words.append(index + (len(first) if side else 0) if inside else -1)
    return words


def special_roles(tokenizer: Any) -> dict[int, int]:
    """Return the ids of special tokens, with the index of their role in ROLES.

    The token for unknown words is not special, even if it also starts and ends texts (GPT-2).
    """
    ids_by_role = {
        "mask": [tokenizer.mask_token_id],
        "sep": [tokenizer.sep_token_id, tokenizer.eos_token_id],
        "cls": [tokenizer.cls_token_id, tokenizer.bos_token_id],
    }
    roles = dict.fromkeys(set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}, ROLES.index("other"))
    return roles | {token: ROLES.index(role) for role, ids in ids_by_role.items() for token in ids if token in roles}


def _segments(sides: Sequence[int | None]) -> list[int]:
    """Return the text of each token, 0 or 1; a special token belongs to the text that it closes."""
    segments: list[int] = []
    for side in sides:
        segments.append(side if side is not None else segments[-1] if segments else 0)
    return segments


def _check(tokenizer: Any, examples: Sequence[Example], rows: Sequence[Encoded]) -> None:
    unknown, total = 0, 0
    for example, row in zip(examples, rows, strict=True):
        if all(row.special):
            raise InputError(
                f"The text of example '{example.id}', {example.text[:40]!r}, has only special tokens. "
                "Give it at least one word."
            )
        ids = row.inputs["input_ids"]
        total += len(ids) - sum(row.special)
        unknown += sum(token == tokenizer.unk_token_id for token in ids)
    if tokenizer.unk_token_id is not None and unknown > total / 2:
        warnings.warn(
            f"{unknown} of {total} tokens are unknown to this tokenizer ({tokenizer.unk_token}). "
            "Is it the tokenizer that the model was trained with? Load it from the model's own folder.",
            DataWarning,
            stacklevel=5,
        )
