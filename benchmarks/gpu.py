"""Effective attention on a GPU: its error, and its cost over the forward pass.

PYTHONPATH=src python -m benchmarks.gpu [--quick] [--out FILE.json]

TF32 is off. Times are wall-clock medians of interleaved runs, with the GPU synchronised, a tokenizer attached, and
inputs on the GPU unless a table says otherwise. Errors are the worst over stress cases, against a float64 singular
value decomposition on the CPU.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from benchmarks.peers import WARMUP, in_place, load_bert, load_llama, steps
from benchmarks.timing import show
from headscope.effective.causal import project_rows
from headscope.effective.projection import project
from headscope.effective.visibility import analyze_mask
from headscope.engine.model import Model
from headscope.experiments.timing import Variant, time_interleaved

EPS = torch.finfo(torch.float32).eps
BERT_BARS = {(8, 128): 1.50, (64, 128): 1.30, (32, 512): 1.20}
IN_PLACE_BAR = 2.0
HALF_BAR = 2.5
LLAMA_BARS = {(4, 256): 1.8, (1, 1024): 1.8}


def main() -> None:
    """Print the errors, the ratios and the number of host synchronisations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny models, on the CPU where there is no GPU")
    parser.add_argument("--out", type=Path, help="where to write the ratios")
    options = parser.parse_args()
    quick, rows = options.quick, []
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    print_errors(device)
    turns = 2 if quick else 9
    layers = {"layers": 2} if quick else {}
    bert = load_bert(**layers, device=device)
    shapes = {(2, 96): 9.9} if quick else BERT_BARS
    rows += print_ratios("BERT-base shape, float32", bert, shapes, turns)
    host = shapes if quick else {(64, 128): BERT_BARS[64, 128]}
    rows += print_ratios("BERT-base shape, float32, inputs on the host", bert, host, turns, on_device=False)
    for dtype in (torch.bfloat16,) if quick else (torch.bfloat16, torch.float16):
        half = load_bert(**layers, device=device, dtype=dtype)
        rows += print_ratios(
            f"BERT-base shape, {name_of(dtype)}", half, {(2, 96) if quick else (64, 128): HALF_BAR}, turns
        )
    for dtype in (torch.float32, torch.bfloat16):
        size = (2, 4, 2) if quick else (22, 32, 4)
        llama = load_llama(*size, intermediate=5632, device=device, dtype=dtype)
        bars = {(1, 96): 9.9} if quick else LLAMA_BARS if dtype == torch.float32 else {(4, 256): HALF_BAR}
        rows += print_ratios(f"Llama shape (22 layers, 32 heads, 4 value heads), {name_of(dtype)}", llama, bars, turns)
    print_against_svd(device, (2, 96) if quick else (64, 128))
    if options.out:
        name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
        facts = {"command": "python -m benchmarks.gpu", "device": name, "torch": torch.__version__, "turns": turns}
        options.out.write_text(json.dumps({**facts, "rows": rows}, indent=1) + "\n")


def print_errors(device: str) -> None:
    """Print the worst error of both masks over the stress cases."""
    rows = []
    for name, values in stress_cases().items():
        attention = torch.softmax(3 * torch.randn(*values.shape[:2], values.shape[1]), -1)
        keys = torch.ones(values.shape[:2], dtype=torch.bool, device=device)
        inputs = (attention.to(device), values.to(device))
        part = project(*inputs, keys, inputs[0] @ inputs[1])
        causal = torch.ones(attention.shape[-2:], dtype=torch.bool).tril()
        below = attention * causal / (attention * causal).sum(-1, keepdim=True)
        mask = causal.to(device)[None]
        by_row = project_rows([below.to(device)[None]], inputs[1][None, None], mask, analyze_mask(mask)).effective[0]
        errors = (
            (part.left @ part.right.mT).cpu().double() - oracle(attention, values, None),
            by_row[0].cpu().double() - oracle(below, values, causal),
        )
        rows.append([name, *(f"{float(error.abs().max()):.1e}" for error in errors)])
    show("Worst absolute error", ["values", "all keys", "causal"], rows)


