"""From texts to what a model reads: tokenising, cutting and padding, nothing of it silent."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.core.lazy import LazyFields
from headscope.core.tokens import ROLES, Tokens
from headscope.data.tokenizing.align import words_of_tokens
from headscope.data.tokenizing.readable import make_readable


@dataclass(frozen=True)
class Encoded(LazyFields):
    """One example as a tokenizer made it: what the model reads, and what each token is."""

    inputs: Mapping[str, Sequence[int]]
    text: Sequence[str]
    special: Sequence[bool]
    segment: Sequence[int]
    word: Sequence[int]
    role: Sequence[int]  # places in ROLES


def to_examples(text: Any, pair: Any = None) -> list[Example]:
    """Examples from a text, a list of texts or of pairs, or examples themselves."""
    if isinstance(text, str | Example):
        text, pair = [text], None if pair is None else [pair]
    texts, pairs = list(text), list(pair) if pair is not None else None
    if not texts:
        raise InputError("There is no text: the list is empty. Give at least one text.")
    if pairs is not None and len(pairs) != len(texts):
        raise InputError(f"There are {len(texts)} texts but {len(pairs)} second texts. Give one for each.")
    examples = [_example(each, str(place)) for place, each in enumerate(texts)]
    if pairs is not None:
        examples = [Example(each.id, each.text, str(other)) for each, other in zip(examples, pairs, strict=True)]
    for each in examples:
        for part in (each.text, each.pair):
            if part is not None and not part.strip():
                raise InputError(f"The text of example '{each.id}' is empty. Give it at least one word.")
    return examples


def encode(
    tokenizer: Any,
    examples: Sequence[Example],
    *,
    longest: int | None = None,
    paired: bool = True,
    framed: bool = True,
) -> list[Encoded]:
    """Tokenise every example; those longer than `longest` are cut, and a warning says how many.

    `paired=False` reads the text alone, for models whose second text goes to the decoder; `framed=False` adds no
    special tokens, for texts that hold theirs already.
    """
    if tokenizer is None:
        raise InputError("This model has no tokenizer. Give one to hs.load(…, tokenizer=…), or pass a tokenised batch.")
    found = [_encode(tokenizer, each, None, paired, framed) for each in examples]
    long = [place for place, each in enumerate(found) if longest and len(each.special) > longest]
    warn_truncated(examples, [len(each.special) for each in found], longest, "were cut", stacklevel=5)
    for place in long:
        found[place] = _encode(tokenizer, examples[place], longest, paired, framed)
    _check(tokenizer, examples, found)
    return found


def warn_truncated(
    examples: Sequence[Example], lengths: Sequence[int], longest: int | None, happens: str, *, stacklevel: int
) -> None:
    """Say how many texts are longer than `longest` tokens, and which, if any are."""
    long = [place for place, length in enumerate(lengths) if longest and length > longest]
    if long:
        named = ", ".join(f"'{examples[place].id}' ({lengths[place]})" for place in long[:3])
        warnings.warn(
            f"{len(long)} of {len(examples)} texts are longer than {longest} tokens and {happens}: "
            f"{named}{', …' if len(long) > 3 else ''}. What is cut takes no part in any number.",
            DataWarning,
            stacklevel=stacklevel,
        )


def pad_sequences(
    rows: Sequence[Encoded],
    fill: Mapping[str, int],
    *,
    width: int | None = None,
    device: Any = None,
    left: bool = False,
) -> tuple[dict[str, Tensor], Tokens]:
    """One batch, filled on the right (or the left) up to its longest row or to `width`; tokens stay with the host."""
    longest = max(len(row.special) for row in rows)
    if width is not None and width < longest:
        raise InputError(f"pad_to={width} is less than the longest text, which has {longest} tokens.")
    width = width or longest

    def table(columns: Sequence[Sequence[Any]], empty: Any, device: Any = None) -> Tensor:
        gaps = [[empty] * (width - len(column)) for column in columns]
        lines = zip(gaps, columns, strict=True) if left else zip(columns, gaps, strict=True)
        return torch.tensor([[*first, *second] for first, second in lines]).to(device, non_blocking=True)

    inputs = {name: table([row.inputs[name] for row in rows], fill.get(name, 0), device) for name in rows[0].inputs}
    tokens = Tokens.lazy(
        text=lambda _: [row.text for row in rows],
        real=table([[True] * len(row.special) for row in rows], False),
        special=table([row.special for row in rows], False),
        segment=table([row.segment for row in rows], -1),
        word=table([row.word for row in rows], -1),
        role=table([row.role for row in rows], 0),
    )
    return inputs, tokens


def _example(given: Any, name: str) -> Example:
    if isinstance(given, Example):
        return given
    if isinstance(given, str):
        return Example(name, given)
    if isinstance(given, tuple | list) and len(given) == 2 and all(isinstance(part, str) for part in given):
        return Example(name, given[0], given[1])
    raise InputError(f"Cannot read item {name}, {given!r}: it must be a text, a pair of texts or an Example.")


def _encode(tokenizer: Any, example: Example, longest: int | None, paired: bool, framed: bool) -> Encoded:
    first = list(example.words) if example.words is not None else example.text
    aligned = "spans" in example.columns and example.words is None
    if aligned and not tokenizer.is_fast:
        raise InputError(
            f"The words of example '{example.id}' cannot be matched with tokens: {type(tokenizer).__name__} is a slow "
            "tokenizer, which does not say where in the text its tokens stand. Load the fast one (use_fast=True)."
        )
    found = tokenizer(
        first,
        example.pair if paired else None,
        is_split_into_words=example.words is not None,
        padding=False,
        truncation=longest is not None,
        max_length=longest,
        add_special_tokens=framed,
        return_offsets_mapping=aligned,
        verbose=False,
    )
    ids = found["input_ids"]
    many, roles = len(ids), special_roles(tokenizer)
    words = found.word_ids() if tokenizer.is_fast else [None] * many
    sides = found.sequence_ids() if tokenizer.is_fast else [0] * many
    return Encoded.lazy(
        inputs={name: found[name] for name in found if name in tokenizer.model_input_names},
        text=lambda _: make_readable(tokenizer, ids),  # decoding is slow, and often nobody reads it
        special=[each in roles for each in ids],
        segment=_segments(sides),
        word=words_of_tokens(example, found["offset_mapping"], sides) if aligned else _counted(words, sides),
        role=[roles.get(each, 0) for each in ids],
    )


def _counted(words: Sequence[int | None], sides: Sequence[int | None]) -> list[int]:
    """The words as the tokenizer counts them, those of a second text on from the first's."""
    own = [word for word, side in zip(words, sides, strict=True) if word is not None and side == 0]
    before = 1 + max(own, default=-1)
    return [
        -1 if word is None else word + (before if side == 1 else 0) for word, side in zip(words, sides, strict=True)
    ]


