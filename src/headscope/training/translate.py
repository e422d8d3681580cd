"""Translate a batch with an encoder-decoder model, by greedy search."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

FACTOR, EXTRA = 2, 10
"""A translation has at most FACTOR times as many tokens as its source, and EXTRA more."""


@torch.no_grad()
def translate(network: Any, tokenizer: Any, batch: Mapping[str, Tensor]) -> list[str]:
    """Return the translation of each text of a batch, without special tokens and surrounding white space.

    At each step the most likely token is added, until the end token or the maximum length of this text, which does not
    depend on the other texts of the batch. Everything else is as the model's generation config says.
    """
    limits = FACTOR * batch["attention_mask"].sum(-1) + EXTRA
    if (positions := getattr(network.config, "max_position_embeddings", None)) is not None:
        limits = limits.clamp(max=positions - 1)
    ids = network.generate(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        generation_config=_make_settings(network, int(limits.max()) + 1),  # the last one may be a forced end
    )
    return [_decode(tokenizer, row[1 : 1 + limit]) for row, limit in zip(ids, limits.tolist(), strict=True)]


def _make_settings(network: Any, max_new_tokens: int) -> Any:
    """Return the model's generation config, set to greedy search."""
    settings = deepcopy(network.generation_config)
    settings.update(
        max_new_tokens=max_new_tokens,
        do_sample=False,
        num_beams=1,
        num_return_sequences=1,
        use_cache=True,
        return_dict_in_generate=False,
    )
    return settings


def _decode(tokenizer: Any, ids: Int[Tensor, " token"]) -> str:
    text: str = tokenizer.decode(ids, skip_special_tokens=True)
    return text.strip()
