"""Effective attention on a GPU: is it right, and what does it cost over the forward pass?

PYTHONPATH=src python -m benchmarks.gpu [--quick]

Float32 with TF32 off. Times are wall-clock medians with the GPU waited for; rivals take turns. The error is the
worst over the stress cases, against a float64 singular value decomposition on the CPU.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor

from benchmarks.rivals import end_to_end, in_place
from benchmarks.timing import show
from headscope.core.maps import Factored
from headscope.effective.at_once import Layers, effective_at_once
from headscope.effective.causal import project_rows
from headscope.effective.projection import project
from headscope.effective.reach import Reach
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.experiments.timing import Rival, race
from headscope.studies.effective_attention.timing import SETTLING, gpu_clock

EPS = torch.finfo(torch.float32).eps
BARS = {(8, 128): 1.50, (64, 128): 1.30, (32, 512): 1.20}


def main() -> None:
    """Print the errors, the ratios and the number of questions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tiny model, on the CPU where there is no GPU")
    quick = parser.parse_args().quick
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    print_errors(device)
    model = _bert(device, 2 if quick else 12)
    shapes = {(2, 96): None} if quick else BARS
    print_ratios(model, shapes, 2 if quick else 15)
    print_against_svd(device, (2, 96) if quick else (64, 128))


def print_errors(device: str) -> None:
    """The worst error of every road over the stress cases."""
    rows = []
    for name, values in stress_cases().items():
        attention = torch.softmax(3 * torch.randn(*values.shape[:2], values.shape[1]), -1)
        seen = torch.ones(values.shape[:2], dtype=torch.bool, device=device)
        given = (attention.to(device), values.to(device))
        found = project(*given, seen, given[0] @ given[1])
        reach = Reach(seen[:1], [values.shape[1]], values.shape[-1])
        (once,) = effective_at_once(Layers([given[0][None]], given[1][None, None], None, reach)) or [None]
        assert once is not None
        made = once.part.weights if isinstance(once.part, Factored) else once.part
        causal = torch.ones(attention.shape[-2:], dtype=torch.bool).tril()
        below = attention * causal / (attention * causal).sum(-1, keepdim=True)
        by_row, _ = project_rows(below.to(device)[None], given[1][None], causal.to(device)[None])
        errors = (
            made[0].cpu().double() - oracle(attention, values, None),
            (found.left @ found.right.mT).cpu().double() - oracle(attention, values, None),
            by_row[0].cpu().double() - oracle(below, values, causal),
        )
        rows.append([name, *(f"{float(each.abs().max()):.1e}" for each in errors)])
    show("Worst absolute error", ["values", "at once", "head by head", "causal"], rows)


def stress_cases() -> dict[str, Tensor]:
    """Values that break quicker ways."""
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
    """Row by row in float64, on the CPU."""
    effective = torch.zeros(attention.shape, dtype=torch.float64)
    for row in range(attention.shape[1]):
        reach = values.shape[1] if causal is None else int(causal[row].sum())
        left, sizes, _ = torch.linalg.svd(values[:, :reach].double(), full_matrices=False)
        left = left * (sizes > sizes[:, :1] * max(reach, values.shape[-1]) * EPS)[:, None]
        effective[:, row, :reach] = ((attention[:, row : row + 1, :reach].double() @ left) @ left.mT)[:, 0]
    return effective


def print_ratios(model: Model, shapes: Any, turns: int) -> None:
    """Capture and view over the plain forward pass with attentions, and how often the host had to ask."""
    rows = []
    for (batch, length), bar in shapes.items():
        runs = end_to_end(model, batch, length)
        rivals = {name: Rival(run, settling=SETTLING) for name, run in runs.items()}
        rivals["in place"] = in_place(model, batch, length)
        forward, *others = race(rivals, turns=turns, clock=_clock(model.device.type)).values()
        cells = [f"{median(each) / median(forward):.2f}" for each in others]
        met = all(float(cells[list(rivals).index(name) - 1]) <= (bar or 0) for name in ("materialised", "in place"))
        verdict = "" if bar is None else f"≤{bar:.2f} {'met' if met else 'missed'}"
        asked = questions(rivals["factored"].run) - questions(rivals["captured"].run)
        rows.append([f"{batch} × {length}", f"{median(forward) * 1e3:.1f} ms", *cells, verdict, f"{asked}"])
    header = ["batch", "forward", "captured", "factored", "materialised", "in place", "bar", "questions"]
    show("BERT-base shape, over the forward pass with attentions: median", header, rows)


def print_against_svd(device: str, shape: tuple[int, int]) -> None:
    """A full decomposition per head in a loop, timed on a few heads and scaled."""
    batch, length = shape
    values = torch.randn(batch * 12, length, 64, device=device)
    attention = torch.softmax(torch.randn(batch * 12, length, length, device=device), -1)
    seen, few = torch.ones(values.shape[:2], dtype=torch.bool, device=device), 24

    def ours() -> Any:
        found = project(attention, values, seen, attention @ values)
        return found.left @ found.right.mT

    def loop() -> Any:
        for head, rows in zip(attention[:few], values[:few], strict=True):
            null = torch.linalg.svd(rows, full_matrices=True)[0][:, 64:]
            _ = head - head @ null @ null.mT

    times = race({"ours": ours, "loop": loop}, turns=5, clock=_clock(device))
    scaled = median(times["loop"]) * len(values) / few
    print(
        f"\nOne layer, {batch} × {length}: full SVD per head in a loop (scaled) {scaled / median(times['ours']):.0f}×"
    )


def _clock(device: str) -> Callable[[], float]:
    return gpu_clock if device == "cuda" else time.perf_counter


def _bert(device: str, layers: int) -> Model:
    from transformers import BertConfig, BertModel

    config = BertConfig(num_hidden_layers=layers, attn_implementation="eager")
    return load(BertModel(config, add_pooling_layer=False).to(device).eval())


def questions(run: Callable[[], Any]) -> int:
    """How often the host waited for the GPU."""
    if not torch.cuda.is_available():
        return 0
    torch.cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run()
    torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(each.message) for each in said)


if __name__ == "__main__":
    main()
