"""The word that each word attends to most."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def pick_most_attended(
    weights: Float[Tensor, "*heads query key"], candidates: Bool[Tensor, "*heads query key"]
) -> Int[Tensor, "*heads query"]:
    """Return the key with the largest weight among the candidates of each query; the first of equal ones.

    It is -1 where a query has no candidate, or a NaN among its weights.

    >>> pick_most_attended(torch.tensor([[0.1, 0.9, 0.3]]), torch.tensor([[True, False, True]])).tolist()
    [2]
    """
    largest, index = weights.masked_fill(~candidates, -torch.inf).max(-1)
    return index.masked_fill(~candidates.any(-1) | largest.isnan(), -1)


def pick_in_both_directions(
    weights: Float[Tensor, "batch head word other"],
    candidates: Bool[Tensor, "batch word other"],
    visible: Bool[Tensor, "batch word other"],
) -> Int[Tensor, "batch head direction word"]:
    """Return for each word the candidate that it attends to most, and the candidate that attends to it most.

    `candidates` says at [i, j] whether word j is a possible answer for word i, `visible` whether i can attend to j.
    """
    tables = (weights, candidates & visible), (weights.mT, candidates & visible.mT)
    picked = [pick_most_attended(table, allowed[:, None].expand_as(table)) for table, allowed in tables]
    return torch.stack(picked, dim=2)
