"""Images for vision models: pixel values, patches as tokens, and the image as the model saw it."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.engine.model import Model


def process_images(model: Model, images: Any) -> tuple[Mapping[str, Any], list[str]]:
    """Return the pixel values of a path, a PIL image or a list of either, and a name for each image."""
    sources = [images] if isinstance(images, str | os.PathLike) or _is_image(images) else list(images)
    if not sources:
        raise InputError("There is no picture: the list is empty. Give at least one.")
    if model.processor is None:
        raise InputError(
            "This model has no image processor. Give one to hs.load(…, processor=…), or pass what yours makes: "
            "{'pixel_values': …}."
        )
    opened = [_open_image(source, index) for index, source in enumerate(sources)]
    names = ["image" if _is_image(source) else Path(source).name for source in sources]
    pixels = model.processor(opened, return_tensors="pt")["pixel_values"]
    return {"pixel_values": pixels.to(model.network.dtype)}, names


def patch_grid(model: Model, pixels: Tensor) -> tuple[int, int] | None:
    """Return the number of rows and columns of patches in an image, or None if the model's config does not say."""
    config = model.network.config
    size = getattr(config, "patch_size", getattr(getattr(config, "vision_config", None), "patch_size", None))
    if size is None or pixels.ndim != 4:
        return None
    height, width = (size, size) if isinstance(size, int) else size
    return pixels.shape[2] // height, pixels.shape[3] // width


def patch_tokens(batch: int, width: int, grid: tuple[int, int] | None) -> Tokens:
    """Return patches as tokens, named by row and column after [CLS], or numbered if the grid does not fit the maps.

    >>> patch_tokens(1, 5, (2, 2)).text
    [['[CLS]', '0,0', '0,1', '1,0', '1,1']]
    """
    rows, columns = grid or (0, 0)
    extra = width - rows * columns
    if grid is None or extra not in (0, 1, 2):  # DeiT has two tokens before its patches
        names, extra = [f"#{index}" for index in range(width)], 0
    else:
        patches = [f"{row},{column}" for row in range(rows) for column in range(columns)]
        names = [*("[CLS]", "[DIST]")[:extra], *patches]
    shape = (batch, width)
    special = (torch.arange(width) < extra).repeat(batch, 1)
    segment, word = torch.zeros(shape, dtype=torch.long), torch.full(shape, -1)
    return Tokens([names] * batch, torch.ones(shape, dtype=torch.bool), special, segment, word)


def image_examples(model: Model, pixels: Tensor, names: Sequence[str] = ()) -> tuple[Example, ...]:
    """Return an example for each image, with the image as the model saw it and its patch grid as columns.

    The columns are computed on first access, and empty without an image processor, which says how pixel values were
    normalised.
    """
    grid = patch_grid(model, pixels)
    columns: list[Any] = [{}] * len(pixels)
    if model.processor is not None and grid is not None:
        pixels = pixels.detach().clone()  # the caller may change the tensor before anyone looks
        columns = [partial(_image_column, model.processor, image, grid) for image in pixels]
    images = enumerate(zip(names or ["image"] * len(pixels), columns, strict=True))
    return tuple(Example.lazy(id=str(row), text=name, columns=column) for row, (name, column) in images)


def _image_column(
    processor: Any, pixels: Float[Tensor, "colour row column"], grid: tuple[int, int], _: Example
) -> dict[str, Any]:
    """Return the image as the model saw it, resized and cropped, aligned with its patches."""
    shades = pixels.float().cpu().permute(1, 2, 0)
    if getattr(processor, "do_normalize", False):
        shades = shades * torch.tensor(processor.image_std) + torch.tensor(processor.image_mean)
    if getattr(processor, "do_rescale", False):
        shades = shades / processor.rescale_factor
    return {"picture": shades.round().clamp(0, 255).to(torch.uint8).numpy(), "patches": grid}


def _is_image(source: Any) -> bool:
    return hasattr(source, "convert") and hasattr(source, "getbands")  # a PIL image, recognised without importing PIL


def _open_image(source: Any, index: int) -> Any:
    from transformers.image_utils import load_image

    if _is_image(source):
        return source.convert("RGB")
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"Cannot read item {index}, a {type(source).__name__}: it must be a path or a PIL image.")
    if not Path(source).is_file():
        raise InputError(f"There is no picture {source}. Give the path of a file here.")
    try:
        return load_image(str(source))
    except Exception as error:
        raise InputError(f"{source} is not a picture that PIL can read. Give a PNG or JPEG.") from error
