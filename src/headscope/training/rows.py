"""Examples as numbers: tokenised once, padded batch by batch."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.tokenizing.encode import warn_truncated

EncodedExample = Mapping[str, Any]
"""What a model reads of one example, as lists of numbers, and `labels`."""


def tokenised(
    tokenizer: Any, examples: Sequence[Example], longest: int | None, *, stacklevel: int = 5
) -> list[EncodedExample]:
    """Texts and pairs as the tokenizer makes them; those longer than `longest` are cut, and a warning says how many."""
    rows = encoded(tokenizer, [_first(each) for each in examples], [each.pair for each in examples], longest=None)
    lengths = [len(row["input_ids"]) for row in rows]
    warn_truncated(examples, lengths, longest, "were cut", stacklevel=stacklevel)
    long = [place for place, length in enumerate(lengths) if longest and length > longest]
    firsts, seconds = [_first(examples[place]) for place in long], [examples[place].pair for place in long]
    for place, row in zip(long, encoded(tokenizer, firsts, seconds, longest=longest), strict=True):
        rows[place] = row
    return rows


def encoded(
    tokenizer: Any, firsts: Sequence[str | list[str]], seconds: Sequence[str | None], *, longest: int | None
) -> list[EncodedExample]:
    """What the tokenizer makes of texts, together where all are of one kind, which is many times as fast."""
    kinds = {(isinstance(first, list), second is None) for first, second in zip(firsts, seconds, strict=True)}
    if len(kinds) > 1:
        return [
            row
            for first, second in zip(firsts, seconds, strict=True)
            for row in encoded(tokenizer, [first], [second], longest=longest)
        ]
    if not kinds:
        return []
    ((split, single),) = kinds
    found = tokenizer(
        list(firsts),
        None if single else list(seconds),
        is_split_into_words=split,
        padding=False,
        truncation=longest is not None,
        max_length=longest,
        return_special_tokens_mask=True,
        verbose=False,
    )
    names = [name for name in found if name in (*tokenizer.model_input_names, "special_tokens_mask")]
    return [{name: found[name][place] for name in names} for place in range(len(firsts))]


def padded(tokenizer: Any, rows: Sequence[EncodedExample]) -> dict[str, Tensor]:
    """One batch of what the model reads, filled up to its longest row on the tokenizer's side."""
    fill = {"input_ids": tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id}
    names = [name for name in rows[0] if name in tokenizer.model_input_names]
    return {name: table([row[name] for row in rows], fill.get(name, 0), tokenizer.padding_side) for name in names}


def widened(tokenizer: Any, batch: Mapping[str, Tensor], width: int) -> dict[str, Tensor]:
    """The same batch filled up to `width` tokens; labels of tokens that were not there do not count."""
    have = batch["input_ids"].shape[-1]
    if width < have:
        raise InputError(f"pad_to={width} is less than the longest text, which has {have} tokens.")
    fill = {"input_ids": tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id, "labels": -100}
    gap = (width - have, 0) if tokenizer.padding_side == "left" else (0, width - have)
    return {
        name: torch.nn.functional.pad(each, gap, value=fill.get(name, 0))
        if each.shape == batch["input_ids"].shape
        else each
        for name, each in batch.items()
    }


def table(columns: Sequence[Sequence[int]], empty: int, side: str) -> Tensor:
    """Rows of unlike length as one tensor."""
    longest = max(map(len, columns))
    gaps = [[empty] * (longest - len(column)) for column in columns]
    lines = zip(gaps, columns, strict=True) if side == "left" else zip(columns, gaps, strict=True)
    return torch.tensor([[*first, *second] for first, second in lines])


def with_padding(tokenizer: Any, config: Any) -> Any:
    """A tokenizer that can pad; one without a padding token gets its end token for that, on a copy."""
    from copy import deepcopy

    if tokenizer is None:
        raise InputError("This model has no tokenizer, so no text can be read. Give one: hs.load(…, tokenizer=…).")
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token is None:
            raise InputError("The tokenizer has neither a padding nor an end token. Set tokenizer.pad_token.")
        tokenizer = deepcopy(tokenizer)
        tokenizer.pad_token = tokenizer.eos_token
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = tokenizer.pad_token_id
    return tokenizer


def _first(example: Example) -> str | list[str]:
    return list(example.words) if example.words is not None else example.text
