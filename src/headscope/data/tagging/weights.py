"""The weights of the linear tagger, and their file format."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headscope.data.bundled.files import bundled_file

Table = np.ndarray[Any, np.dtype[np.int8]]


@dataclass(frozen=True, eq=False)
class Weights:
    """A linear model: what each feature adds to the score of each tag."""

    tags: tuple[str, ...]
    rows: Mapping[str, int]  # the row of each feature
    table: Table  # row tag
    classes: Mapping[str, str]  # the tags that a word can have
    fixed_tags: Mapping[str, int]  # the tag of words that always have the same one

    def find_rows(self, names: Iterable[str]) -> list[int]:
        """Return the rows of the features that have one."""
        rows = self.rows
        return [rows[name] for name in names if name in rows]

    def sum_rows(self, names: Iterable[str]) -> list[int]:
        """Return the score of every tag for these features."""
        scores: list[int] = self.table[self.find_rows(names)].sum(0).tolist()
        return scores


def read_weights(path: Path | None = None) -> Weights:
    """Read the bundled weights, or those of another file."""
    source = path if path is not None else bundled_file("english_tagger.npz")
    with source.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    tags, names = _words(arrays["tags"]), _words(arrays["names"])
    table = np.zeros((len(names), len(tags)), dtype=np.int8)
    table[np.repeat(np.arange(len(names)), arrays["counts"]), arrays["columns"]] = arrays["weights"]
    return Weights(
        tags=tuple(tags),
        rows={name: row for row, name in enumerate(names)},
        table=table,
        classes=dict(zip(_words(arrays["words"]), _words(arrays["classes"]), strict=True)),
        fixed_tags=dict(zip(_words(arrays["sure"]), arrays["sure_tags"].tolist(), strict=True)),
    )


def write_weights(weights: Weights, path: Path) -> None:
    """Write weights; equal weights give equal files."""
    names, words, fixed = sorted(weights.rows), sorted(weights.classes), sorted(weights.fixed_tags)
    table = weights.table[[weights.rows[name] for name in names]]
    rows, columns = table.nonzero()
    arrays: dict[str, Any] = {
        "tags": _bytes(weights.tags),
        "names": _bytes(names),
        "counts": np.bincount(rows, minlength=len(names)).astype(np.uint8),
        "columns": columns.astype(np.uint8),
        "weights": table[rows, columns],
        "words": _bytes(words),
        "classes": _bytes([weights.classes[word] for word in words]),
        "sure": _bytes(fixed),
        "sure_tags": np.array([weights.fixed_tags[word] for word in fixed], dtype=np.uint8),
    }
    np.savez_compressed(path, allow_pickle=False, **arrays)


def _bytes(words: Iterable[str]) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    return np.frombuffer("\n".join(words).encode(), dtype=np.uint8)


def _words(table: "np.ndarray[Any, np.dtype[np.uint8]]") -> list[str]:
    text = bytes(table).decode()
    return text.split("\n") if text else []
