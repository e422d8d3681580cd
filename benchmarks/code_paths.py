"""What each code path of effective attention gains: the time without it over the time with it.

PYTHONPATH=src python -m benchmarks.code_paths [--quick] [--out FILE.json]

Runs on the GPU if there is one, else on one thread of the CPU. Each mechanism is switched off by itself, and both
versions are interleaved in one process; the figure is the ratio of medians.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.gpu import clock_of
from benchmarks.peers import in_place, load_bert, load_llama, steps
from benchmarks.timing import show
from headscope.core.lens import view
from headscope.core.maps import factored
from headscope.core.trace import Trace
from headscope.effective import cholesky, layers, output, projection
from headscope.effective.visibility import Visibility, analyze_mask
from headscope.engine.capture import capture
from headscope.engine.model import Model
from headscope.experiments.timing import Variant, time_interleaved


def main() -> None:
    """Print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny models, to see that it runs")
    parser.add_argument("--out", type=Path, help="where to write the figures")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = list(measure(device, quick=options.quick))
    cells = [[row["mechanism"], row["input"], f"{row['with_ms']:.1f} ms", f"{row['gain']:.2f}×"] for row in rows]
    show("Time without each mechanism over the time with it", ["mechanism", "input", "with it", "gain"], cells)
    if options.out:
        name = torch.cuda.get_device_name() if device == "cuda" else "one thread of a CPU"
        facts = {"command": "python -m benchmarks.code_paths", "device": name, "torch": torch.__version__}
        options.out.write_text(
            json.dumps({**facts, "turns": turns(quick=options.quick), "rows": rows}, indent=1) + "\n"
        )


def turns(*, quick: bool) -> int:
    """Return how often each version runs."""
    return 2 if quick else 7


