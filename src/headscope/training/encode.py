"""Examples as token ids: tokenized once, padded batch by batch."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.tokenizing.encode import EncodedExample, pad_lists, tokenize, warn_truncated
from headscope.data.tokenizing.masking import IGNORED
from headscope.data.tokenizing.shorten import COUNTED, shorten_examples


def tokenize_examples(
    tokenizer: Any, examples: Sequence[Example], max_length: int | None, *, stacklevel: int = 5
) -> list[EncodedExample]:
    """Return texts and pairs as the tokenizer encodes them; truncate long ones, and warn how many."""
    short = shorten_examples(tokenizer, examples, max_length, longer_than=COUNTED)
    rows = _tokenize(tokenizer, short)
    lengths = [len(row["input_ids"]) for row in rows]
    long = warn_truncated(examples, lengths, max_length, "were truncated", shortened=short, stacklevel=stacklevel)
    beginnings = shorten_examples(tokenizer, [short[index] for index in long], max_length)
    truncated = _tokenize(tokenizer, beginnings, max_length)
    for index, row in zip(long, truncated, strict=True):
        rows[index] = row
    return rows


def _tokenize(tokenizer: Any, examples: Sequence[Example], max_length: int | None = None) -> list[EncodedExample]:
    texts = [list(example.words) if example.words is not None else example.text for example in examples]
    return tokenize(tokenizer, texts, [example.pair for example in examples], max_length=max_length)


def pad_rows(tokenizer: Any, rows: Sequence[EncodedExample]) -> dict[str, Tensor]:
    """Return one batch of model inputs, padded to its longest row."""
    names = [name for name in rows[0] if name in tokenizer.model_input_names]
    fill, left = _fill_values(tokenizer), tokenizer.padding_side == "left"
    return {name: pad_lists([row[name] for row in rows], fill.get(name, 0), left=left) for name in names}


def pad_batch(tokenizer: Any, batch: Mapping[str, Tensor], width: int) -> dict[str, Tensor]:
    """Return a batch padded to `width` tokens; labels of padding are ignored."""
    current = batch["input_ids"].shape[-1]
    if width < current:
        raise InputError(f"pad_to={width} is less than the longest text, which has {current} tokens.")
    fill = _fill_values(tokenizer)
    padding = (width - current, 0) if tokenizer.padding_side == "left" else (0, width - current)
    return {
        name: torch.nn.functional.pad(tensor, padding, value=fill.get(name, 0))
        if tensor.shape == batch["input_ids"].shape
        else tensor
        for name, tensor in batch.items()
    }


def require_padding(tokenizer: Any, config: Any, side: str | None = None) -> Any:
    """Return a tokenizer that can pad, on `side` if given; a copy that pads with the end token if it has no other."""
    if tokenizer is None:
        raise InputError("This model has no tokenizer, so no text can be read. Give one: hs.load(…, tokenizer=…).")
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token is None:
            raise InputError("The tokenizer has neither a padding nor an end token. Set tokenizer.pad_token.")
        tokenizer = deepcopy(tokenizer)
        tokenizer.pad_token = tokenizer.eos_token
    if side is not None and tokenizer.padding_side != side:
        tokenizer = deepcopy(tokenizer)
        tokenizer.padding_side = side
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = tokenizer.pad_token_id
    return tokenizer


def _fill_values(tokenizer: Any) -> dict[str, int]:
    return {"input_ids": tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id, "labels": IGNORED}
