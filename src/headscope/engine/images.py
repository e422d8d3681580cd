"""Pictures for models that read them: pixel values, patches as tokens, and what the model saw."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.tokens import Tokens
from headscope.engine.model import Model


def processed(model: Model, given: Any) -> tuple[Mapping[str, Any], list[str]]:
    """What the model's image processor makes of a path, a PIL image or a list of either, and a name for each."""
    every = [given] if isinstance(given, str | os.PathLike) or _is_image(given) else list(given)
    if not every:
        raise InputError("There is no picture: the list is empty. Give at least one.")
    if model.processor is None:
        raise InputError(
            "This model has no image processor. Give one to hs.load(…, processor=…), or pass what yours makes: "
            "{'pixel_values': …}."
        )
    images = [_opened(each, place) for place, each in enumerate(every)]
    names = ["image" if _is_image(each) else Path(each).name for each in every]
    made = model.processor(images, return_tensors="pt")
    return {"pixel_values": made["pixel_values"].to(model.network.dtype)}, names


def patch_grid(model: Model, pixels: Tensor) -> tuple[int, int] | None:
    """How many rows and columns of patches the model cuts its images into, or None where its config does not say."""
    size = getattr(model.network.config, "patch_size", None)
    if size is None or pixels.ndim != 4:
        return None
    high, wide = (size, size) if isinstance(size, int) else size
    return pixels.shape[2] // high, pixels.shape[3] // wide


def patches(batch: int, width: int, grid: tuple[int, int] | None) -> Tokens:
    """Patches as tokens, named by row and column after [CLS]; counted where the grid is not that of the maps.

    >>> patches(1, 5, (2, 2)).text
    [['[CLS]', '0,0', '0,1', '1,0', '1,1']]
    """
    rows, columns = grid or (0, 0)
    extra = width - rows * columns
    if grid is None or extra not in (0, 1, 2):  # DeiT has two tokens before its patches
        return Tokens.of([[f"#{place}" for place in range(width)]] * batch)
    names = [f"{row},{column}" for row in range(rows) for column in range(columns)]
    tokens = Tokens.of([[*("[CLS]", "[DIST]")[:extra], *names]] * batch)
    return replace(tokens, special=torch.arange(width).expand(batch, -1) < extra)


def pictures(model: Model, pixels: Tensor, grid: tuple[int, int] | None) -> list[dict[str, Any]]:
    """For each image, what the model saw of it and its grid of patches; nothing where no processor tells."""
    if model.processor is None or grid is None:
        return [{} for _ in pixels]
    return [{"picture": each, "patches": grid} for each in _seen(model.processor, pixels.detach().float().cpu())]


def _seen(
    processor: Any, pixels: Float[Tensor, "batch colour row column"]
) -> UInt8[np.ndarray, "batch row column colour"]:
    """Pixel values back as a picture: resized and cut as the model saw it, so that patches lie where they lie."""
    shades = pixels.permute(0, 2, 3, 1)
    if getattr(processor, "do_normalize", False):
        shades = shades * torch.tensor(processor.image_std) + torch.tensor(processor.image_mean)
    if getattr(processor, "do_rescale", False):
        shades = shades / processor.rescale_factor
    return shades.round().clamp(0, 255).to(torch.uint8).numpy()


def _is_image(given: Any) -> bool:
    return hasattr(given, "convert") and hasattr(given, "getbands")  # a PIL image, told without importing PIL


def _opened(given: Any, place: int) -> Any:
    from transformers.image_utils import load_image

    if _is_image(given):
        return given.convert("RGB")
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"Cannot read item {place}, a {type(given).__name__}: it must be a path or a PIL image.")
    if not Path(given).is_file():
        raise InputError(f"There is no picture {given}. Give the path of a file here.")
    try:
        return load_image(str(given))
    except Exception as error:
        raise InputError(f"{given} is not a picture that PIL can read. Give a PNG or JPEG.") from error
