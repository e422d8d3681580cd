"""What effective attention costs: over the forward pass that it needs, and against other ways to compute it.

python -m benchmarks.effective [--quick] [--out FILE.json]
python -m benchmarks.effective --texts [--quick] [--out FILE.json]

CPU time on one thread, rivals in turns in one process. Every pair of figures is the least and the median. With
--texts it is the default model on four texts, from text to maps, beside the forward that users have by default:
scaled-dot-product attention, which returns no attention.
"""

import argparse
import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

import headscope as hs
from benchmarks.peers import load_bert, load_llama, steps
from benchmarks.timing import Ratio, ratio, show
from headscope.effective.projection import project
from headscope.experiments.timing import time_interleaved

HEADS = 12
BARS_OVER_FORWARD = {"factored": 1.20, "materialised": 1.25}
DECODER_BAR, TEXTS_BAR = 1.60, 1.20
BARS_AGAINST_SVD = {128: 4, 512: 6, 1024: 10}


@dataclass(frozen=True)
class Shape:
    """A BERT of this size, with random weights."""

    name: str
    hidden: int
    layers: dict[int, int]  # for each length: what a layer costs is the same in a stack of a few
    heads: int = HEADS
    bars: dict[str, float] = field(default_factory=dict)


BERT_BASE = Shape("BERT-base shape, d = 64", 768, {128: 12, 256: 12, 512: 4, 1024: 4}, bars=BARS_OVER_FORWARD)
MINILM = Shape("MiniLM shape, d = 32", 384, {128: 6, 256: 6, 512: 6, 1024: 6})
TINY = Shape("tiny shape, d = 8", 32, {12: 2, 16: 2}, heads=4)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny shapes, to see that it runs")
    parser.add_argument("--texts", action="store_true", help="from text to maps, and nothing else")
    parser.add_argument("--out", type=Path, help="where to write the ratios")
    options = parser.parse_args()
    quick, rows = options.quick, []
    torch.set_num_threads(1)
    torch.manual_seed(0)
    effort = {"turns": 2} if quick else {"turns": 9, "seconds": 24.0}
    if options.texts:
        rows += compare_from_texts(4, 16 if quick else 120, effort)
        _write(options.out, "python -m benchmarks.effective --texts", effort, rows)
        return
    for shape in (TINY,) if quick else (BERT_BASE, MINILM):
        rows += compare_with_forward(shape, effort)
    rows += compare_with_decoder((2, 4, 2, 64) if quick else (30, 9, 3, 1536), (2, 12) if quick else (4, 128), effort)
    compare_with_decompositions((16,) if quick else (128, 256, 512, 1024), 8 if quick else 64, effort)
    _write(options.out, "python -m benchmarks.effective", effort, rows)


def _write(path: Path | None, command: str, effort: Any, rows: Sequence[dict[str, Any]]) -> None:
    if path is not None:
        facts = {"command": command, "device": "one thread of a CPU", "torch": torch.__version__}
        path.write_text(json.dumps({**facts, "turns": effort["turns"], "rows": rows}, indent=1) + "\n")


def compare_from_texts(batch: int, tokens: int, effort: Any) -> list[dict[str, Any]]:
    """Tokenize texts and run the model, by itself in two ways, or with capture, view and whole maps."""
    words = " ".join(example.text for example in hs.read("gap_pronouns:validation")[:20]).split()
    texts = [" ".join(words[tokens * index : tokens * (index + 1)]) for index in range(batch)]
    model = hs.load(dtype="float32")
    networks = {name: copy.deepcopy(model.network) for name in ("sdpa", "eager")}
    for name, network in networks.items():
        network.set_attn_implementation(name)

    @torch.no_grad()
    def forward(name: str) -> Any:
        inputs = model.tokenizer(texts, padding=True, truncation=True, max_length=tokens, return_tensors="pt")
        return networks[name](**inputs, output_attentions=name == "eager")

    def captured() -> Any:
        return hs.capture(model, texts, max_length=tokens)

    def factored() -> Any:
        trace = captured()
        return trace, hs.view(trace, "effective")

    def materialised() -> Any:
        trace, maps = factored()
        return trace, [maps.layer(label) for label in maps.layers]

    ways = {"forward": partial(forward, "eager"), "default": partial(forward, "sdpa")}
    runs = time_interleaved(
        {**ways, "captured": captured, "factored": factored, "materialised": materialised}, **effort
    )
    times = runs.pop("forward")
    ratios = {name: ratio(each, times) for name, each in runs.items()}
    cells = [_against(TEXTS_BAR if name == "materialised" else None, each) for name, each in ratios.items()]
    header = ["texts", "forward", *(f"{name} ≤{TEXTS_BAR:.2f}" if name == "materialised" else name for name in ratios)]
    line = [f"{batch} × {tokens}", f"{median(times):.3f} s", *cells]
    show("all-MiniLM-L6-v2 from text, over tokenizer and forward with attentions: least / median", header, [line])
    return [_record("all-MiniLM-L6-v2, from text", batch, tokens, times, ratios, TEXTS_BAR)]


