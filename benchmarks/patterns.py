"""How fast classifiers of patterns are.

python -m benchmarks.patterns [--quick]

From weights to probabilities, 256 maps of 128 tokens in one batch. Maps a second on two threads by the clock on the
wall, which wants a machine with nothing else to do, and for each second of CPU on one thread, which does not. The peers
see the same maps: the rules, and a nearest neighbour among 650 pictures. Least / median of the turns.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch

from benchmarks.timing import show
from headscope.experiments.timing import race
from headscope.patterns.classify.classify import classify
from headscope.patterns.classify.resize import pictures
from headscope.patterns.classify.row_weights import sizes_of

BAR = 2_000  # maps a second
TOKENS, KNOWN, SIDE = 128, 650, 32


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few maps, to see that it runs")
    quick = parser.parse_args().quick
    many = 8 if quick else 256
    weights = torch.randn(many, TOKENS, TOKENS, generator=torch.Generator().manual_seed(0)).mul(2).softmax(-1)
    real, segments = torch.ones(many, TOKENS, dtype=torch.bool), (torch.arange(TOKENS) > 50).long().expand(many, -1)
    rivals: dict[str, Callable[[], object]] = {
        name: lambda name=name: classify(weights, real, segments, name)  # type: ignore[misc]
        for name in ("cnn", "rules", "both")
    }
    rivals["nearest neighbour"] = lambda: nearest(weights, real, segments)
    speeds: dict[str, list[list[float]]] = {name: [] for name in rivals}
    for threads, clock in ((2, time.perf_counter), (1, time.process_time)):
        torch.set_num_threads(threads)
        for name, seconds in race(rivals, turns=2 if quick else 9, clock=clock).items():
            speeds[name].append([many / each for each in seconds])
    rows = []
    for name, (wall, core) in speeds.items():
        verdict = f"≥{BAR:,} {'met' if median(wall) >= BAR else 'missed'}" if name == "cnn" else ""
        rows.append([name, *(f"{min(each):,.0f} / {median(each):,.0f}" for each in (wall, core)), verdict])
    header = ["classifier", "two threads", "one core", "bar"]
    show(f"Patterns of {many} maps of {TOKENS} tokens, maps a second", header, rows)


def nearest(weights: torch.Tensor, real: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
    """The place of the nearest of so many pictures, by mean and largest weight of each pixel."""
    seen = pictures(sizes_of(weights, real, segments), SIDE)[:, :2].flatten(1)
    return torch.cdist(seen, torch.zeros(KNOWN, seen.shape[1])).argmin(-1)


if __name__ == "__main__":
    main()
