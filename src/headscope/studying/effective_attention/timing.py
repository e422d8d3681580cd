"""How long evaluation takes with standard and with effective attention: rivals in turns, in one run."""

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
from headscope.engine.batch import Inputs, batches
from headscope.engine.capture import request_of, traced
from headscope.engine.edited import edited
from headscope.engine.model import Model

TURNS, SLOW_TURNS = 9, 3
SETTLING = 5
WAYS = ("standard", "in place", "maps", "svd")
"""The model's own evaluation with attentions; with effective attention in place; with every effective map made and kept
for analysis; and the published way to make them, a full singular value decomposition of every head's values."""


def times(model: Model, examples: Sequence[Example], max_length: int, sizes: Sequence[int]) -> xr.Dataset:
    """Seconds of every way in every turn, for batches of these sizes.

    The published way is slow: it has fewer turns, and only with the first size.
    """
    many = [min(size, len(examples)) for size in sizes]
    runs = [
        race(_rivals(model, examples[:size], max_length, slow=size == many[0]), model.device.type)
        for size in reversed(many)  # the slow way comes last: it leaves the machine hot and its memory in pieces
    ][::-1]
    table = np.full((len(runs), len(WAYS), TURNS), np.nan)
    for place, run in enumerate(runs):
        for way, name in enumerate(WAYS):
            table[place, way, : len(run.get(name, ()))] = run.get(name, ())
    return xr.Dataset(
        {"seconds": (("batch", "way", "turn"), table)},
        coords={"batch": many, "way": list(WAYS)},
        attrs={"device": _device(model), "threads": torch.get_num_threads(), "tokens": max_length},
    )


@dataclass(frozen=True)
class Rival:
    """One way to evaluate a batch.

    What surrounds it is set up once for a whole evaluation, and its first batches are slower: neither is on the clock.
    """

    run: Callable[[], Any]
    within: Callable[[], AbstractContextManager[Any]] = nullcontext
    settling: int = 0  # batches


def race(rivals: Mapping[str, Rival], device: str, turns: int = TURNS) -> dict[str, list[float]]:
    """Seconds of every rival in every turn, after two to warm up; all meet the same slow minutes of the machine."""
    spent: dict[str, list[float]] = {name: [] for name in rivals}
    gc.disable()  # or one rival's garbage would be collected on another's time
    try:
        for turn in range(-1, turns + 1):
            gc.collect()
            for name, rival in rivals.items():
                if name == "svd" and not 0 <= turn <= min(SLOW_TURNS, turns):
                    continue
                seconds = _clocked(rival, device)
                if turn > 0:
                    spent[name].append(seconds)
    finally:
        gc.enable()
    return spent


def _clocked(rival: Rival, device: str) -> float:
    """Seconds of one batch; what it made is freed outside the clock."""
    with rival.within():
        for _ in range(rival.settling):
            rival.run()
        _wait(device)
        start = time.perf_counter()
        kept = rival.run()
        _wait(device)
        seconds = time.perf_counter() - start
    del kept
    return seconds


def by_svd(trace: Trace) -> list[torch.Tensor]:
    """Effective maps as published: A less its projection on the left null space, from a full decomposition."""
    assert trace.values is not None
    found = []
    for attention, values in zip(trace.attention, trace.values, strict=True):
        null = torch.linalg.svd(values, full_matrices=True)[0][..., values.shape[-1] :]
        found.append(attention - attention @ null @ null.mT)
    return found


def _rivals(model: Model, examples: Sequence[Example], max_length: int, *, slow: bool) -> dict[str, Rival]:
    (inputs,) = batches(model, list(examples), len(examples), max_length=max_length, pad_to=max_length)
    plain = request_of(model, None, None, None, ("values",))
    padded = request_of(model, None, None, None, ("values", "pads"))

    def maps() -> Any:
        trace = traced(model, inputs, plain)
        seen = view(trace, "effective")
        return trace, [seen.layer(label) for label in seen.layers]

    quick = {
        "standard": Rival(partial(_forward, model, inputs, output_attentions=True), partial(_eager, model.network)),
        "in place": Rival(
            partial(_forward, model, inputs),
            partial(edited, model, "effective_attention"),
            settling=SETTLING if model.device.type == "cuda" else 0,  # until what is repeated is recorded
        ),
        "maps": Rival(maps),
    }
    return {**quick, "svd": Rival(lambda: by_svd(traced(model, inputs, padded)))} if slow else quick


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


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _device(model: Model) -> str:
    return torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else "cpu"
