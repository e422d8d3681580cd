"""What the lenses of contributions cost over a plain forward pass: the capture that they need, and the lens.

python -m benchmarks.contributions [--quick] [--out FILE.json]

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
from headscope.core.catalog import lenses
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.model import Model
from headscope.experiments.timing import time_interleaved

LENSES: dict[str, float | None] = {
    "norm:merge=true": None,
    "norm:residual=true": None,
    "alti": 3.0,
    "logit:head=linearized": None,
    "relevance": 4.0,
}
"""Capture and lens over the plain forward pass, with the bar that was set before."""

CAPTURES = {"capture": (), "capture, residual": ("residual",)}


def main() -> None:
    """Print a row for each lens."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny shapes, to see that it runs")
    parser.add_argument("--out", type=Path, help="where to write the ratios")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    turns = 2 if options.quick else 3
    if options.quick:
        rows = compare("tiny BERT shape", load_bert(2, hidden=32, heads=4), 16, turns)
        rows += compare_value_zeroing("tiny BERT shape", load_bert(2, hidden=32, heads=4), 16, turns)
    else:
        rows = compare("BERT-base shape", load_bert(), 128, turns)
        rows += compare("Llama shape, 12 layers, 9 heads", load_llama(12, 9, 3, intermediate=1536), 128, turns)
        rows += compare_value_zeroing("BERT-base shape", load_bert(), 64, 3)
    if options.out:
        facts = {
            "command": "python -m benchmarks.contributions",
            "device": "one thread of a CPU",
            "torch": torch.__version__,
        }
        options.out.write_text(json.dumps({**facts, "turns": turns, "rows": rows}, indent=1) + "\n")


def compare(name: str, model: Model, length: int, turns: int) -> list[dict[str, Any]]:
    """Time each lens with the capture that it needs over the plain forward pass, side by side."""
    return _compare_runs(name, length, time_interleaved(_steps(model, length), turns=turns), LENSES)


def _compare_runs(
    name: str, length: int, runs: dict[str, list[float]], bars: dict[str, float | None]
) -> list[dict[str, Any]]:
    forward = runs.pop("forward")
    cells, rows = [], []
    for what, times in runs.items():
        found, bar = ratio(times, forward), bars.get(what)
        verdict = "" if bar is None else f"≤{bar:.0f} {'met' if found.median <= bar else 'missed'}"
        cells.append([what, f"{found:.2f}", verdict])
        rows.append({"model": name, "tokens": length, "what": what, "least": found.least, "median": found.median})
        rows[-1] |= {"bar": bar, "forward_ms": 1e3 * median(forward)}
    title = f"{name}, {length} tokens, plain forward {median(forward):.3f} s: capture and lens over it, least / median"
    show(title, ["", "ratio", "bar"], cells)
    return rows


def compare_value_zeroing(name: str, model: Model, length: int, turns: int) -> list[dict[str, Any]]:
    """Time value zeroing of a trace in hand over the plain forward pass; the bar is one run of each layer per key."""
    inputs = random_inputs(model, 1, length)
    trace = capture(model, inputs, keep=("values", "blocks"))

    @torch.no_grad()
    def forward() -> Any:
        return model.network(**inputs)

    steps = {
        "forward": forward,
        "capture, blocks": lambda: capture(model, inputs, keep=("values", "blocks")),
        "value_zeroing": lambda: view(trace, "value_zeroing").parts,
    }
    return _compare_runs(name, length, time_interleaved(steps, turns=turns), {"value_zeroing": float(length)})


def _steps(model: Model, length: int) -> dict[str, Callable[[], Any]]:
    """Return the plain forward pass, captures, and each lens with its capture."""
    inputs = random_inputs(model, 1, length)

    @torch.no_grad()
    def forward() -> Any:
        return model.network(**inputs)

    def see(spec: str) -> Callable[[], Any]:
        lens = lenses.make(spec)
        keep = tuple(lens.needs - {"gradient"})
        return lambda: view(capture(model, inputs, keep=keep, target=_score if lens.needs_target else None), lens).parts

    def keep(names: tuple[str, ...]) -> Callable[[], Any]:
        return lambda: capture(model, inputs, keep=("values", "output", *names))

    captures = {name: keep(names) for name, names in CAPTURES.items()}
    return {"forward": forward, **captures, **{name: see(name) for name in LENSES}}


def _score(output: Any) -> torch.Tensor:
    """A linear function of the first token's hidden state; the output of a model without a head."""
    hidden: torch.Tensor = output.last_hidden_state[:, 0]
    return hidden @ torch.linspace(-1, 1, hidden.shape[-1]).to(hidden)


if __name__ == "__main__":
    main()
