"""GPT-Neo."""

from typing import Any

import torch
from torch import Tensor

from headscope.core.family import Family, Hooks


def through_window(module: Any, mask: Tensor | None, query: int, key: int) -> Tensor:
    """What the module's own buffer lets through (causal, in local layers a window too) and the mask does not hide."""
    window: Tensor = module.bias[..., key - query : key, :key]
    return window if mask is None else window & (mask[..., :key] > torch.finfo(mask.dtype).min / 2)


class GptNeo(Family):
    """Every other layer looks through a sliding window, which its mask argument does not tell."""

    kinds = ("gpt_neo",)
    projection = "out_proj"
    hooks = Hooks("GPTNeoSelfAttention", values="v_proj", visible=through_window)
