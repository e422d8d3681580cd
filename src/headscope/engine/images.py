"""Images for vision models: pixel values, patches as tokens, and the image as the model saw it."""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.engine.model import SOUND_INPUTS, Model
from headscope.results.hashes import fingerprint, hash_file

IMAGE_COLUMN = "image"
"""The column of an example that is an image."""

ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
"""Files of a folder that are read as images."""


@dataclass(frozen=True)
class ImageSource:
    """A path or a PIL image, with a hash of its content, which is its text in fingerprints of data."""

    source: Any
    digest: str

    def __str__(self) -> str:
        return self.digest


def reads_images(model: Model) -> bool:
    """Whether images are what a model reads, and not texts."""
    return bool(model.network.main_input_name == "pixel_values")


def check_reads_texts(model: Model, what: str) -> None:
    """Raise InputError for a model that reads no texts; `what` says what is done, such as "scores are of texts"."""
    main, class_name = model.network.main_input_name, type(model.network).__name__
    if main == "input_ids":
        return
    reads = "images" if reads_images(model) else "sounds" if main in SOUND_INPUTS else main
    ending = {"images": "png", "sounds": "wav"}.get(reads)
    if ending is None:
        raise InputError(
            f"{class_name} reads {main}, but {what}. Its attention can be captured: hs.capture(model, {{'{main}': …}})."
        )
    raise InputError(
        f"{class_name} reads {reads}, but {what}. Attention to {reads} can be captured and measured: "
        f"hs.capture(model, 'a.{ending}'), hs.measure(model, ['a.{ending}', 'b.{ending}'], statistics='entropy')."
    )


def is_picture(item: Any) -> bool:
    """Whether an item can only be a picture: a PIL image, or the path of a picture file."""
    if isinstance(item, str | os.PathLike):
        return names_file(item, ENDINGS)
    return _is_image(item)


def names_file(item: "str | os.PathLike[str]", endings: tuple[str, ...]) -> bool:
    """Whether a string names a file with one of these endings: one that exists, or a single word.

    >>> names_file("cat.PNG", (".png",)), names_file("This is cat.png", (".png",))
    (True, False)
    """
    name = os.fspath(item)
    return name.lower().endswith(endings) and (not set(" \n") & set(name) or os.path.isfile(name))  # noqa: PTH113


def read_images(images: Any) -> list[Example]:
    """Return an example for each image: a path, a folder, a PIL image, or a list of paths and images."""
    sources = _list_sources(images)
    if sources and all(isinstance(source, Example) for source in sources):
        for example in sources:
            if not isinstance(example.columns.get(IMAGE_COLUMN), ImageSource):
                raise InputError(
                    f"The model reads images, but example '{example.id}' is a text. Give paths of images, PIL images, "
                    "or a list of them."
                )
        return sources
    examples = []
    for row, source in enumerate(sources):
        _check_source(source, row)
        columns = MappingProxyType({IMAGE_COLUMN: ImageSource(source, _hash_image(source))})
        examples.append(Example(str(row), _name_image(source), columns=columns))
    return examples


def process_images(model: Model, images: Any) -> tuple[Mapping[str, Any], list[str]]:
    """Return the pixel values of what `read_images` reads, and a name for each image."""
    sources = [_find_source(item) for item in _list_sources(images)]
    if model.processor is None:
        raise InputError(
            "This model has no image processor. Give one to hs.load(…, processor=…); hs.capture, but not hs.measure, "
            "also takes what yours makes: {'pixel_values': …}."
        )
    opened = [_open_image(source, index) for index, source in enumerate(sources)]
    names = [_name_image(source) for source in sources]
    pixels = model.processor(opened, return_tensors="pt")["pixel_values"]
    return {"pixel_values": pixels.to(model.network.dtype)}, names


def patch_grid(model: Model, pixels: Tensor) -> tuple[int, int] | None:
    """Return the number of rows and columns of patches in an image, or None if the model's config does not say."""
    config = model.network.config
    size = getattr(config, "patch_size", getattr(getattr(config, "vision_config", None), "patch_size", None))
    if size is None or pixels.ndim != 4 or (not isinstance(size, int) and len(size) != 2):
        return None  # no patches, or stages with patches of their own (Florence-2)
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


