"""Names for positions that are no words: patches of a picture, frames of a sound, steps of a series, queries."""

import inspect
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import DataWarning
from headscope.core.tokens import Tokens
from headscope.engine.images import patch_grid, patch_tokens
from headscope.engine.model import Model

MASKS = ("attention_mask", "input_features_mask", "feature_attention_mask", "pixel_attention_mask", "pixel_mask")
"""What forwards call the mask that says which samples, frames, patches or pixels are padding."""

OUTPUT_LENGTHS = "_get_feat_extract_output_lengths"
FRAME_MASK = "_get_feature_vector_attention_mask"
"""Methods of transformers' models of sound: frames made of so many samples, and which of them are not padding."""


@dataclass(frozen=True)
class Positions:
    """What the inputs and the config say of positions that are no words; without anything they are numbered."""

    grid: tuple[int, int] | None = None  # rows and columns of patches
    seconds: Mapping[int, float] = field(default_factory=dict)  # between frames, by the number of frames
    patch_ids: Float[Tensor, "batch patch two"] | None = None  # row and column of each patch, from 1; 0 is padding
    masks: Mapping[str, Tensor] = field(default_factory=dict)
    network: Any = None

    def tokens(self, batch: int, width: int) -> Tokens:
        """Return the tokens of a site with this many rows and positions; padding is not real."""
        tokens = patch_tokens(batch, width, None if width in self.seconds else self.grid)
        if width in self.seconds:
            tokens = replace(tokens, text=[name_frames(width, self.seconds[width])] * batch)
        elif self.patch_ids is not None and self.patch_ids.shape[:2] == (batch, width):
            tokens = replace(tokens, text=[name_patches(row) for row in self.patch_ids.cpu()])
        real = self._find_real(batch, width)
        if real is None:
            return tokens
        text = [list(compress(row, keep)) for row, keep in zip(tokens.text, real.tolist(), strict=True)]
        return replace(tokens, text=text, real=real, special=tokens.special & real, segment=torch.where(real, 0, -1))

    def _find_real(self, batch: int, width: int) -> Bool[Tensor, "batch token"] | None:
        """Return which positions are not padding; None where the inputs have no padding, or nothing says where."""
        padded = {name: mask for name, mask in self.masks.items() if len(mask) == batch and not bool(mask.all())}
        for mask in padded.values():
            real = mask if tuple(mask.shape) == (batch, width) else frame_mask(self.network, mask, width)
            if real is not None:
                return real.bool().cpu()
        if padded and width != getattr(getattr(self.network, "config", None), "num_queries", None):
            warnings.warn(
                f"The batch has padding ({', '.join(padded)}), but nothing says which of the {width} positions of this "
                f"{type(self.network).__name__} it became: all are counted as real. Capture inputs of one size by "
                "themselves, without padding.",
                DataWarning,
                stacklevel=6,
            )
        return None


def find_positions(model: Model, tensors: Mapping[str, Tensor]) -> Positions:
    """Return what the inputs of a batch say of positions that are no words."""
    names = {"encoder_attention_mask"} | (set() if "input_ids" in tensors else set(MASKS))
    patches = tensors.get("flattened_patches")
    return Positions(
        grid=_find_grid(model, tensors),
        seconds=_find_seconds(model, tensors),
        patch_ids=None if patches is None or patches.ndim != 3 else patches[:, :, :2].detach(),
        masks={name: tensor.detach() for name, tensor in tensors.items() if name in names},
        network=model.network,
    )


def frame_mask(network: Any, mask: Tensor, width: int) -> Bool[Tensor, "batch frame"] | None:
    """Return which frames are not padding, from a mask of samples; None if the model does not say.

    The model's own method is asked, and only if it makes as many frames of all samples as there are.
    """
    owner = _find_owner(network, FRAME_MASK)
    if owner is None or mask.ndim != 2 or count_frames(network, mask.shape[1]) != width:
        return None
    method = getattr(owner, FRAME_MASK)
    options = {"add_adapter": False} if "add_adapter" in inspect.signature(method).parameters else {}
    real: Tensor = method(width, mask.long(), **options).bool()
    return real if tuple(real.shape) == (len(mask), width) else None


def count_frames(network: Any, length: int) -> int | None:
    """Return how many frames a model makes of this many samples, or of steps of a spectrogram, if it says so."""
    owner = _find_owner(network, OUTPUT_LENGTHS)
    if owner is None:
        return None
    method = getattr(owner, OUTPUT_LENGTHS)
    options = {"add_adapter": False} if "add_adapter" in inspect.signature(method).parameters else {}
    try:
        return int(method(torch.tensor([length]), **options).reshape(-1)[0])
    except (AttributeError, TypeError):  # some need more than a length
        return None


def _find_owner(network: Any, method: str) -> Any:
    """Return the outermost module with a method."""
    modules = network.modules() if isinstance(network, torch.nn.Module) else ()
    return next((module for module in modules if callable(getattr(module, method, None))), None)


def _find_grid(model: Model, tensors: Mapping[str, Tensor]) -> tuple[int, int] | None:
    if "pixel_values" in tensors:
        return patch_grid(model, tensors["pixel_values"])
    config, sound = model.network.config, tensors.get("input_values")
    strides = [getattr(config, name, None) for name in ("frequency_stride", "time_stride")]
    if sound is None or sound.ndim != 3 or None in strides:
        return None
    time, bands = sound.shape[1:]  # a spectrogram, cut into overlapping patches (AST)
    rows, columns = (
        (size - config.patch_size) // stride + 1 for size, stride in zip((bands, time), strides, strict=True)
    )
    return rows, columns


def _find_seconds(model: Model, tensors: Mapping[str, Tensor]) -> dict[int, float]:
    """Return the seconds between frames, for each number of frames that the model can make of its sound."""
    rate = getattr(model.processor, "sampling_rate", None)
    sound = next((tensors[name] for name in ("input_values", "input_features") if name in tensors), None)
    if rate is None or sound is None or model.processor is None or sound.ndim not in (2, 3):
        return {}
    if sound.ndim == 2:  # samples
        strides, length = _list_strides(model.network.config), sound.shape[1]
        frames = count_frames(model.network, length)
        return {frames: math.prod(strides) / rate} if strides and frames is not None else {}
    hop = getattr(model.processor, "hop_length", None)
    if hop is None:
        return {}
    bands = getattr(model.processor, "feature_size", None)
    length = sound.shape[2] if sound.shape[1] == bands else sound.shape[1]
    frames = count_frames(model.network, length)
    found = {length: hop / rate}
    return found if frames is None else found | {frames: round(length / frames) * hop / rate}


def _list_strides(config: Any) -> list[int]:
    strides = getattr(config, "conv_stride", None) or getattr(getattr(config, "encoder", None), "conv_stride", None)
    return list(strides) if isinstance(strides, list | tuple) else []


def name_frames(width: int, step: float) -> list[str]:
    """Name frames by the second at which each begins.

    >>> name_frames(3, 0.02)
    ['0.00s', '0.02s', '0.04s']
    """
    digits = max(2, math.ceil(-math.log10(step)))
    return [f"{index * step:.{digits}f}s" for index in range(width)]


def name_patches(ids: Tensor) -> list[str]:
    """Name patches by row and column, which the inputs count from 1.

    >>> name_patches(torch.tensor([[1.0, 1.0], [1.0, 2.0]]))
    ['0,0', '0,1']
    """
    return [f"{int(row) - 1},{int(column) - 1}" for row, column in ids.tolist()]