def special_roles(tokenizer: Any) -> dict[int, int]:
    """The tokens that have a role instead of a meaning, with its place in ROLES.

    An unknown word is still a word, also where the same token starts and ends texts (GPT-2).
    """
    named = {
        "mask": [tokenizer.mask_token_id],
        "sep": [tokenizer.sep_token_id, tokenizer.eos_token_id],
        "cls": [tokenizer.cls_token_id, tokenizer.bos_token_id],
    }
    found = dict.fromkeys(set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}, ROLES.index("other"))
    return found | {each: ROLES.index(role) for role, ids in named.items() for each in ids if each in found}


def _segments(sides: Sequence[int | None]) -> list[int]:
    """The text each token belongs to; a special token belongs to the text it closes."""
    now, segments = 0, []
    for side in sides:
        now = now if side is None else side
        segments.append(now)
    return segments


def _check(tokenizer: Any, examples: Sequence[Example], found: Sequence[Encoded]) -> None:
    unknown, total = 0, 0
    for example, row in zip(examples, found, strict=True):
        if all(row.special):
            raise InputError(
                f"The text of example '{example.id}', {example.text[:40]!r}, has no tokens but special ones. "
                "Give it at least one word."
            )
        ids = row.inputs["input_ids"]
        total += len(ids) - sum(row.special)
        unknown += sum(each == tokenizer.unk_token_id for each in ids)
    if tokenizer.unk_token_id is not None and unknown > total / 2:
        warnings.warn(
            f"{unknown} of {total} tokens are unknown to this tokenizer ({tokenizer.unk_token}). "
            "Is it the tokenizer that the model was trained with? Load it from the model's own folder.",
            DataWarning,
            stacklevel=5,
        )
