"""Interleaved timing: variants take turns, so that a slow minute of the machine affects all of them."""

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.core.example import Example
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.engine.batch import make_batches
from headscope.engine.capture import capture_batch, make_request
from headscope.engine.device import single_thread
from headscope.engine.edited import edited
from headscope.engine.model import Model

Clock = Callable[[], float]
TURNS, SLOW_TURNS = 9, 3
WARMUP = 5
"""Batches before the timed one on a GPU, until repeated work is recorded."""


@dataclass(frozen=True)
class Variant:
    """One way to do something: a function, and a context that is entered before the clock starts."""

    run: Callable[[], Any]
    context: Callable[[], AbstractContextManager[Any]] = nullcontext
    warmup: int = 0  # batches before the timed one
    max_turns: int | None = None


def time_interleaved(
    variants: Mapping[str, Variant | Callable[[], Any]],
    *,
    turns: int,
    seconds: float = 0.0,
    clock: Clock = time.process_time,
) -> dict[str, list[float]]:
    """Return the seconds of every variant in every turn, of CPU time by default, after one turn to warm up.

    There are at least `turns` turns, and more until `seconds` are spent: short runs are noisier.
    """
    ready = {name: value if isinstance(value, Variant) else Variant(value) for name, value in variants.items()}
    spent: dict[str, list[float]] = {name: [] for name in ready}
    _time_turn(ready, 0, clock)
    gc.freeze()  # so that each turn collects its own garbage only, not the objects of all libraries
    try:
        turn, start = 0, clock()
        while turn < turns or clock() - start < seconds:
            for name, duration in _time_turn(ready, turn, clock).items():
                spent[name].append(duration)
            turn += 1
    finally:
        gc.unfreeze()
    return spent


def time_evaluation(
    model: Model,
    examples: Sequence[Example],
    max_length: int,
    sizes: Sequence[int],
    *,
    edits: Mapping[str, Any],
    maps: Mapping[str, str],
    slow: Mapping[str, Callable[[Trace], Any]],
) -> xr.Dataset:
    """Return the `seconds` of evaluating one padded batch in several ways, `batch way turn`; on a CPU of one thread.

    `edits` evaluate the model with an edit in place, or as it is with its attention weights (None); `maps` compute the
    maps of a lens; `slow` take a Trace with padding, have fewer turns, and only the first size. The rest is NaN.
    """
    sizes = list(dict.fromkeys(min(size, len(examples)) for size in sizes))
    cuda = model.device.type == "cuda"
    clock = gpu_clock if cuda else time.process_time  # other processes may share the CPU
    runs: list[dict[str, list[float]]] = []
    with nullcontext() if cuda else single_thread():  # the time of several depends on what else is running
        for size in reversed(sizes):  # slow variants come last: they heat the machine and fragment its memory
            batch = make_batches(model, list(examples[:size]), size, max_length=max_length, pad_to=max_length)
            variants = _make_variants(model, next(iter(batch)), edits, maps, slow if size == sizes[0] else {})
            runs.insert(0, time_interleaved(variants, turns=TURNS, clock=clock))
    names = [*edits, *maps, *slow]
    table = np.full((len(runs), len(names), TURNS), np.nan)
    for row, run in enumerate(runs):
        for name, seconds in run.items():
            table[row, names.index(name), : len(seconds)] = seconds
    device = torch.cuda.get_device_name(model.device) if cuda else "cpu"
    coords, attrs = {"batch": sizes, "way": names}, {"device": device, "tokens": max_length}
    return xr.Dataset({"seconds": (("batch", "way", "turn"), table)}, coords, attrs)


def _make_variants(
    model: Model,
    inputs: Any,
    edits: Mapping[str, Any],
    maps: Mapping[str, str],
    slow: Mapping[str, Callable[[Trace], Any]],
) -> dict[str, Variant]:
    warmup = WARMUP if model.device.type == "cuda" else 0
    plain, padded = (make_request(model, None, None, None, keep) for keep in (("values",), ("values", "pads")))

    @torch.no_grad()
    def evaluate(**options: Any) -> Any:
        return model.network(**inputs.tensors, **options)

    def compute_maps(lens: str) -> Any:
        trace = capture_batch(model, inputs, plain)
        seen = view(trace, lens)
        return trace, [seen.layer(layer) for layer in seen.layers]

    def compute_slowly(compute: Callable[[Trace], Any]) -> Any:
        return compute(capture_batch(model, inputs, padded))

    as_is = Variant(partial(evaluate, output_attentions=True), partial(_use_eager, model.network), warmup)
    variants = {
        name: as_is if edit is None else Variant(evaluate, partial(edited, model, edit), warmup)
        for name, edit in edits.items()
    }
    variants |= {name: Variant(partial(compute_maps, lens), warmup=warmup) for name, lens in maps.items()}
    return variants | {name: Variant(partial(compute_slowly, run), max_turns=SLOW_TURNS) for name, run in slow.items()}


def gpu_clock() -> float:
    """Return the wall clock time once the GPU is idle."""
    torch.cuda.synchronize()
    return time.perf_counter()


def _time_turn(variants: Mapping[str, Variant], turn: int, clock: Clock) -> dict[str, float]:
    """Time each variant once; the first one rotates, because each finds the memory as the one before left it."""
    names = [name for name, variant in variants.items() if variant.max_turns is None or turn < variant.max_turns]
    start, collecting = turn % max(1, len(names)), gc.isenabled()
    gc.collect()
    gc.disable()  # or garbage of one variant would be collected while another is timed
    try:
        return {name: _time_once(variants[name], clock) for name in names[start:] + names[:start]}
    finally:
        if collecting:
            gc.enable()


def _time_once(variant: Variant, clock: Clock) -> float:
    """Return the seconds of one batch; its result is freed after the clock has stopped."""
    with variant.context():
        for _ in range(variant.warmup):
            variant.run()
        start = clock()
        result = variant.run()
        seconds = clock() - start
    del result
    return seconds


@contextmanager
def _use_eager(network: Any) -> Iterator[None]:
    """Use the attention that returns its weights, as every analysis of attention needs it."""
    before = network.config._attn_implementation
    network.set_attn_implementation("eager")
    try:
        yield
    finally:
        network.set_attn_implementation(before)
