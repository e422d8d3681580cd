"""The weight of rows on the keys that have something to do with their query, such as earlier copies of its token."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.core.maps import Maps
from headscope.core.tokens import Tokens
from headscope.core.trace import Visible
from headscope.maps.rows import Weights, hide_cells, map_rows, mean_over_rows

NONE = -1
"""The number of padding and of special tokens, which are copies of nothing."""


def number_tokens(tokens: Tokens) -> tuple[Int[Tensor, "batch token"], Int[Tensor, "batch token"]]:
    """Return a number for each token, the same for tokens of the same text in a row, and that of the token before."""
    numbers = torch.full(tokens.real.shape, NONE)
    before = numbers.clone()
    for row, (text, real, special) in enumerate(zip(tokens.text, tokens.real, tokens.special, strict=True)):
        known: dict[str, int] = {}
        row_numbers = torch.tensor([known.setdefault(token, len(known)) for token in text])
        row_numbers[special[real]] = NONE
        places = real.nonzero()[:, 0]
        numbers[row, places] = row_numbers
        before[row, places[1:]] = row_numbers[:-1]
    return numbers, before


def keys_before(queries: Int[Tensor, "batch query"], keys: Int[Tensor, "batch key"]) -> Bool[Tensor, "batch query key"]:
    """Return which keys stand before each query, from the positions of both."""
    return keys[:, None] < queries[:, :, None]


def same_number(queries: Int[Tensor, "batch query"], keys: Int[Tensor, "batch key"]) -> Bool[Tensor, "batch query key"]:
    """Return which keys have the number of each query; NONE is the number of nothing."""
    return (queries[:, :, None] == keys[:, None]) & (queries != NONE)[:, :, None]


def row_weight(
    weights: Weights, visible: Visible, chosen: Bool[Tensor, "batch query key"]
) -> Float[Tensor, "batch head query"]:
    """Return the weight of every row on its chosen keys; NaN where it sees none of them."""
    seen = (chosen & visible)[:, None]
    return hide_cells(weights, seen).sum(-1).masked_fill(~seen.any(-1), torch.nan)


def even_weight(
    weights: Weights, visible: Visible, chosen: Bool[Tensor, "batch query key"]
) -> Float[Tensor, "batch head query"]:
    """Return what `row_weight` would be if each row spread its weight evenly over the keys that it sees."""
    seen = chosen & visible
    share = seen.sum(-1) / visible.sum(-1)  # batch query
    total = hide_cells(weights, visible[:, None]).sum(-1)
    return (total * share[:, None]).masked_fill(~seen.any(-1)[:, None], torch.nan)


def mean_weights(maps: Maps, chosen: Bool[Tensor, "batch query key"], name: str) -> dict[str, Tensor]:
    """Return a head's mean weight on chosen keys over the rows that see one, as `name`, and its null, `name_uniform`.

    In cross-attention, where queries and keys are different texts, both are NaN.
    """
    if maps.site.endswith("cross"):
        nothing = torch.full((len(maps.examples), len(maps.layers), len(maps.heads)), torch.nan, device=chosen.device)
        return {name: nothing, f"{name}_uniform": nothing}
    functions = {name: row_weight, f"{name}_uniform": even_weight}
    return {key: mean_over_rows(map_rows(maps, function, chosen)) for key, function in functions.items()}
