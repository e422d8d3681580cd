"""Values in place of a model's own: what a projection does whatever the values are."""

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from headscope.core.trace import Trace, at_least_float32

Values = Literal["model", "random", "permuted"]


def replace_values(trace: Trace, values: Values) -> Trace:
    """Return a trace with other values: independent standard normal ones, or the model's in random order of the keys.

    Every head has values of its own. They are drawn on the CPU by layer, head and the tokens of the input, so that
    they do not depend on the device, the batch, the padding, or the choice of layers and heads. With `random` rows of
    padding are random too; with `permuted` they stay where they are. What the model wrote, A·V, is left out.
    """
    if values == "model":
        return trace
    assert trace.values is not None, "hs.view checks what the trace holds"
    draw = _draw_normal_rows if values == "random" else _permute_rows
    layers = []
    for label, original in zip(trace.layers, trace.values, strict=True):
        layer = at_least_float32(original).clone()
        for row, (real, code) in enumerate(_describe_inputs(trace)):
            for index, head in enumerate(trace.heads):
                layer[row, index] = draw(layer[row, index], real, np.random.default_rng([label, head, code]))
        layers.append(layer)
    return replace(trace, values=layers, context=None, group=1)


def _describe_inputs(trace: Trace) -> Iterator[tuple[Tensor, int]]:
    """Yield for each input which of its keys are real, and a number that depends on its tokens alone."""
    for real, text in zip(trace.keys.real.cpu(), trace.keys.text, strict=True):
        yield real, zlib.crc32("\x00".join(text).encode(errors="surrogatepass"))


def _draw_normal_rows(values: Tensor, real: Tensor, random: np.random.Generator) -> Tensor:
    """Return standard normal rows; those of real keys are drawn first, so that padding does not change them."""
    order = torch.cat([real.nonzero()[:, 0], (~real).nonzero()[:, 0]])
    draws = torch.empty(values.shape, dtype=values.dtype)
    draws[order] = torch.from_numpy(random.standard_normal(values.shape)).to(values.dtype)
    return draws.to(values.device)


def _permute_rows(values: Tensor, real: Tensor, random: np.random.Generator) -> Tensor:
    """Reorder the rows of real keys."""
    keys = real.nonzero()[:, 0]
    permuted = values.clone()
    permuted[keys.to(values.device)] = values[keys[torch.from_numpy(random.permutation(len(keys)))].to(values.device)]
    return permuted
