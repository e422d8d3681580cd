"""How long evaluation takes with standard and with effective attention: rivals in turns, in one run."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.core.example import Example
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.engine.batch import Inputs, batches
from headscope.engine.capture import request_of, traced
from headscope.engine.edited import edited
from headscope.engine.model import Model

TURNS, SLOW_TURNS = 9, 3
WAYS = ("standard", "in place", "maps", "svd")
"""The model's own evaluation with attentions; with effective attention in place; with every effective map made and kept
for analysis; and the published way to make them, a full singular value decomposition of every head's values."""


def times(model: Model, examples: Sequence[Example], max_length: int, sizes: Sequence[int]) -> xr.Dataset:
    """Seconds of every way in every turn, for batches of these sizes.

    The published way is slow: it has fewer turns, and only with the first size.
    """
    many = [min(size, len(examples)) for size in sizes]
    runs = [race(_rivals(model, examples[:size], max_length, slow=size == many[0]), model.device.type) for size in many]
    table = np.full((len(runs), len(WAYS), TURNS), np.nan)
    for place, run in enumerate(runs):
        for way, name in enumerate(WAYS):
            table[place, way, : len(run.get(name, ()))] = run.get(name, ())
    return xr.Dataset(
        {"seconds": (("batch", "way", "turn"), table)},
        coords={"batch": many, "way": list(WAYS)},
        attrs={"device": _device(model), "threads": torch.get_num_threads(), "tokens": max_length},
    )


def race(rivals: Mapping[str, Callable[[], Any]], device: str, turns: int = TURNS) -> dict[str, list[float]]:
    """Seconds of every rival in every turn, after one to warm up; all meet the same slow minutes of the machine."""
    spent: dict[str, list[float]] = {name: [] for name in rivals}
    for turn in range(turns + 1):
        for name, run in rivals.items():
            if name == "svd" and turn > min(SLOW_TURNS, turns):
                continue
            _wait(device)
            start = time.perf_counter()
            kept = run()
            _wait(device)
            if turn:
                spent[name].append(time.perf_counter() - start)
            del kept  # what it made is freed outside the clock
    return spent


def by_svd(trace: Trace) -> list[torch.Tensor]:
    """Effective maps as published: A less its projection on the left null space, from a full decomposition."""
    assert trace.values is not None
    found = []
    for attention, values in zip(trace.attention, trace.values, strict=True):
        null = torch.linalg.svd(values, full_matrices=True)[0][..., values.shape[-1] :]
        found.append(attention - attention @ null @ null.mT)
    return found


def _rivals(model: Model, examples: Sequence[Example], max_length: int, *, slow: bool) -> dict[str, Callable[[], Any]]:
    (inputs,) = batches(model, list(examples), len(examples), max_length=max_length, pad_to=max_length)
    plain = request_of(model, None, None, None, ("values",))
    padded = request_of(model, None, None, None, ("values", "pads"))

    def maps() -> Any:
        trace = traced(model, inputs, plain)
        seen = view(trace, "effective")
        return trace, [seen.layer(label) for label in seen.layers]

    quick = {
        "standard": lambda: _forward(model, inputs),
        "in place": lambda: _in_place(model, inputs),
        "maps": maps,
    }
    return {**quick, "svd": lambda: by_svd(traced(model, inputs, padded))} if slow else quick


@torch.no_grad()
def _forward(model: Model, inputs: Inputs) -> Any:
    """The network with the attention that gives its weights, as every analysis of attention needs it."""
    with _eager(model.network):
        return model.network(**inputs.tensors, output_attentions=True)


@torch.no_grad()
def _in_place(model: Model, inputs: Inputs) -> Any:
    with edited(model, "effective_attention") as changed:
        return changed.network(**inputs.tensors)


@contextmanager
def _eager(network: Any) -> Iterator[None]:
    before = network.config._attn_implementation
    network.set_attn_implementation("eager")
    try:
        yield
    finally:
        network.set_attn_implementation(before)


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _device(model: Model) -> str:
    return torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else "cpu"
