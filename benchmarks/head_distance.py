"""Jensen–Shannon divergences of all pairs of heads, against loops over the pairs in numpy.

PYTHONPATH=src python -m benchmarks.head_distance [--device cuda] [--quick] [--out FILE.json]

72 heads, 1,000 inputs of 128 tokens, float32. Every peer takes one pair of heads after the other, all rows of an input
at once, half of the pairs: *numpy* as the formula is written, *entropies once* with one logarithm for each cell.
They are timed on some pairs of one input and scaled. On a CPU: wall time on two threads, which needs an idle machine,
and CPU time on one thread, which does not; numpy has one. On a GPU: wall time of all inputs, numpy on its host.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.timing import show
from headscope.experiments.timing import time_interleaved
from headscope.maps.divergences import divergences

HEADS, INPUTS, TOKENS, SAMPLE = 72, 1000, 128, 13  # a sample of all pairs of 13 heads
BATCH = {"cpu": 2, "cuda": 50}
BARS = {"cpu": 4, "cuda": 100}
Array = np.ndarray[Any, np.dtype[np.float32]]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=BATCH, default="cpu", help="where headscope computes")
    parser.add_argument("--quick", action="store_true", help="a tiny shape, to see that it runs")
    parser.add_argument("--out", type=Path, help="where to write the times")
    options = parser.parse_args()
    shape = (4, 2, 16) if options.quick else (HEADS, INPUTS, TOKENS)
    turns = 2 if options.quick else 5
    rows = [_compare(options.device, shape, turns, *clock) for clock in _clocks(options.device)]
    header = ["clock", "headscope", *rows[0]["peers"], "apart", "bar"]
    title = f"{shape[0]} heads, {shape[1]:,} inputs of {shape[2]} tokens, on {options.device}"
    show(f"{title}: seconds, peers over headscope", header, [_cells(row, options.device) for row in rows])
    if options.out:
        name = torch.cuda.get_device_name() if options.device == "cuda" else "x86_64 CPU, two cores"
        facts = {"command": f"python -m benchmarks.head_distance --device {options.device}", "device": name}
        facts |= {"torch": torch.__version__, "numpy": np.__version__, "turns": turns, "bar": BARS[options.device]}
        facts |= {"heads": shape[0], "inputs": shape[1], "tokens": shape[2], "rows": rows}
        options.out.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _clocks(device: str) -> Iterator[tuple[str, int, Callable[[], float]]]:
    if device == "cpu":
        yield "CPU, one thread", 1, time.process_time
    yield "wall, two threads" if device == "cpu" else "wall, GPU", 2, time.perf_counter


def _compare(
    device: str, shape: tuple[int, int, int], turns: int, name: str, threads: int, clock: Callable[[], float]
) -> dict[str, Any]:
    """Return the seconds of all pairs over all inputs, and how far the results are apart."""
    heads, inputs, tokens = shape
    torch.set_num_threads(threads)
    batch = min(BATCH[device], inputs)
    scores = 3 * torch.randn(batch, heads, tokens, tokens, generator=torch.Generator().manual_seed(0))
    shares = (0.999 * scores.softmax(-1) + 0.001 / tokens).to(device)
    maps, sample = shares[0].cpu().numpy(), min(SAMPLE, heads)
    rivals = {"headscope": lambda: _synchronize(divergences(shares))}
    rivals |= {peer: lambda loop=loop: loop(maps[:sample]) for peer, loop in PEERS.items()}  # type: ignore[misc]
    seconds = {peer: median(times) for peer, times in time_interleaved(rivals, turns=turns, clock=clock).items()}
    scale = inputs * (heads * (heads - 1) // 2) / (sample * (sample - 1) // 2)
    exact = _loop_literal(maps[:sample].astype(np.float64))
    apart = np.abs(divergences(shares[:1])[0, :sample, :sample].cpu().numpy() - exact).max()
    return {
        "clock": name,
        "headscope": seconds["headscope"] * inputs / batch,
        "peers": {peer: seconds[peer] * scale for peer in PEERS},
        "apart": float(apart / exact.max()),
    }


def _loop_literal(maps: Any) -> Any:
    """Return Σ (p·log(p/m) + q·log(q/m)) / 2 of every pair of maps."""
    table = np.zeros((len(maps), len(maps)))
    for first, second in combinations(range(len(maps)), 2):
        p, q = maps[first], maps[second]
        m = (p + q) / 2
        table[first, second] = table[second, first] = ((p * np.log(p / m) + q * np.log(q / m)) / 2).sum()
    return table


def _loop_entropies(maps: Any) -> Any:
    """Return the same from entropies that are computed once for each map."""
    table, entropy = np.zeros((len(maps), len(maps))), [-(p * np.log(p)).sum() for p in maps]
    for first, second in combinations(range(len(maps)), 2):
        m = (maps[first] + maps[second]) / 2
        table[first, second] = table[second, first] = -(m * np.log(m)).sum() - (entropy[first] + entropy[second]) / 2
    return table


PEERS: dict[str, Callable[[Array], Any]] = {"numpy": _loop_literal, "entropies once": _loop_entropies}


def _synchronize(table: Tensor) -> Tensor:
    return table.cpu()  # waits for a GPU


def _cells(row: dict[str, Any], device: str) -> list[str]:
    ratios = {name: seconds / row["headscope"] for name, seconds in row["peers"].items()}
    verdict = f"≥{BARS[device]} {'met' if ratios['numpy'] >= BARS[device] else 'missed'}"
    return [
        row["clock"],
        f"{row['headscope']:.3g}",
        *(f"{ratio:,.1f}" for ratio in ratios.values()),
        f"{row['apart']:.0e}",
        verdict,
    ]


if __name__ == "__main__":
    main()
