"""How much faster and smaller a model is after `hs.prune`.

PYTHONPATH=src python -m benchmarks.pruning [--quick] [--device cuda] [--out FILE.json]

Heads are drawn at random over all layers. Ratios are the time of the whole model's forward pass over that of the pruned
one, in turns in one process: CPU time on one thread, or wall-clock time with the GPU synchronised (TF32 is off). Every
pair of figures is the ratio of the least times and the median of the ratios. On a CPU the files that `hs.save` writes,
in float32, are measured as well.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.peers import load_bert, load_llama, random_inputs
from benchmarks.timing import ratio, show
from headscope.engine.edited import edited
from headscope.engine.model import Model
from headscope.engine.pruning.prune import list_heads, prune
from headscope.experiments.timing import Variant, gpu_clock, time_interleaved
from headscope.results.store import save

SHARES = (25, 50, 75)
WARMUP = 3


def main() -> None:
    """Print and write the ratios of every model and shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny shapes, to see that it runs")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path, help="where to write the ratios")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    if options.device == "cpu":
        torch.set_num_threads(1)
    turns, rows = 2 if options.quick else 7, []
    for name, model, shapes in _cases(options.device, quick=options.quick):
        rows += compare(name, model, shapes, turns)
    if options.out:
        device = "one thread of a CPU" if options.device == "cpu" else torch.cuda.get_device_name()
        command = f"python -m benchmarks.pruning{'' if options.device == 'cpu' else ' --device cuda'}"
        facts = {"command": command, "device": device, "torch": torch.__version__, "turns": turns}
        options.out.write_text(json.dumps({**facts, "rows": rows}, indent=1) + "\n")


def _cases(device: str, *, quick: bool) -> list[tuple[str, Model, list[tuple[int, int]]]]:
    """Return names, models and shapes (batch and tokens)."""
    if quick:
        return [("tiny BERT shape", load_bert(2, hidden=32, heads=4, device=device), [(2, 16)])]
    llama = load_llama(12, 12, 4, intermediate=2048, device=device)
    if device == "cpu":
        shapes = [(1, 128), (1, 512)]
        return [("BERT-base shape", load_bert(), shapes), ("Llama shape, 12 layers, 12 heads", llama, shapes[1:])]
    shapes = [(8, 128), (32, 128), (32, 512)]
    half = load_bert(device=device, dtype=torch.bfloat16)
    return [
        ("BERT-base shape", load_bert(device=device), shapes),
        ("BERT-base shape, bfloat16", half, shapes),
        ("Llama shape, 12 layers, 12 heads", llama, shapes[1:]),
    ]


def compare(name: str, model: Model, shapes: list[tuple[int, int]], turns: int) -> list[dict[str, Any]]:
    """Time the whole and the pruned models, and print a row for each shape and share."""
    model.network.set_attn_implementation("sdpa")  # as users run models
    models = {share: prune(model, draw_heads(model, share)) if share else model for share in (0, *SHARES)}
    cuda = model.device.type == "cuda"
    files = {share: None if cuda else _file_size(pruned) for share, pruned in models.items()}
    clock = gpu_clock if cuda else time.process_time
    cells, rows = [], []
    for batch, tokens in shapes:
        inputs = {part: tensor.to(model.device) for part, tensor in random_inputs(model, batch, tokens).items()}
        runs = time_interleaved(_steps(models, inputs), turns=turns, clock=clock)
        for share, pruned in models.items():
            if not share:
                continue
            gain = ratio(runs["0"], runs[str(share)])
            error, scale = _error(model, pruned, draw_heads(model, share), inputs)
            whole, sizes = 1e3 * median(runs["0"]), (files[share], files[0])
            size = " of ".join(f"{size / 1e6:.0f}" for size in sizes if size is not None)
            cells.append([f"{batch} × {tokens}", f"{share} %", f"{whole:.1f} ms", f"{gain:.2f}", size])
            rows.append(
                {
                    "model": name,
                    "batch": batch,
                    "tokens": tokens,
                    "pruned": share,
                    "whole_ms": whole,
                    "speedup": gain.median,
                    "speedup_least": gain.least,
                    "file": files[share],
                    "whole_file": files[0],
                    "error": error,
                    "largest_output": scale,
                }
            )
    show(f"{name}: whole over pruned, least / median", ["shape", "pruned", "whole", "speed-up", "file (MB)"], cells)
    return rows


def draw_heads(model: Model, share: int) -> list[str]:
    """Return the names of a share of all heads, in percent."""
    layers = [module.total for site in list_heads(model).values() for module in site.values()]
    names = [f"L{layer}H{head}" for layer, heads in enumerate(layers) for head in range(heads)]
    return random.Random(share).sample(names, round(share * len(names) / 100))


def _steps(models: Mapping[int, Model], inputs: Mapping[str, Any]) -> dict[str, Variant]:
    def step(model: Model) -> Callable[[], Any]:
        return torch.no_grad()(lambda: model.network(**inputs))

    warmup = WARMUP if inputs["input_ids"].is_cuda else 0
    return {str(share): Variant(step(model), warmup=warmup) for share, model in models.items()}


@torch.no_grad()
def _error(model: Model, pruned: Model, heads: list[str], inputs: Mapping[str, Any]) -> tuple[float, float]:
    """Return the largest difference from the model whose heads write zeros, both eager, and its largest output."""
    with edited(model, f"zero_heads:heads={'+'.join(heads)}") as changed:
        expected = changed.network(**inputs).last_hidden_state
    with edited(pruned, "gate_heads:gate=1.0") as eager:
        difference = eager.network(**inputs).last_hidden_state - expected
    return float(difference.abs().max()), float(expected.abs().max())


def _file_size(model: Model) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = save(model, Path(folder) / "model")
        return sum(file.stat().st_size for file in path.glob("*.safetensors"))


if __name__ == "__main__":
    main()
