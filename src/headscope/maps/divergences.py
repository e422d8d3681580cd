"""Jensen–Shannon divergences of all pairs of heads."""

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.compiled import require_compiler
from headscope.core.errors import MissingExtra

CELLS = {"cpu": 2**18, "cuda": 2**27}
"""Cells of all heads that are compared at a time: what fits the cache of a CPU core, and what occupies a GPU."""

Shares = Float[Tensor, "batch head query key"]


def divergences(shares: Shares, *, mean: bool = False) -> Float[Tensor, "batch head other"]:
    """Return the Jensen–Shannon divergence of every pair of heads in nats, summed over the rows that both have.

    With m = (p + q) / 2 it is Σ (p·log p + q·log q) / 2 − Σ m·log m: one logarithm for each cell of a pair. Half of
    the pairs are computed, as they are symmetric. In float32 on a CPU, with numba, it is compiled and runs on all
    threads of torch.
    """
    if not shares.is_cuda and shares.dtype == torch.float32 and _has_compiler():
        from headscope.maps.compiled_divergences import compare_heads

        return compare_heads(shares, mean=mean)
    _, heads, queries, keys = shares.shape
    cells = CELLS.get(shares.device.type, CELLS["cpu"])
    examples = max(1, cells // max(1, heads * queries * keys))
    tables = [_compare_rows(chunk, max(1, cells // (heads * keys)), mean) for chunk in torch.split(shares, examples)]
    upper = torch.cat(tables).triu()
    return upper + upper.triu(1).mT


def _has_compiler() -> bool:
    try:
        require_compiler("A compiled loop")
    except MissingExtra:
        return False
    return True


def _compare_rows(shares: Shares, step: int, mean: bool) -> Float[Tensor, "batch head other"]:
    """Return the divergence of each head from itself and those after it, `step` rows at a time."""
    batch, heads, queries, _ = shares.shape
    rows = shares.transpose(0, 1).flatten(1, 2)  # head row key
    sums = torch.cat([_mixture_sums(chunk) for chunk in torch.split(rows, step, dim=1)], dim=-1)
    single = sums.diagonal(dim1=0, dim2=1).mT  # head row: Σ p·log p; NaN where a row has no weight
    divergence = ((single[:, None] + single) / 2 - sums).clamp_min_(0).double()
    divergence = divergence.view(heads, heads, batch, queries).movedim(2, 0)
    count = (~divergence.isnan()).sum(-1)
    total: Tensor = divergence.nansum(-1)
    return total / count if mean else total.masked_fill(count == 0, torch.nan)


def _mixture_sums(shares: Float[Tensor, "head row key"]) -> Float[Tensor, "head other row"]:
    """Return Σ m·log m of the mean m of the rows of each head and those after it; 0 for the heads before.

    A share of 0 is replaced by the smallest normal number, whose m·log m rounds to 0 in the sum: log 0 is infinite.
    """
    halves = (shares / 2).clamp_min_(torch.finfo(shares.dtype).tiny)
    sums = shares.new_zeros(len(shares), *shares.shape[:2])
    mixture, logarithm = torch.empty_like(halves), torch.empty_like(halves)
    for head in range(len(shares)):
        torch.add(halves[head:], halves[head], out=mixture[head:])
        torch.log(mixture[head:], out=logarithm[head:])
        torch.sum(logarithm[head:].mul_(mixture[head:]), -1, out=sums[head, head:])
    return sums
