"""The tagger's weights, as they lie beside this file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

Table = np.ndarray[Any, np.dtype[np.int8]]


@dataclass(frozen=True, eq=False)
class Weights:
    """A linear model: what each name that holds adds to the score of each tag."""

    tags: tuple[str, ...]
    rows: Mapping[str, int]  # the row of each name
    table: Table  # row tag
    classes: Mapping[str, str]  # the tags that a word can have
    sure: Mapping[str, int]  # words that always have the same tag

    def places(self, names: Iterable[str]) -> list[int]:
        """The rows of those names that have any."""
        rows = self.rows
        return [rows[name] for name in names if name in rows]

    def total(self, names: Iterable[str]) -> list[int]:
        """The score of every tag, if these names hold and no others."""
        found: list[int] = self.table[self.places(names)].sum(0).tolist()
        return found


def read_weights(path: Path | None = None) -> Weights:
    """The weights that come with the package, or those of another file."""
    place = path if path is not None else files("headscope.data.bundled") / "english_tagger.npz"
    with place.open("rb") as file, np.load(file, allow_pickle=False) as held:
        given = {name: held[name] for name in held.files}
    tags, names = _words(given["tags"]), _words(given["names"])
    table = np.zeros((len(names), len(tags)), dtype=np.int8)
    table[np.repeat(np.arange(len(names)), given["counts"]), given["columns"]] = given["weights"]
    return Weights(
        tags=tuple(tags),
        rows={name: row for row, name in enumerate(names)},
        table=table,
        classes=dict(zip(_words(given["words"]), _words(given["classes"]), strict=True)),
        sure=dict(zip(_words(given["sure"]), given["sure_tags"].tolist(), strict=True)),
    )


def write_weights(weights: Weights, path: Path) -> None:
    """The same weights have the same bytes."""
    names, words, sure = (sorted(each) for each in (weights.rows, weights.classes, weights.sure))
    table = weights.table[[weights.rows[name] for name in names]]
    rows, columns = table.nonzero()
    given: dict[str, Any] = {
        "tags": _bytes(weights.tags),
        "names": _bytes(names),
        "counts": np.bincount(rows, minlength=len(names)).astype(np.uint8),
        "columns": columns.astype(np.uint8),
        "weights": table[rows, columns],
        "words": _bytes(words),
        "classes": _bytes([weights.classes[word] for word in words]),
        "sure": _bytes(sure),
        "sure_tags": np.array([weights.sure[word] for word in sure], dtype=np.uint8),
    }
    np.savez_compressed(path, allow_pickle=False, **given)


def _bytes(words: Iterable[str]) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    return np.frombuffer("\n".join(words).encode(), dtype=np.uint8)


def _words(table: "np.ndarray[Any, np.dtype[np.uint8]]") -> list[str]:
    text = bytes(table).decode()
    return text.split("\n") if text else []
