"""Running text whose words are shaded by a score: colours, and lines of a given width."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import to_hex

from headscope.core.errors import InputError, unknown_name
from headscope.plotting import fonts, scales, theme
from headscope.plotting.selection import require_variables

HINTING = 1.04
"""How much wider letters may be on a screen, where they are moved to whole pixels."""


@dataclass(frozen=True)
class ShadedText:
    """One text in pieces, each with its score; NaN where there is none."""

    pieces: tuple[str, ...]  # with the spaces before them
    scores: scales.Cells
    special: np.ndarray[Any, np.dtype[np.bool_]]
    method: str
    example: str
    answer: str
    score: float  # of the answer, before anything is changed
    signed: bool
    quantity: str
    target: str = ""
    selected: str = ""  # which text it is, if the result holds others


@dataclass(frozen=True)
class PlacedPiece:
    """A piece on its line: the line, where it begins and how wide it is, in inches per point of font size."""

    index: int
    text: str
    line: int
    left: float
    width: float


def read_texts(data: xr.Dataset, method: str | None = None) -> list[ShadedText]:
    """Return the texts of importances, one for each method of a Dataset of one example, or that of one method."""
    require_variables(data, "importance")
    if "example" in data["importance"].dims:
        raise InputError(
            f"The figure 'words' shows one text, but this data holds {data.sizes['example']}. Select one: "
            "data.isel(example=0)."
        )
    names = [str(name) for name in data["method"].values]
    if method is not None and method not in names:
        raise unknown_name("method in this data", method, names)
    return [_read_text(data.isel(method=index)) for index, name in enumerate(names) if method in (None, name)]


def _read_text(part: xr.Dataset) -> ShadedText:
    count = int(part["count"]) if "count" in part.coords else part.sizes["token"]
    part = part.isel(token=slice(count))
    return ShadedText(
        pieces=tuple(str(piece) for piece in part["piece"].values),
        scores=part["importance"].values.astype(float),
        special=part["special"].values.astype(bool),
        method=str(part["method"].values),
        example=str(part["example"].values) if "example" in part.coords else "",
        answer=str(part["answer"].values),
        score=float(part["score"]),
        signed=bool(part["signed"]),
        quantity=str(part["quantity"].values),
        target=str(part["target"].values) if "target" in part.coords else "",
        selected=str(part.attrs.get("selected_text", "")),
    )


def choose_scale(
    texts: Sequence[ShadedText], spacing: scales.Spacing = "linear", cmap: scales.ColourMap = None
) -> tuple[scales.ColourScale, list[scales.Cells], str]:
    """Return a colour scale, the numbers of each text on it, and what they are.

    Scores of one method and target share a scale. Those of others have different units, and are divided by the
    largest of each text.
    """
    signed = any(text.signed for text in texts)
    numbers, label = [text.scores for text in texts], texts[0].quantity
    if len({(text.method, text.target) for text in texts}) > 1:
        numbers = [scores / _largest(scores) for scores in numbers]
        label = "score ÷ largest of the text"
    scale = scales.weight_scale(np.concatenate(numbers)[None], signed=signed, spacing=spacing, cmap=cmap)
    return scale, numbers, label


def _largest(scores: scales.Cells) -> float:
    sizes = np.abs(scores[np.isfinite(scores)])
    return float(sizes.max()) or 1.0 if sizes.size else 1.0


def find_colours(scale: scales.ColourScale, numbers: scales.Cells) -> list[tuple[str, str] | None]:
    """Return the background and the text colour of each number; None where there is none."""
    shades = [None if np.isnan(number) else to_hex(tuple(scale.rgba(np.array(number)).tolist())) for number in numbers]
    return [None if shade is None else (shade, theme.text_colour(shade)) for shade in shades]


def describe_text(text: ShadedText, others: Sequence[ShadedText]) -> str:
    """Return a heading: of several texts what tells them apart, and the answer with its score."""
    methods, examples, targets = (
        {getattr(other, name) for other in others} for name in ("method", "example", "target")
    )
    parts = [text.method] if len(methods) > 1 or len(examples) == 1 else []
    parts += [text.example] if len(examples) > 1 else []
    parts += [text.target] if len(targets) > 1 else []
    answer = f"{text.answer} {text.score:.2f}"
    own_scale = len(methods) > 1 or len(targets) > 1
    largest = [f"largest {_largest(text.scores):.2g}"] if own_scale else []
    return " · ".join([*parts, answer, *largest])


def break_lines(pieces: Sequence[str], width: float) -> list[PlacedPiece]:
    """Place pieces on lines of a width in inches per point; pieces without a space between them stay together."""
    space = fonts.text_width("a b") - fonts.text_width("ab")
    placed: list[PlacedPiece] = []
    line, right = 0, 0.0
    for word in _group_words(pieces):
        texts = [fonts.to_label(pieces[index].strip(" ")) for index in word]
        widths = [fonts.text_width(text) * HINTING if text else 0.0 for text in texts]
        gap = space if right and pieces[word[0]].startswith((" ", "\n", "\t")) else 0.0
        if right and right + gap + sum(widths) > width:
            line, right, gap = line + 1, 0.0, 0.0
        right += gap
        for index, text, own in zip(word, texts, widths, strict=True):
            if right and right + own > width:  # a word wider than the line
                line, right = line + 1, 0.0
            placed.append(PlacedPiece(index, text, line, right, own))
            right += own
    return placed


def _group_words(pieces: Sequence[str]) -> list[list[int]]:
    """Return the indices of pieces that no space separates."""
    words: list[list[int]] = []
    for index, piece in enumerate(pieces):
        if words and piece and not piece[0].isspace() and not pieces[index - 1].endswith(" "):
            words[-1].append(index)
        elif piece.strip() or not words:
            words.append([index])
    return words
