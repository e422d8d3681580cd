"""Speed of pattern classifiers.

python -m benchmarks.patterns [--quick]

From weights to probabilities, 256 maps of 128 tokens in one batch. Maps per second of wall time on two threads, which
needs an idle machine, and per second of CPU time on one thread, which does not. The peers classify the same maps: the
rules, and a nearest neighbour among 650 images. Minimum / median over repetitions.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch

from benchmarks.timing import show
from headscope.experiments.timing import time_interleaved
from headscope.patterns.classify.classify import classify
from headscope.patterns.classify.normalize import normalize_maps
from headscope.patterns.classify.resize import resize_maps

TARGET = 2_000  # maps per second
TOKENS, NEIGHBOURS, SIDE = 128, 650, 32


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few maps, as a smoke test")
    quick = parser.parse_args().quick
    count = 8 if quick else 256
    weights = torch.randn(count, TOKENS, TOKENS, generator=torch.Generator().manual_seed(0)).mul(2).softmax(-1)
    real, segments = torch.ones(count, TOKENS, dtype=torch.bool), (torch.arange(TOKENS) > 50).long().expand(count, -1)
    rivals: dict[str, Callable[[], object]] = {
        name: lambda name=name: classify(weights, real, segments, name)  # type: ignore[misc]
        for name in ("cnn", "rules", "both")
    }
    rivals["nearest neighbour"] = lambda: nearest(weights, real, segments)
    speeds: dict[str, list[list[float]]] = {name: [] for name in rivals}
    for threads, clock in ((2, time.perf_counter), (1, time.process_time)):
        torch.set_num_threads(threads)
        for name, seconds in time_interleaved(rivals, turns=2 if quick else 9, clock=clock).items():
            speeds[name].append([count / duration for duration in seconds])
    rows = []
    for name, (wall, core) in speeds.items():
        verdict = f"≥{TARGET:,} {'met' if median(wall) >= TARGET else 'missed'}" if name == "cnn" else ""
        rows.append([name, *(f"{min(speed):,.0f} / {median(speed):,.0f}" for speed in (wall, core)), verdict])
    header = ["classifier", "two threads", "one core", "target"]
    show(f"Patterns of {count} maps of {TOKENS} tokens, maps per second", header, rows)


def nearest(weights: torch.Tensor, real: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
    """Return the index of the nearest image, by mean and maximum weight of each pixel."""
    pixels = resize_maps(normalize_maps(weights, real, segments), SIDE)[:, :2].flatten(1)
    return torch.cdist(pixels, torch.zeros(NEIGHBOURS, pixels.shape[1])).argmin(-1)


if __name__ == "__main__":
    main()
