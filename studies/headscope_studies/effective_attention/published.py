"""What the code of Sun & Marasović (2021) computes: maps by a full SVD, and means over rows of padding."""

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from headscope.core.edit import LayerHeads
from headscope.core.example import Example
from headscope.core.maps.factored import Factored
from headscope.core.tokens import ROLES
from headscope.core.trace import Trace
from headscope.effective.layers import compute_layer
from headscope.engine.batch import make_batches
from headscope.engine.capture import record
from headscope.engine.model import Model
from headscope.engine.recording.recorder import AttentionCall, repeat_value_heads
from headscope.engine.recording.sites import find_sites

TOKENS = ("cls", "sep")
LENSES = ("raw", "paper")
BATCHES = {"cpu": 8, "cuda": 64}


@torch.no_grad()
def average_all_rows(model: Model, examples: Sequence[Example], width: int) -> xr.DataArray:
    """Return the weight on [CLS] and on the heavier [SEP] of every example, averaged over layers and heads.

    Texts are padded to `width`. The mean is over all of its rows, that of the token itself and those of padding
    included; of two [SEP], the one with the larger mean counts. The lenses are raw attention and `paper`.
    """
    site, tables = find_sites(model).main, []
    size = BATCHES.get(model.device.type, BATCHES["cpu"])
    for inputs in make_batches(model, examples, size, max_length=width, pad_to=width):
        assert inputs.source is not None, "examples are texts"
        real, roles = (table.to(model.device) for table in (inputs.source.real, inputs.source.roles))
        masks = torch.stack([(roles == ROLES.index(token)) & real for token in TOKENS], dim=1)  # batch token key
        visible = real[:, None].expand(-1, width, -1).contiguous()
        layers = [
            _average_layer(call, layer, visible, masks)
            for layer, call in enumerate(record(model, inputs.tensors, site).calls)
        ]
        tables.append(torch.stack(layers).mean(0).cpu())
    coords = {"example": [example.id for example in examples], "lens": list(LENSES), "token": list(TOKENS)}
    return xr.DataArray(np.asarray(torch.cat(tables)), coords=coords, dims=list(coords))


def _average_layer(call: AttentionCall, layer: int, visible: Tensor, masks: Tensor) -> Tensor:
    """Return `batch lens token` of one layer. The mean over rows of A·Q·Qᵀ is that of A·Q, times Qᵀ."""
    values = repeat_value_heads(call.values, call.attention.shape[1])
    part = compute_layer(LayerHeads("self", layer, call.attention, values, call.context, visible), "paper")
    raw = call.attention.double().mean(-2)  # batch head key
    if isinstance(part, Factored):
        paper = (part.left.double().mean(-2, keepdim=True) @ part.right.double().mT)[..., 0, :]
    else:
        paper = part.double().mean(-2)
    means = torch.stack([raw, paper], dim=1)[:, :, :, None]  # batch lens head 1 key
    heaviest = means.masked_fill(~masks[:, None, None], -torch.inf).amax(-1)  # batch lens head token
    return heaviest.masked_fill(heaviest == -torch.inf, torch.nan).mean(2)


def effective_by_svd(trace: Trace) -> list[Tensor]:
    """Return effective maps as the paper's code does: A less its projection on the left null space, by a full SVD."""
    assert trace.values is not None
    maps = []
    for attention, values in zip(trace.attention, trace.values, strict=True):
        null = torch.linalg.svd(values, full_matrices=True)[0][..., values.shape[-1] :]
        maps.append(attention - attention @ null @ null.mT)
    return maps
