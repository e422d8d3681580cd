"""Pictures inside texts: which tokens of a language model are patches of which picture (LLaVA, Qwen-VL, PaliGemma).

Token and patches are counted as the config and the inputs say; where the counts differ, nothing is placed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.engine.images import restore_colors
from headscope.engine.model import Model

GRID_LAYOUTS = ("Qwen2VL", "Glm4v")
"""Image processors, by the beginning of their name, that cut pictures into one list of patches in a known order."""

Grid = tuple[int, int]
"""The number of rows and columns of a picture's tokens."""


@dataclass(frozen=True)
class ImageTokens:
    """The pictures of a batch of texts, in order, and the tokens that stand for them."""

    processor: Any
    pixels: Tensor  # as the model was given them
    sizes: Tensor | None  # rows and columns of patches of each picture, or its height and width
    grids: tuple[Grid, ...]
    stands: Bool[Tensor, "batch token"]  # where a token stands for a patch
    real: Bool[Tensor, "batch token"]

    def columns(self, row: int) -> dict[str, Any]:
        """Return the picture of a text and where its tokens lie in it; several pictures of one width are stacked."""
        counts = [rows * columns for rows, columns in self.grids]
        ends = np.cumsum(counts)
        first = int(self.stands[:row].sum())
        here = [
            index
            for index, (end, count) in enumerate(zip(ends, counts, strict=True))
            if first <= end - count and end <= first + int(self.stands[row].sum())
        ]
        shown = [index for index in here if self.grids[index][1] == self.grids[here[0]][1]]
        pictures = [self._restore(index) for index in shown]
        if not shown or len({picture.shape[1:] for picture in pictures}) > 1 or shown != here:
            shown, pictures = here[:1], pictures[:1]
        if not shown:
            return {}
        numbers = np.arange(sum(counts[index] for index in shown))
        width, start = self.grids[shown[0]][1], int(ends[shown[0]]) - counts[shown[0]] - first
        places = np.full((2, self.stands.shape[1]), -1)
        tokens = self.stands[row].nonzero()[:, 0].numpy()[start : start + len(numbers)]
        places[:, tokens] = numbers // width, numbers % width
        rows = sum(self.grids[index][0] for index in shown)
        return {
            "picture": np.concatenate(pictures),
            "patches": (rows, width),
            "places": places[:, self.real[row].numpy()],
        }

    def _restore(self, index: int) -> Any:
        """Return a picture as the model saw it."""
        if self.pixels.ndim == 4:
            pixels = self.pixels[index]
            if self.sizes is not None:
                height, width = self.sizes[index].tolist()
                pixels = pixels[:, :height, :width]  # the rest is padding
            return restore_colors(self.processor, pixels)
        assert self.sizes is not None
        start = int(self.sizes[:index].prod(-1).sum())
        grid = self.sizes[index].tolist()
        return restore_colors(self.processor, join_patches(self.processor, self.pixels[start:], grid))


def find_image_tokens(model: Model, tensors: Mapping[str, Tensor]) -> ImageTokens | None:
    """Return the pictures inside the texts of a batch; None without pictures, or where nothing places them.

    The image processor of the model is needed, which says how colors were changed.
    """
    config, pixels, ids = model.network.config, tensors.get("pixel_values"), tensors.get("input_ids")
    token = getattr(config, "image_token_id", getattr(config, "image_token_index", None))
    if model.processor is None or pixels is None or ids is None or token is None:
        return None
    grids = find_grids(config, tensors)
    stands = (ids == token).cpu()
    if grids is None or int(stands.sum()) != sum(rows * columns for rows, columns in grids):
        return None
    if pixels.ndim != 4 and not _joins_patches(model.processor, pixels):
        return None
    mask = tensors.get("attention_mask")
    real = torch.ones_like(stands) if mask is None or mask.shape != ids.shape else mask.bool().cpu()
    sizes = tensors.get("image_grid_thw", tensors.get("image_sizes"))
    sizes = None if sizes is None else sizes.cpu().clone()
    return ImageTokens(model.processor, pixels.detach().clone(), sizes, tuple(grids), stands, real)


def find_grids(config: Any, tensors: Mapping[str, Tensor]) -> list[Grid] | None:
    """Return how many rows and columns of tokens each picture becomes; None if config and inputs do not say."""
    vision, pixels = getattr(config, "vision_config", None), tensors["pixel_values"]
    patch, merge = getattr(vision, "patch_size", None), getattr(vision, "spatial_merge_size", None)
    if "image_grid_thw" in tensors:
        table = tensors["image_grid_thw"].tolist()
        films = any(times != 1 for times, _, _ in table)
        return None if films or not merge else [(rows // merge, columns // merge) for _, rows, columns in table]
    if pixels.ndim != 4 or not isinstance(patch, int):
        return None
    if "image_sizes" in tensors:  # pictures of several sizes, padded
        if getattr(vision, "model_type", None) != "pixtral":
            return None  # LLaVA-NeXT cuts pictures into tiles
        side = patch * (getattr(config, "spatial_merge_size", None) or 1)
        return [(height // side, width // side) for height, width in tensors["image_sizes"].tolist()]
    rows, columns = pixels.shape[2] // patch, pixels.shape[3] // patch
    if pooled := getattr(config, "mm_tokens_per_image", None):  # Gemma 3 pools squares of patches
        side = math.isqrt(pooled)
        return None if side**2 != pooled or rows % side or columns % side else [(side, side)] * len(pixels)
    return [(rows, columns)] * len(pixels)


def _joins_patches(processor: Any, pixels: Tensor) -> bool:
    if not type(processor).__name__.startswith(GRID_LAYOUTS):
        return False
    return pixels.ndim == 2 and pixels.shape[1] == 3 * processor.temporal_patch_size * int(processor.patch_size) ** 2


def join_patches(
    processor: Any, patches: Float[Tensor, "patch number"], grid: Int[Tensor, " three"] | list[int]
) -> Float[Tensor, "color row column"]:
    """Return the picture of a list of patches, which goes through squares of patches that become one token."""
    _, rows, columns = grid
    size, times, merge = processor.patch_size, processor.temporal_patch_size, processor.merge_size
    split = patches[: rows * columns].reshape(rows // merge, columns // merge, merge, merge, 3, times, size, size)
    first = split[:, :, :, :, :, 0]  # a picture is a film of equal frames
    return first.permute(4, 0, 2, 5, 1, 3, 6).reshape(3, rows * size, columns * size)