def count_patches(model: Model, example: Example) -> int:
    """Return about how many tokens the model makes of an image."""
    pixels = process_images(model, [example])[0]["pixel_values"]
    rows, columns = patch_grid(model, pixels) or (16, 16)
    return rows * columns + 1


def image_examples(
    model: Model, pixels: Tensor, names: Sequence[str] = (), ids: Sequence[str] | None = None
) -> tuple[Example, ...]:
    """Return an example for each image, with the image as the model saw it and its patch grid as columns.

    The columns are computed on first access, and empty without an image processor, which says how pixel values were
    normalized.
    """
    grid = patch_grid(model, pixels)
    columns: list[Any] = [{}] * len(pixels)
    if model.processor is not None and grid is not None:
        pixels = pixels.detach().clone()  # the caller may change the tensor before anyone looks
        before = 1 + (getattr(model.network.config, "num_register_tokens", None) or 0)
        columns = [partial(_image_column, model.processor, image, grid, before) for image in pixels]
    ids = [str(row) for row in range(len(pixels))] if ids is None else ids
    images = zip(ids, names or ["image"] * len(pixels), columns, strict=True)
    return tuple(Example.lazy(id=name, text=text, columns=column) for name, text, column in images)


def _image_column(
    processor: Any, pixels: Float[Tensor, "colour row column"], grid: tuple[int, int], before: int, _: Example
) -> dict[str, Any]:
    """Return the image as the model saw it, resized and cropped, aligned with its patches."""
    return {"picture": restore_colors(processor, pixels), "patches": grid, "before": before}


def restore_colors(processor: Any, pixels: Float[Tensor, "colour row column"]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return pixel values as colors from 0 to 255, as they were before the image processor changed them."""
    shades = pixels.float().cpu().permute(1, 2, 0)
    if getattr(processor, "do_normalize", False):
        shades = shades * torch.tensor(processor.image_std) + torch.tensor(processor.image_mean)
    if getattr(processor, "do_rescale", False):
        shades = shades / processor.rescale_factor
    colors: np.ndarray[Any, np.dtype[np.uint8]] = shades.round().clamp(0, 255).to(torch.uint8).numpy()
    return colors


def _is_image(source: Any) -> bool:
    return hasattr(source, "convert") and hasattr(source, "getbands")  # a PIL image, recognized without importing PIL


def _list_sources(images: Any) -> list[Any]:
    """Return what was given as a list; of a folder the files that are images, by name."""
    if isinstance(images, str | os.PathLike) and Path(images).is_dir():
        files = sorted(path for path in Path(images).iterdir() if path.suffix.lower() in ENDINGS)
        if not files:
            raise InputError(f"There is no picture in the folder {images}. Known endings: {' '.join(ENDINGS)}.")
        return files
    single = isinstance(images, str | os.PathLike | Example) or _is_image(images)
    sources = [images] if single else list(images) if isinstance(images, Iterable) else [images]
    if not sources:
        raise InputError("There is no picture: the list is empty. Give at least one.")
    return sources


def _find_source(item: Any) -> Any:
    source = item.columns.get(IMAGE_COLUMN) if isinstance(item, Example) else None
    return source.source if isinstance(source, ImageSource) else item


def _name_image(source: Any) -> str:
    return "image" if _is_image(source) else Path(source).name


def _hash_image(source: Any) -> str:
    """Return a hash of a file, or of the pixels of an image in memory."""
    if not _is_image(source):
        return hash_file(Path(source))
    return fingerprint([source.mode, str(source.size), hashlib.sha256(source.tobytes()).hexdigest()])


def _check_source(source: Any, index: int) -> None:
    if _is_image(source):
        return
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"Cannot read item {index}, a {type(source).__name__}: it must be a path or a PIL image.")
    if not Path(source).is_file():
        raise InputError(f"There is no picture {source}. Give the path of a file here.")


def _open_image(source: Any, index: int) -> Any:
    from transformers.image_utils import load_image

    _check_source(source, index)
    if _is_image(source):
        return source.convert("RGB")
    try:
        return load_image(str(source))
    except Exception as error:
        raise InputError(f"{source} is not a picture that PIL can read. Give a PNG or JPEG.") from error