def measure(device: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield each mechanism with its time and gain."""
    size = {"layers": 2, "hidden": 128, "heads": 2} if quick else {"layers": 12 if device == "cuda" else 4}
    bert = load_bert(**size, device=device)
    wide = (2, 80) if quick else (64, 128) if device == "cuda" else (1, 512)
    small = (2, 80) if quick else (8, 128)
    llama_size = (2, 4, 2) if quick else (22, 32, 4) if device == "cuda" else (6, 9, 3)
    llama = load_llama(*llama_size, intermediate=64 if quick else 1536, device=device)
    decoder = (1, 80) if quick else (4, 256) if device == "cuda" else (4, 128)
    cases: list[tuple[str, Any, tuple[int, int], Callable[[], AbstractContextManager[Any]], bool]] = [
        ("full rank proved by a Cholesky factor", bert, small, without_proof, False),
        ("A·Q from the model's A·V, in float32", bert, wide, without_float32, False),
        ("nested rows in chunks", llama, decoder, without_chunks, False),
        ("value heads factored once for the heads that share them", llama, decoder, without_groups, False),
    ]
    if device == "cuda":
        cases += [
            ("layers stacked", bert, small, without_stacks, False),
            ("triangular inverses by halves", bert, wide, without_halves, False),
        ]
    else:
        cases += [("large maps in huge pages", bert, (1, 128) if quick else (1, 1024), without_huge_pages, True)]
    for mechanism, model, inputs, switched_off, materialise in cases:
        trace = steps(model, *inputs)["captured"]()
        yield compare(mechanism, trace, inputs, switched_off, materialise=materialise, quick=quick, device=device)
    if device == "cuda":
        yield compare_in_place(bert, small, quick=quick)
    ids = torch.randint(5, 65, decoder, device=device)  # 60 words, most of which occur more than once
    trace = capture(llama, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    yield compare(
        "equal rows of V merged", trace, decoder, without_merging, materialise=False, quick=quick, device=device
    )


def compare(
    mechanism: str,
    trace: Trace,
    inputs: tuple[int, int],
    switched_off: Callable[[], AbstractContextManager[Any]],
    *,
    materialise: bool,
    quick: bool,
    device: str,
) -> dict[str, Any]:
    """Return the time of a view with a mechanism, and the gain over the time without it."""

    def run() -> Any:
        effective = view(trace, "effective")
        return [effective.layer(label) for label in effective.layers] if materialise else effective

    variants = {"with": Variant(run, warmup=1), "without": Variant(run, switched_off, warmup=1)}
    times = time_interleaved(variants, turns=turns(quick=quick), clock=clock_of(device))
    shape = f"{trace.attention[0].shape[1]} heads, {inputs[0]} × {inputs[1]} tokens"
    gain = median(times["without"]) / median(times["with"])
    return {"mechanism": mechanism, "input": shape, "with_ms": 1e3 * median(times["with"]), "gain": gain}


def compare_in_place(model: Model, inputs: tuple[int, int], *, quick: bool) -> dict[str, Any]:
    """Return the time of a pass under the edit, and the gain of its kernels."""
    edit = in_place(model, *inputs)

    @contextmanager
    def without_kernels() -> Iterator[None]:
        with edit.context(), patch.object(output, "_find_kernels", lambda *_, **__: None):
            yield

    variants = {"with": edit, "without": Variant(edit.run, without_kernels, edit.warmup)}
    times = time_interleaved(variants, turns=turns(quick=quick), clock=clock_of("cuda"))
    gain = median(times["without"]) / median(times["with"])
    shape = f"{model.network.config.num_attention_heads} heads, {inputs[0]} × {inputs[1]} tokens, whole pass"
    with_ms = 1e3 * median(times["with"])
    return {"mechanism": "the edit in kernels of its own", "input": shape, "with_ms": with_ms, "gain": gain}


def without_proof() -> AbstractContextManager[Any]:
    """Decompose every head."""

    def bases(values: Any, keys: Any, counts: Any) -> Any:
        tolerance = projection.rank_tolerance(counts, values.shape[-1])
        return [projection.Basis(*projection._svd_basis(layer, keys, tolerance)) for layer in values]

    return patch.object(layers, "column_bases", bases)


def without_merging() -> AbstractContextManager[Any]:
    """Decompose every head whose full rank is not proved."""

    def basis(values: Any, keys: Any) -> Any:
        tolerance = projection.rank_tolerance(keys.sum(-1), values.shape[-1])
        return projection.Basis(*projection._svd_basis(values, keys, tolerance))

    return patch.object(projection, "_merged_basis", basis)


def without_float32() -> AbstractContextManager[Any]:
    """Compute all bases in float64, and A·Q from A."""
    return patch.object(projection, "WELL_CONDITIONED", 0.0)


@contextmanager
def without_chunks() -> Iterator[None]:
    """Project each row as a problem of its own."""

    def analyze(visible: Any) -> Visibility:
        return replace(analyze_mask(visible), order=None)

    with patch.object(layers, "analyze_mask", analyze):
        yield


@contextmanager
def without_groups() -> Iterator[None]:
    """Factor the values of every head."""
    whole = layers.compute_layers

    def compute(trace: Trace, keys: Any) -> Any:
        return whole(replace(trace, group=1), keys)

    with patch("headscope.lenses.effective.compute_layers", compute):
        yield


def without_stacks() -> AbstractContextManager[Any]:
    """Compute one layer after the other."""
    return patch.object(layers, "_stack_layers", lambda every: ([layer] for layer in every))


def without_halves() -> AbstractContextManager[Any]:
    """Invert every triangular matrix as a whole."""
    return patch.object(cholesky, "MAX_WHOLE_INVERSES", 10**9)


def without_huge_pages() -> AbstractContextManager[Any]:
    """Allocate maps as torch does."""
    return patch.object(factored, "allocate_huge_pages", lambda shape, dtype: torch.empty(shape, dtype=dtype))


if __name__ == "__main__":
    main()