def compare_with_forward(shape: Shape, effort: Any) -> list[dict[str, Any]]:
    """Capture and view, over the plain forward pass of the same model with attentions."""
    rows, results = [], []
    for length, layers in shape.layers.items():
        runs = time_interleaved(steps(load_bert(layers, hidden=shape.hidden, heads=shape.heads), 1, length), **effort)
        forward = runs.pop("forward")
        ratios = {name: ratio(times, forward) for name, times in runs.items()}
        cells = [_against(shape.bars.get(name), over_forward) for name, over_forward in ratios.items()]
        rows.append([f"{length}", f"{layers}", f"{median(forward):.3f} s", *cells])
        results.append(_record(shape.name, 1, length, forward, ratios, shape.bars.get("materialised")))
    names = [f"{name} ≤{shape.bars[name]:.2f}" if name in shape.bars else name for name in runs]
    header = ["tokens", "layers", "forward", *names]
    show(f"{shape.name}, over the forward pass with attentions: least / median", header, rows)
    return results


def _record(
    model: str, batch: int, tokens: int, forward: Sequence[float], ratios: dict[str, Ratio], bar: float | None
) -> dict[str, Any]:
    shape = {"model": model, "batch": batch, "tokens": tokens, "forward_ms": 1e3 * median(forward), "bar": bar}
    return {**shape, **{name: over_forward.median for name, over_forward in ratios.items()}}


def compare_with_decoder(size: tuple[int, int, int, int], inputs: tuple[int, int], effort: Any) -> list[dict[str, Any]]:
    """Capture and view of a causal decoder with shared value heads, over its forward pass with attentions."""
    layers, heads, value_heads, intermediate = size
    model = load_llama(layers, heads, value_heads, intermediate=intermediate)
    runs = time_interleaved(steps(model, *inputs), **effort)
    forward = runs.pop("forward")
    ratios = {name: ratio(times, forward) for name, times in runs.items()}
    cells = [
        _against(DECODER_BAR if name == "materialised" else None, over_forward) for name, over_forward in ratios.items()
    ]
    title = f"Llama shape, {layers} layers, {heads} heads, {value_heads} value heads, d = 64"
    header = ["batch", "forward", *runs]
    header[-1] += f" ≤{DECODER_BAR:.2f}"
    show(f"{title}: least / median", header, [[f"{inputs[0]} × {inputs[1]}", f"{median(forward):.3f} s", *cells]])
    return [_record(title, *inputs, forward, ratios, DECODER_BAR)]


def compare_with_decompositions(lengths: Sequence[int], value: int, effort: Any) -> None:
    """The projection alone, against singular value decompositions of the same values."""
    rows = []
    for length in lengths:
        runs = time_interleaved(_kernels(*_random_layer(length, value)), **effort)
        ours = runs.pop("headscope")
        ratios = {name: ratio(each, ours) for name, each in runs.items()}
        bar = _reached(BARS_AGAINST_SVD.get(length), ratios["full SVD"])
        cells = [f"{each:.1f}" for each in ratios.values()]
        rows.append([f"{length}", f"{median(ours) * 1e3:.1f} ms", *cells, bar])
    header = ["tokens", "headscope", *ratios, "bar (full SVD)"]
    show(f"Projection alone, {HEADS} heads, d = {value}, peers over ours: least / median", header, rows)


def _random_layer(length: int, value: int) -> tuple[Tensor, Tensor]:
    """Attention from scores of low rank, as a model's are, and values."""
    queries, keys, values = torch.randn(3, HEADS, length, value)
    return (2 * queries @ keys.mT / value**0.5).softmax(-1), values


def _kernels(attention: Tensor, values: Tensor) -> dict[str, Callable[[], Tensor]]:
    context = attention @ values
    return {
        "headscope": partial(by_projection, attention, values, context),
        "full SVD": partial(by_full_svd, attention, values),
        "full SVD, by head": partial(by_full_svd_of_each_head, attention, values),
        "economy SVD": partial(by_economy_svd, attention, values),
    }


def by_projection(attention: Tensor, values: Tensor, context: Tensor) -> Tensor:
    """Ours, with the context that the model has computed anyway."""
    found = project(attention, values, torch.ones(values.shape[:-1], dtype=torch.bool), context)
    return found.left @ found.right.mT


def by_full_svd(attention: Tensor, values: Tensor) -> Tensor:
    """The way of the published code: take the left null space of all heads at once, and remove it."""
    basis, sizes, _ = torch.linalg.svd(values, full_matrices=True)
    null = basis[..., int(_ranks(sizes, values).max()) :]
    return attention - attention @ null @ null.mT


def by_full_svd_of_each_head(attention: Tensor, values: Tensor) -> Tensor:
    """The same, head after head, each with its own rank."""
    return torch.stack([by_full_svd(*head) for head in zip(attention, values, strict=True)])


def by_economy_svd(attention: Tensor, values: Tensor) -> Tensor:
    """Project on the column space instead of removing the null space, which needs only the thin factor."""
    basis, sizes, _ = torch.linalg.svd(values, full_matrices=False)
    kept = torch.arange(sizes.shape[-1]) < _ranks(sizes, values)[..., None]
    basis = basis * kept[..., None, :]
    return attention @ basis @ basis.mT


def _ranks(sizes: Tensor, values: Tensor) -> Tensor:
    cut = max(values.shape[-2:]) * torch.finfo(values.dtype).eps
    return (sizes > cut * sizes[..., :1]).sum(-1)


def _against(bar: float | None, found: Ratio) -> str:
    verdict = "" if bar is None else " met" if found.median <= bar else " missed"
    return f"{found:.2f}{verdict}"


def _reached(bar: float | None, found: Ratio) -> str:
    return "" if bar is None else f"≥{bar} met" if found.median >= bar else f"≥{bar} missed"


if __name__ == "__main__":
    main()
