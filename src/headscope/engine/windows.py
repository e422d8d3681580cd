"""Examples and tokens of maps whose rows are windows of pictures."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from headscope.core.example import PAD, Example
from headscope.core.tokens import Tokens
from headscope.engine.recording.layout import ABSENT, PADDED, Layout


@dataclass(frozen=True)
class Windows:
    """Which tokens of which picture each row holds."""

    picture: list[int]  # of each row
    tokens: Int[Tensor, "row token"]  # numbers within the picture; PADDED and ABSENT are none
    grid: tuple[int, int] | None  # rows and columns of the tokens of a picture
    whole: bool  # whether each row is a picture

    def name_tokens(self) -> Tokens:
        """Return the tokens of the rows: by row and column of the picture, or as numbers."""
        columns = 0 if self.grid is None else self.grid[1]
        names = [[_name_token(number, columns) for number in row if number != ABSENT] for row in self.tokens.tolist()]
        real = self.tokens != ABSENT
        return Tokens(
            names, real, self.tokens == PADDED, torch.where(real, 0, ABSENT + 1), torch.full(self.tokens.shape, -1)
        )

    def make_examples(self, pictures: Sequence[Example]) -> tuple[Example, ...]:
        """Return an example for each row, with the picture that it is part of."""
        seen = Counter[int]()
        examples = []
        for row, picture in zip(self.tokens, self.picture, strict=True):
            example, columns = pictures[picture], self._columns(pictures[picture], row)
            number, seen[picture] = seen[picture], seen[picture] + 1
            label: Any = {"id": example.id, "text": example.text}
            if not self.whole:
                label = {"id": f"{example.id}.{number}", "text": f"{example.text}, window {number}"}
            part_of = None if self.whole else example.id
            examples.append(Example.lazy(**label, columns=columns, part_of=part_of))
        return tuple(examples)

    def _columns(self, picture: Example, row: Tensor) -> Any:
        if self.grid is None:
            return (lambda _: picture.columns) if self.whole else {}
        return lambda _: place_tokens(picture.columns, row[row != ABSENT], self.grid)


def _name_token(number: int, columns: int) -> str:
    if number == PADDED:
        return PAD
    return f"{number // columns},{number % columns}" if columns else f"#{number}"


def place_tokens(columns: Any, tokens: Tensor, grid: Any) -> dict[str, Any]:
    """Return the columns of a picture with the places of tokens; without it where tokens do not cut it evenly."""
    picture = columns.get("picture")
    if picture is None or any(size % count for size, count in zip(picture.shape[:2], grid, strict=True)):
        return {name: value for name, value in columns.items() if name not in ("picture", "patches", "before")}
    numbers = tokens.cpu().numpy()
    places = np.where(numbers >= 0, np.stack([numbers // grid[1], numbers % grid[1]]), -1)
    return {**columns, "patches": grid, "places": places}


def find_windows(
    layout: Layout, pictures: int, counts: Sequence[int] | None, size: tuple[int, int] | None
) -> Windows | None:
    """Return which tokens the rows of a layer hold; None where they are pictures as before, or nothing says it.

    Parameters
    ----------
    layout
        What is known of the rows.
    pictures
        The number of pictures in the batch.
    counts
        The number of tokens of each, where all lie in one row.
    size
        Height and width of the pictures, where it is that of all.
    """
    grid = layout.grid if layout.grid is not None and size is not None and _cuts(size, layout.grid) else None
    if grid is None and layout.as_given:
        return None
    tokens = layout.tokens.cpu()
    if layout.pictures == pictures:
        starts = torch.arange(pictures + 1) * layout.count
    elif layout.pictures == 1 and counts is not None and len(counts) == pictures and sum(counts) == layout.count:
        starts = torch.tensor([0, *counts]).cumsum(0)
    else:
        return None
    owner = torch.bucketize(tokens, starts[1:], right=True)
    first = [row[numbers >= 0].unique().tolist() for row, numbers in zip(owner, tokens, strict=True)]
    if any(len(found) != 1 for found in first):
        return None
    picture = [found[0] for found in first]
    whole = picture == list(range(pictures))
    return Windows(picture, torch.where(tokens >= 0, tokens - starts[owner.clamp(max=pictures)], tokens), grid, whole)


def _cuts(size: tuple[int, int], grid: tuple[int, int]) -> bool:
    """Return True if squares of some width cut a picture into so many rows and columns.

    >>> _cuts((32, 64), (8, 16)), _cuts((30, 30), (8, 8)), _cuts((32, 32), (4, 16))
    (True, True, False)
    """
    widths = range(1, max(size) + 1)
    return any(
        all(math.ceil(length / width) == count for length, count in zip(size, grid, strict=True)) for width in widths
    )
