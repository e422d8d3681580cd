"""What rollout costs over the forward pass that it needs.

python -m benchmarks.rollout [--quick] [--out FILE.json]

CPU time on one thread, in turns in one process. Every pair of figures is the least and the median.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.peers import load_bert, load_llama, random_inputs
from benchmarks.timing import ratio, show
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.model import Model
from headscope.experiments.timing import time_interleaved

LENSES = {"rollout": "rollout", "receptive field": "rollout:receptive_field=true"}


def main() -> None:
    """Print a row for each length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny shapes, to see that it runs")
    parser.add_argument("--out", type=Path, help="where to write the ratios")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    turns = 2 if options.quick else 9
    if options.quick:
        rows = compare("tiny BERT shape", load_bert(2, hidden=32, heads=4), {12: None, 16: None}, turns)
    else:
        rows = compare("BERT-base shape", load_bert(), {32: 0.05, 128: 0.05, 512: 0.05, 1024: 0.10}, turns)
        llama = load_llama(12, 9, 3, intermediate=1536)
        rows += compare("Llama shape, 12 layers, 9 heads", llama, {128: None, 512: None}, turns)
    if options.out:
        facts = {
            "command": "python -m benchmarks.rollout",
            "device": "one thread of a CPU",
            "torch": torch.__version__,
        }
        options.out.write_text(json.dumps({**facts, "turns": turns, "rows": rows}, indent=1) + "\n")


def compare(name: str, model: Model, bars: dict[int, float | None], turns: int) -> list[dict[str, Any]]:
    """Time `hs.view` of a trace in hand over the forward pass of the same model with attentions, by length."""
    cells, rows = [], []
    for length, bar in bars.items():
        runs = time_interleaved(_steps(model, length), turns=turns)
        forward = runs.pop("forward")
        ratios = {lens: ratio(times, forward) for lens, times in runs.items()}
        verdict = "" if bar is None else f"≤{bar:.2f} {'met' if ratios['rollout'].median <= bar else 'missed'}"
        cells.append([f"{length}", f"{median(forward):.3f} s", *(f"{found:.3f}" for found in ratios.values()), verdict])
        medians = {lens: found.median for lens, found in ratios.items()}
        rows.append({"model": name, "tokens": length, "forward_ms": 1e3 * median(forward), **medians, "bar": bar})
    show(f"{name}, view over the forward pass: least / median", ["tokens", "forward", *LENSES, "bar (rollout)"], cells)
    return rows


def _steps(model: Model, length: int) -> dict[str, Callable[[], Any]]:
    """Return the forward pass with attentions, and a view through each lens of its trace."""
    inputs = random_inputs(model, 1, length)
    trace = capture(model, inputs)

    @torch.no_grad()
    def forward() -> Any:
        return model.network(**inputs, output_attentions=True)

    def step(lens: str) -> Callable[[], Any]:
        return lambda: view(trace, lens).parts

    return {"forward": forward, **{name: step(lens) for name, lens in LENSES.items()}}


if __name__ == "__main__":
    main()
