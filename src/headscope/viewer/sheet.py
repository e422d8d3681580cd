"""What the viewer shows of one model at one attention site: tokens, lenses with their maps, and numbers by head."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headscope.viewer.encode import Array


@dataclass(frozen=True)
class TokenRow:
    """The tokens along one side of the maps."""

    text: Sequence[str]
    special: Sequence[bool]
    word: Sequence[int] | None = None  # the index of each token's word, -1 = none

    def describe(self) -> dict[str, Any]:
        """Return what the header says of them."""
        words = None if self.word is None or not any(word >= 0 for word in self.word) else list(map(int, self.word))
        return {"text": list(self.text), "special": np.flatnonzero(self.special).tolist(), "word": words}


@dataclass(frozen=True)
class LensMaps:
    """The maps of one lens: what they are, and functions that read them."""

    name: str
    quantity: str
    signed: bool
    merged: bool  # one map per layer
    read_layer: Callable[[int], Array]  # index of a layer → head query key
    read_head: Callable[[int, int], Array]  # indices of a layer and a head → query key
    note: str = ""
    graph: str | None = None  # "edges" or "capacities", of rollout and flow
    read_graph: Callable[[int], Array] | None = None  # index of a layer → query key


@dataclass(frozen=True)
class Scalar:
    """One number for each layer and head, with its interval where it is known."""

    name: str
    label: str
    lens: str | None
    values: Array  # layer head
    low: Array | None = None
    high: Array | None = None
    n: str | None = None
    classes: Sequence[str] | None = None  # values are indices of these

    def describe(self) -> dict[str, Any]:
        """Return what the header says of it."""
        tables = {"values": self.values, "low": self.low, "high": self.high}
        facts = {"name": self.name, "label": self.label, "lens": self.lens, "n": self.n}
        classes = None if self.classes is None else list(self.classes)
        return {**facts, "classes": classes, **{name: to_table(table) for name, table in tables.items()}}


@dataclass(frozen=True)
class PatchPicture:
    """The picture that a vision model saw, and where each key lies in it (-1: nowhere, as [CLS])."""

    pixels: Array  # row column color, uint8
    rows: int
    columns: int
    key_row: Sequence[int]
    key_column: Sequence[int]

    def describe(self) -> dict[str, Any]:
        """Return what the header says of it."""
        height, width = self.pixels.shape[:2]
        places = {"keyRow": list(map(int, self.key_row)), "keyColumn": list(map(int, self.key_column))}
        return {"width": width, "height": height, "rows": self.rows, "columns": self.columns, **places}


@dataclass(frozen=True)
class Sheet:
    """One model at one attention site on one input; without lenses it holds numbers by head only."""

    model: str
    site: str
    layers: Sequence[int]
    heads: Sequence[int]
    queries: TokenRow
    keys: TokenRow | None = None  # None: the same tokens as the queries
    text: str = ""
    pair: str | None = None
    visible: Sequence[Array] = ()  # a mask query × key for each layer; none: all keys are visible
    picture: PatchPicture | None = None
    lenses: Sequence[LensMaps] = ()
    scalars: Sequence[Scalar] = ()
    python: str = ""
    prediction: Sequence[tuple[str, float]] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)  # provenance
    messages: Sequence[str] = ()

    @property
    def key_row(self) -> TokenRow:
        """The tokens that are attended to."""
        return self.keys or self.queries


def to_table(values: Array | None) -> list[list[float | None]] | None:
    """Return numbers by layer and head for JSON; None where there is no number.

    >>> to_table(np.array([[0.123456789, np.nan]]))
    [[0.1234568, None]]
    """
    if values is None:
        return None
    return [[float(f"{cell:.7g}") if np.isfinite(cell) else None for cell in row] for row in values.astype(float)]