def stress_cases() -> dict[str, Tensor]:
    """Return values on which float32 methods fail."""
    plain = torch.randn(4, 96, 32)
    repeated = plain[:, torch.arange(96) % 24]
    zeros, constant = plain.clone(), plain.clone()
    zeros[:, 5:80], constant[..., 4:9] = 0, 1
    return {
        "plain": plain,
        "fewer keys than dimensions": plain[:, :20],
        "repeated tokens": repeated,
        "zero rows": zeros,
        "constant columns": constant,
        "condition 1e3": plain * torch.logspace(0, -3, 32),
        "condition 1e8": plain * torch.logspace(0, -8, 32),
        "all zero": 0 * plain,
    }


def oracle(attention: Tensor, values: Tensor, causal: Tensor | None) -> Tensor:
    """Project row by row in float64, on the CPU."""
    effective = torch.zeros(attention.shape, dtype=torch.float64)
    for row in range(attention.shape[1]):
        count = values.shape[1] if causal is None else int(causal[row].sum())
        left, sizes, _ = torch.linalg.svd(values[:, :count].double(), full_matrices=False)
        left = left * (sizes > sizes[:, :1] * max(count, values.shape[-1]) * EPS)[:, None]
        effective[:, row, :count] = ((attention[:, row : row + 1, :count].double() @ left) @ left.mT)[:, 0]
    return effective


def print_ratios(
    title: str, model: Model, bars: dict[tuple[int, int], float], turns: int, *, on_device: bool = True
) -> list[dict[str, Any]]:
    """Print capture and view over the forward pass with attentions, and the number of host synchronisations."""
    rows, results = [], []
    for (batch, length), bar in bars.items():
        rivals = {
            name: Variant(run, warmup=WARMUP) for name, run in steps(model, batch, length, on_device=on_device).items()
        }
        rivals["in place"] = in_place(model, batch, length)
        runs = time_interleaved(rivals, turns=turns, clock=clock_of(model.device.type))
        forward = median(runs.pop("forward"))
        ratios = {name: median(times) / forward for name, times in runs.items()}
        cells = [f"{ratio:.2f}" for ratio in ratios.values()]
        verdicts = [verdict(ratios["materialised"], bar), verdict(ratios["in place"], IN_PLACE_BAR)]
        waits = str(count_synchronisations(rivals["materialised"].run))
        rows.append([f"{batch} × {length}", f"{forward * 1e3:.1f} ms", *cells, *verdicts, waits])
        shape = {"model": title, "batch": batch, "tokens": length, "forward_ms": 1e3 * forward, "bar": bar}
        results.append({**shape, **ratios, "synchronisations": int(waits)})
    header = ["batch", "forward", "captured", "factored", "materialised", "in place", "maps", "edit", "syncs"]
    show(f"{title}, over the forward pass with attentions: median", header, rows)
    return results


def verdict(ratio: float, bar: float) -> str:
    """Return whether a ratio is within its bar."""
    return f"≤{bar:.2f} {'met' if ratio <= bar else 'missed'}"


def print_against_svd(device: str, shape: tuple[int, int]) -> None:
    """Print the time of a full decomposition per head in a loop, timed on a few heads and scaled."""
    batch, length = shape
    values = torch.randn(batch * 12, length, 64, device=device)
    attention = torch.softmax(torch.randn(batch * 12, length, length, device=device), -1)
    keys, few = torch.ones(values.shape[:2], dtype=torch.bool, device=device), 24

    def headscope() -> Any:
        part = project(attention, values, keys, attention @ values)
        return part.left @ part.right.mT

    def loop() -> Any:
        for head, rows in zip(attention[:few], values[:few], strict=True):
            null = torch.linalg.svd(rows, full_matrices=True)[0][:, 64:]
            _ = head - head @ null @ null.mT

    times = time_interleaved({"headscope": headscope, "loop": loop}, turns=5, clock=clock_of(device))
    scaled = median(times["loop"]) * len(values) / few
    ratio = scaled / median(times["headscope"])
    print(f"\nOne layer, {batch} × {length}: full SVD per head in a loop (scaled) {ratio:.0f}×")


def clock_of(device: str) -> Callable[[], float]:
    """Return a wall clock that waits for the GPU."""

    def synchronised() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return synchronised if device == "cuda" else time.perf_counter


def name_of(dtype: torch.dtype) -> str:
    """Return the name of a dtype."""
    return str(dtype).removeprefix("torch.")


def count_synchronisations(run: Callable[[], Any]) -> int:
    """Return how often the host waited for the GPU."""
    if not torch.cuda.is_available():
        return 0
    torch.cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        run()
    torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(message.message) for message in messages)


if __name__ == "__main__":
    main()
