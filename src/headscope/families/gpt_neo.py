"""GPT-Neo."""

from typing import Any

import torch
from torch import Tensor

from headscope.core.family import Family, Hooks


def add_window(module: Any, mask: Tensor | None, query: int, key: int) -> Tensor:
    """Combine the mask with the module's own buffer: causal, and a sliding window in local layers."""
    window: Tensor = module.bias[..., key - query : key, :key]
    return window if mask is None else window & (mask[..., :key] > torch.finfo(mask.dtype).min / 2)


class GptNeo(Family):
    """Every other layer has a sliding window, which is not in its mask argument."""

    kinds = ("gpt_neo",)
    projection = "out_proj"
    hooks = Hooks("GPTNeoSelfAttention", values="v_proj", visible=add_window)
