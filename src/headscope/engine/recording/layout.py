"""How a model groups the tokens of pictures: windows, masks between their regions, sequences laid end to end.

All of it is read off while the model runs: masks and lengths are arguments of attention modules, rows and columns
those of the blocks around them, and `follow_tokens.py` finds which tokens a window holds.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

PADDED = -1
"""The number of a position that the model added, to fill windows up: it has no place, but is attended to."""

ABSENT = -2
"""The number of a position that is only there because other rows are longer."""

HIDDEN = -100.0
"""What shifted windows add to the scores between regions that are no neighbors in the picture."""

NO_WEIGHT = 1e-20
"""Weights below are none: exp(-100) is 4e-44."""


@dataclass(frozen=True)
class Layout:
    """Which tokens of the pictures the rows of a layer's maps hold, in which order."""

    tokens: Int[Tensor, "row token"]  # their numbers, picture by picture; PADDED and ABSENT are none
    pictures: int  # into how many rows the tokens were divided before they were grouped
    count: int  # tokens of each of these rows
    grid: tuple[int, int] | None = None  # rows and columns of the tokens of a picture, where the block was told

    @property
    def key(self) -> Any:
        """Two layers whose keys are equal hold the same tokens in the same rows."""
        return self.tokens.cpu().numpy().tobytes(), self.pictures, self.count, self.grid

    @property
    def as_given(self) -> bool:
        """Whether each row is a picture with all its tokens in order."""
        numbers = torch.arange(self.pictures * self.count).view(self.pictures, self.count)
        return torch.equal(self.tokens.cpu(), numbers)


@dataclass(frozen=True)
class Arguments:
    """What a running attention module was given that says how its tokens are grouped."""

    layout: Layout | None = None
    regions: Bool[Tensor, "window query key"] | None = None  # what a mask of shifted windows leaves visible
    lengths: tuple[int, ...] = ()  # of sequences that lie end to end, each of which attends to itself


def read_arguments(module: Any, args: Sequence[Any], options: Mapping[str, Any], follower: Any = None) -> Arguments:
    """Return what the arguments of an attention module say; `follower` knows the numbers of the tokens, if any does."""
    named = bind_arguments(module, args, options)
    mask, starts = named.get("attention_mask"), named.get("cu_seqlens")
    lengths = () if not isinstance(starts, Tensor) or starts.ndim != 1 else tuple(starts.diff().tolist())
    return Arguments(None if follower is None else follower.find_layout(named), read_regions(mask), lengths)


def bind_arguments(module: Any, args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a module's forward by name."""
    module_class: Any = type(module)
    names = _parameter_names(module_class)
    return {**dict(zip(names, args, strict=False)), **options}


@lru_cache(maxsize=256)
def _parameter_names(module_class: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(module_class.forward).parameters)[1:]


def read_regions(mask: Any) -> Bool[Tensor, "window query key"] | None:
    """Return what a mask leaves visible that holds 0 and HIDDEN only."""
    if not isinstance(mask, Tensor) or mask.ndim != 3 or not mask.is_floating_point() or mask.shape[1] != mask.shape[2]:
        return None
    visible = mask == 0
    return visible if bool((visible | (mask == HIDDEN)).all()) and not bool(visible.all()) else None


def expand_regions(regions: Tensor, attention: Tensor) -> Bool[Tensor, "row query key"] | None:
    """Return the regions of all rows, those of each picture after each other; None where weights say otherwise."""
    if attention.shape[0] % len(regions) or attention.shape[-2:] != regions.shape[-2:]:
        return None
    visible = regions.repeat(attention.shape[0] // len(regions), 1, 1)
    hidden = attention.detach().masked_fill(visible[:, None], 0)
    return visible if bool((hidden <= NO_WEIGHT).all()) else None


def join_layouts(lengths: Sequence[int], device: Any) -> Layout:
    """Return the layout of sequences that lay end to end, in rows of their own."""
    tokens = torch.full((len(lengths), max(lengths)), ABSENT, device=device)
    start = 0
    for row, length in enumerate(lengths):
        tokens[row, :length] = torch.arange(start, start + length, device=device)
        start += length
    return Layout(tokens, 1, start)
