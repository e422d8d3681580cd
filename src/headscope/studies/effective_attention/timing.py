"""How long evaluation takes with standard and with effective attention: rivals in turns, in one run."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.core.example import Example
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.engine.batch import Inputs, make_batches
from headscope.engine.capture import capture_batch, make_request
from headscope.engine.edited import edited
from headscope.engine.model import Model
from headscope.experiments.timing import Rival, race

TURNS, SLOW_TURNS = 9, 3
SETTLING = 5
WAYS = ("standard", "in place", "maps", "svd")
"""The model's own evaluation with attentions; with effective attention in place; with every effective map made and kept
for analysis; and the published way to make them, a full singular value decomposition of every head's values."""


def times(model: Model, examples: Sequence[Example], max_length: int, sizes: Sequence[int]) -> xr.Dataset:
    """Seconds of every way in every turn, for batches of these sizes; on a CPU those of one thread's work.

    The published way is slow: it has fewer turns, and only with the first size.
    """
    many = list(dict.fromkeys(min(size, len(examples)) for size in sizes))  # of few examples there is one batch
    clock = gpu_clock if model.device.type == "cuda" else time.process_time  # others may be busy on the same CPU
    with _one_thread(model):
        runs = [
            race(_rivals(model, examples[:size], max_length, slow=size == many[0]), turns=TURNS, clock=clock)
            for size in reversed(many)  # the slow way comes last: it leaves the machine hot and its memory in pieces
        ][::-1]
    table = np.full((len(runs), len(WAYS), TURNS), np.nan)
    for place, run in enumerate(runs):
        for way, name in enumerate(WAYS):
            table[place, way, : len(run.get(name, ()))] = run.get(name, ())
    return xr.Dataset(
        {"seconds": (("batch", "way", "turn"), table)},
        coords={"batch": many, "way": list(WAYS)},
        attrs={"device": _device(model), "tokens": max_length},
    )


def by_svd(trace: Trace) -> list[torch.Tensor]:
    """Effective maps as published: A less its projection on the left null space, from a full decomposition."""
    assert trace.values is not None
    found = []
    for attention, values in zip(trace.attention, trace.values, strict=True):
        null = torch.linalg.svd(values, full_matrices=True)[0][..., values.shape[-1] :]
        found.append(attention - attention @ null @ null.mT)
    return found


def _rivals(model: Model, examples: Sequence[Example], max_length: int, *, slow: bool) -> dict[str, Rival]:
    (inputs,) = make_batches(model, list(examples), len(examples), max_length=max_length, pad_to=max_length)
    plain = make_request(model, None, None, None, ("values",))
    padded = make_request(model, None, None, None, ("values", "pads"))

    def maps() -> Any:
        trace = capture_batch(model, inputs, plain)
        seen = view(trace, "effective")
        return trace, [seen.layer(label) for label in seen.layers]

    standard = partial(_forward, model, inputs, output_attentions=True), partial(_eager, model.network)
    in_place = partial(_forward, model, inputs), partial(edited, model, "effective_attention")
    settling = SETTLING if model.device.type == "cuda" else 0  # until work that is repeated is recorded
    quick = {
        "standard": Rival(*standard, settling=settling),
        "in place": Rival(*in_place, settling=settling),
        "maps": Rival(maps, settling=settling),
    }
    return (
        {**quick, "svd": Rival(lambda: by_svd(capture_batch(model, inputs, padded)), most=SLOW_TURNS)}
        if slow
        else quick
    )


@torch.no_grad()
def _forward(model: Model, inputs: Inputs, **options: Any) -> Any:
    return model.network(**inputs.tensors, **options)


@contextmanager
def _eager(network: Any) -> Iterator[None]:
    """With the attention that gives its weights, as every analysis of attention needs it."""
    before = network.config._attn_implementation
    network.set_attn_implementation("eager")
    try:
        yield
    finally:
        network.set_attn_implementation(before)


@contextmanager
def _one_thread(model: Model) -> Iterator[None]:
    """On a CPU: what several threads do is counted in a way that depends on who else is there."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if model.device.type == "cpu" else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def gpu_clock() -> float:
    """What the wall clock says once the GPU has done all that it was told."""
    torch.cuda.synchronize()
    return time.perf_counter()


def _device(model: Model) -> str:
    return torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else "cpu"
