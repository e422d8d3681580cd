"""Jensen–Shannon divergences of all pairs of heads on a CPU, compiled.

Two maps are mixed, their logarithm is computed and the sum is taken row by row, in the fastest cache. The logarithm is
e·log 2 + log(1 + x) with x from √½ − 1 to √2 − 1, where log(1 + x) is x − x²/2 + x³·P(x); P is the polynomial of degree
7 that fits it at Chebyshev nodes, with an error of 1e-8, less than the rounding of float32. Loops over keys have no
branches and no sums, so the compiler uses vector instructions without fast-math. Compiling takes about 2 s once.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.compiled import compiled
from headscope.maps.rows import x_log_x

Single = np.ndarray[Any, np.dtype[np.float32]]
Double = np.ndarray[Any, np.dtype[np.float64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

P0, P1, P2, P3, P4, P5, P6, P7 = (
    np.float32(coefficient)
    for coefficient in (
        0.33333329,
        -0.25000297,
        0.20001469,
        -0.16642248,
        0.14202174,
        -0.12972239,
        0.12712308,
        -0.08101559,
    )
)
LOG2, ZERO, HALF, ONE = np.float32(np.log(2)), np.float32(0), np.float32(0.5), np.float32(1)
MANTISSA, EXPONENT = np.int32(0x7FFFFF), np.int32(23)  # bits of a float32
ROOT_HALF = np.int32(np.float32(np.sqrt(0.5)).view(np.int32))
ROWS = 32
"""Rows that are added in float32, before float64."""


def compare_heads(
    shares: Float[Tensor, "batch head query key"], *, mean: bool = False
) -> Float[Tensor, "batch head other"]:
    """Return the divergence of every pair of heads in nats, summed or averaged over the rows that both have."""
    tables = [_compare_heads(example, mean) for example in shares]
    return torch.stack(tables) if tables else shares.new_zeros(0, *(shares.shape[1],) * 2, dtype=torch.float64)


def _compare_heads(shares: Float[Tensor, "head query key"], mean: bool) -> Float[Tensor, "head other"]:
    single = x_log_x(shares).sum(-1).double()  # Σ p·log p of every row; NaN where it has no weight
    valid = ~single.isnan()
    mixed = torch.from_numpy(_sum_on_threads((shares / 2).contiguous().numpy(), valid.numpy()))
    weights = valid.double()
    both = single.nan_to_num() @ weights.T  # head other: Σ p·log p of the rows that both heads have
    count = weights @ weights.T
    total = ((both + both.T) / 2 - mixed - mixed.triu(1).T).clamp_min_(0).fill_diagonal_(0)
    return total / count if mean else total.masked_fill(count == 0, torch.nan)


def _sum_on_threads(halves: Single, valid: Flags) -> Double:
    """Return Σ m·log m of each head with itself and those after it; the heads are dealt out to the threads of torch."""
    heads, threads = len(halves), torch.get_num_threads()
    sums = np.zeros((heads, heads))
    deal = partial(_sum_mixtures, halves, valid, sums)
    if threads == 1:
        deal(0, 1)
        return sums
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(deal, range(threads), [threads] * threads))
    return sums


@partial(compiled, fused=True)
def _sum_mixtures(halves: Single, valid: Flags, sums: Double, start: int, step: int) -> None:
    """Write Σ m·log m of the heads start, start + step, … with those after them; m is the sum of two halves."""
    heads, rows, keys = halves.shape
    mixture, exponent = np.empty(keys, np.float32), np.empty(keys, np.float32)
    mantissa, total = np.empty(keys, np.float32), np.empty(keys, np.float32)
    bits, mantissa_bits = mixture.view(np.int32), mantissa.view(np.int32)
    for head in range(start, heads, step):
        for other in range(head, heads):
            for block in range(0, rows, ROWS):
                for key in range(keys):
                    total[key] = ZERO
                for row in range(block, min(block + ROWS, rows)):
                    if valid[head, row] and valid[other, row]:
                        first, second = halves[head, row], halves[other, row]
                        for key in range(keys):
                            mixture[key] = first[key] + second[key]
                        for key in range(keys):  # the mantissa from √½ to √2, and its exponent
                            above = np.int32(bits[key] - ROOT_HALF)
                            exponent[key] = np.float32(np.int32(above >> EXPONENT))
                            mantissa_bits[key] = np.int32((above & MANTISSA) + ROOT_HALF)
                        for key in range(keys):
                            x = mantissa[key] - ONE
                            cubic = ((((((P7 * x + P6) * x + P5) * x + P4) * x + P3) * x + P2) * x + P1) * x + P0
                            logarithm = exponent[key] * LOG2 + (x + x * x * (x * cubic - HALF))
                            total[key] += mixture[key] * logarithm
                for key in range(keys):
                    sums[head, other] += total[key]
