"""Tokens that are masked for a masked language model (Devlin et al., 2019)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

SELECTED, MASKED, REPLACED = 0.15, 0.8, 0.1
"""Share of tokens that are predicted; of these, the shares that are masked and replaced by a random token."""

IGNORED = -100
"""The label of a token that does not count, for every loss of torch."""


def mask_tokens(
    tokenizer: Any, ids: Sequence[int], special: Sequence[bool | int], random: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Return ids with at least one of them masked, replaced or kept, and the labels: these ids, IGNORED elsewhere."""
    original, hidden = np.array(ids), np.array(special, bool)
    selected = (random.random(len(original)) < SELECTED) & ~hidden
    if not selected.any():
        selected[random.choice(np.flatnonzero(~hidden))] = True
    draws = random.random(len(original))
    others = random.integers(0, len(tokenizer), len(original))
    changed = np.where(draws < MASKED, tokenizer.mask_token_id, np.where(draws < MASKED + REPLACED, others, original))
    return np.where(selected, changed, original).tolist(), np.where(selected, original, IGNORED).tolist()
