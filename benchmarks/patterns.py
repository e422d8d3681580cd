"""How fast classifiers of patterns are.

python -m benchmarks.patterns [--quick]

Maps a second on two threads, by the clock on the wall, from weights to probabilities: 256 maps of 128 tokens in one
batch. The peers see the same maps: a nearest neighbour among 650 pictures, and the rules. Least / median of the turns.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch

from benchmarks.timing import race, show
from headscope.patterns.classify import classify
from headscope.patterns.resize import pictures
from headscope.patterns.sizes import sizes_of

BAR = 2_000  # maps a second
TOKENS, KNOWN, SIDE = 128, 650, 32


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few maps, to see that it runs")
    quick = parser.parse_args().quick
    torch.set_num_threads(2)
    many = 8 if quick else 256
    weights = torch.randn(many, TOKENS, TOKENS, generator=torch.Generator().manual_seed(0)).mul(2).softmax(-1)
    real, segments = torch.ones(many, TOKENS, dtype=torch.bool), (torch.arange(TOKENS) > 50).long().expand(many, -1)
    rivals: dict[str, Callable[[], object]] = {
        name: lambda name=name: classify(weights, real, segments, name)  # type: ignore[misc]
        for name in ("cnn", "rules", "both")
    }
    rivals["nearest neighbour"] = lambda: nearest(weights, real, segments)
    runs = race(rivals, repeats=2 if quick else 9, clock=time.perf_counter)
    rows = []
    for name, seconds in runs.items():
        speeds = [many / each for each in seconds]
        verdict = f"≥{BAR:,} {'met' if median(speeds) >= BAR else 'missed'}" if name == "cnn" else ""
        rows.append([name, f"{min(speeds):,.0f} / {median(speeds):,.0f}", verdict])
    show(f"Patterns of {many} maps of {TOKENS} tokens, maps a second", ["classifier", "speed", "bar"], rows)


def nearest(weights: torch.Tensor, real: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
    """The place of the nearest of so many pictures, by mean and largest weight of each pixel."""
    seen = pictures(sizes_of(weights, real, segments), SIDE)[:, :2].flatten(1)
    return torch.cdist(seen, torch.zeros(KNOWN, seen.shape[1])).argmin(-1)


if __name__ == "__main__":
    main()
