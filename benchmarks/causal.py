"""What causal effective attention costs, against ways that take every row by itself.

python -m benchmarks.causal [--quick]

CPU time on one thread, rivals in turns in one process. Every pair of figures is the least and the median.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import ratio, show
from headscope.effective.causal import project_rows
from headscope.effective.projection import project
from headscope.effective.visibility import analyze_mask
from headscope.experiments.timing import time_interleaved

HEADS = 12
BARS = {128: 8, 256: 8, 512: 8, 1024: 5}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny shapes, to see that it runs")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    torch.manual_seed(0)
    compare((24,) if quick else (128, 256, 512, 1024), 8 if quick else 64, 2 if quick else 9)


def compare(lengths: Sequence[int], value: int, repeats: int) -> None:
    """Each length: ours, every row by itself, and the projection that ignores the mask."""
    rows = []
    for length in lengths:
        runs = time_interleaved(_rivals(length, value), turns=repeats)
        ours = runs.pop("headscope")
        ratios = {name: ratio(each, ours) for name, each in runs.items()}
        bar, found = BARS.get(length), ratios["Cholesky a row"].median
        verdict = "" if bar is None else f"≥{bar} {'met' if found >= bar else 'missed'}"
        rows.append(
            [f"{length}", f"{median(ours) * 1e3:.1f} ms", *(f"{each:.1f}" for each in ratios.values()), verdict]
        )
    header = ["tokens", "headscope", *ratios, "bar (Cholesky)"]
    show(f"Causal projection, {HEADS} heads, d = {value}, peers over ours: least / median", header, rows)


def _rivals(length: int, value: int) -> dict[str, Callable[[], Any]]:
    visible = torch.ones(length, length, dtype=torch.bool).tril()
    scores = 2 * torch.randn(HEADS, length, value) @ torch.randn(HEADS, value, length) / value**0.5
    attention = scores.masked_fill(~visible, -torch.inf).softmax(-1)
    values = torch.randn(HEADS, length, value)
    context, seen = attention @ values, torch.ones(HEADS, length, dtype=torch.bool)
    return {
        "headscope": partial(by_chunks, attention, values, visible[None]),
        "Cholesky a row": partial(by_cholesky_of_each_row, attention, values),
        "no mask": lambda: (found := project(attention, values, seen, context)).left @ found.right.mT,
    }


def by_chunks(attention: Tensor, values: Tensor, visible: Tensor) -> Tensor:
    """Ours, with the mask analysed anew."""
    structure = analyze_mask(visible.clone())
    return project_rows([attention[None]], values[None, None], visible, structure).effective[0]


def by_cholesky_of_each_row(attention: Tensor, values: Tensor, chunk: int = 64) -> Tensor:
    """Add up the Gram matrix row by row, and solve with a Cholesky factor of each; full rank is assumed."""
    value, wide = values.shape[-1], values.double()
    context = attention.double() @ wide
    solved = torch.zeros_like(wide)
    gram = wide[:, : value - 1].mT @ wide[:, : value - 1]
    for start in range(value - 1, values.shape[1], chunk):
        some = slice(start, start + chunk)
        grams = gram[:, None] + torch.cumsum(wide[:, some, :, None] * wide[:, some, None, :], dim=1)
        factor = torch.linalg.cholesky_ex(grams).L
        solved[:, some] = torch.cholesky_solve(context[:, some, :, None], factor)[..., 0]
        gram = grams[:, -1]
    effective = (solved @ wide.mT).tril().to(attention.dtype)
    effective[:, : value - 1] = attention[:, : value - 1]
    return effective


if __name__ == "__main__":
    main()
