"""Attention maps with labels that somebody gave by looking at them, in a folder of three files.

`maps.tsv` says where each map comes from, `maps.npz` holds its weights in one byte each, and `labels.tsv` has one line
for each map and pass. So labels can be read, compared and committed apart from the maps.
"""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from headscope.core.errors import InputError, unknown_name
from headscope.patterns.classes import CLASSES
from headscope.results.atomic import atomic_path

Array = np.ndarray[Any, np.dtype[Any]]
BUNDLED = Path(__file__).parent / "bundled"
LEVELS = 127


@dataclass(frozen=True)
class Source:
    """Where one map comes from."""

    id: str
    part: str  # "random", from which shares can be estimated, or "topped_up" for rare classes
    lens: str
    model: str
    tuned: str  # the task that the model was fine-tuned on; empty for a pretrained one
    layer: int
    head: int
    data: str
    text: str  # the example's id in that data
    tokens: tuple[str, ...]
    segments: tuple[int, ...]  # 0 or 1 for the texts of a pair

    @property
    def group(self) -> str:
        """Which head of which model, fine-tuned or not: its maps are alike, so they stay on one side of a split."""
        return f"{self.model} L{self.layer}H{self.head}"


@dataclass(frozen=True)
class PatternMap:
    """One map over real tokens, signed as its lens gave it."""

    source: Source
    weights: Array  # query key


@dataclass(frozen=True)
class Labelled:
    """Maps and, for each pass, the classes that were given to some of them."""

    maps: tuple[PatternMap, ...]
    passes: dict[str, dict[str, str]]  # pass → map id → class

    def chosen(self, which: str) -> tuple[list[PatternMap], list[str]]:
        """The maps that have a label in a pass, and these labels."""
        if which not in self.passes:
            raise unknown_name("pass", which, list(self.passes))
        given = self.passes[which]
        found = [each for each in self.maps if each.source.id in given]
        return found, [given[each.source.id] for each in found]


def open_labelled(folder: str | Path | None = None) -> Labelled:
    """The labelled maps of a folder; without one, those that come with headscope."""
    place = BUNDLED if folder is None else Path(folder)
    for name in ("maps.tsv", "maps.npz"):
        if not (place / name).is_file():
            raise InputError(f"{place} is no folder of labelled maps: it holds no {name}.")
    sources = [_source(row) for row in _rows(place / "maps.tsv")]
    with np.load(place / "maps.npz") as file:
        codes, peaks = file["codes"], file["peaks"]
    maps, start = [], 0
    for source, peak in zip(sources, peaks, strict=True):
        n = len(source.tokens)
        maps.append(PatternMap(source, decoded(codes[start : start + n * n].reshape(n, n), float(peak))))
        start += n * n
    return Labelled(tuple(maps), _passes(place / "labels.tsv", {each.id for each in sources}))


def save_maps(maps: Sequence[PatternMap], folder: str | Path) -> None:
    """Write maps without labels into a folder."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    parts = [encoded(each.weights) for each in maps]
    with atomic_path(place / "maps.npz") as path, path.open("wb") as file:
        codes = np.concatenate([codes.ravel() for codes, _ in parts])
        np.savez_compressed(file, codes=codes, peaks=np.array([peak for _, peak in parts], dtype=np.float32))
    _write(place / "maps.tsv", [f.name for f in fields(Source)], [_line(each.source) for each in maps])


def save_labels(passes: dict[str, dict[str, str]], folder: str | Path) -> None:
    """Write the labels of every pass, each map and pass on a line of its own."""
    lines = [[each, name, label] for name, given in passes.items() for each, label in given.items()]
    _write(Path(folder) / "labels.tsv", ["id", "pass", "label"], lines)


def encoded(weights: Array) -> tuple[Array, float]:
    """Weights in one signed byte each, by the root of their size, and the largest size."""
    peak = float(np.abs(weights).max())
    root = np.sqrt(np.abs(weights) / peak) if peak else np.zeros_like(weights)
    return np.rint(np.copysign(root * LEVELS, weights)).astype(np.int8), peak


def decoded(codes: Array, peak: float) -> Array:
    """The weights of one byte each.

    >>> codes, peak = encoded(np.array([[0.81, 0.19], [0.0, -0.5]]))
    >>> decoded(codes, peak).astype(float).round(2).tolist()
    [[0.81, 0.19], [0.0, -0.5]]
    """
    root = codes.astype(np.float32) / LEVELS
    return np.copysign(root**2 * peak, root)


def _source(row: dict[str, str]) -> Source:
    told: dict[str, Any] = {**row, "layer": int(row["layer"]), "head": int(row["head"])}
    told |= {"tokens": tuple(json.loads(row["tokens"])), "segments": tuple(int(each) for each in row["segments"])}
    return Source(**told)


def _line(source: Source) -> list[str]:
    told = {f.name: getattr(source, f.name) for f in fields(Source)}
    told |= {"tokens": json.dumps(source.tokens, ensure_ascii=False), "segments": "".join(map(str, source.segments))}
    return [str(each) for each in told.values()]


def _passes(path: Path, known: set[str]) -> dict[str, dict[str, str]]:
    passes: dict[str, dict[str, str]] = {}
    for row in _rows(path) if path.is_file() else []:
        if row["label"] not in CLASSES:
            raise unknown_name("pattern class", row["label"], list(CLASSES))
        if row["id"] not in known:
            raise InputError(f"{path} has a label for the map '{row['id']}', which maps.tsv does not have.")
        passes.setdefault(row["pass"], {})[row["id"]] = row["label"]
    return passes


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def _write(path: Path, names: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    text = io.StringIO()
    text.writelines("\t".join(each) + "\n" for each in [names, *lines])
    with atomic_path(path) as part:
        part.write_text(text.getvalue(), encoding="utf-8")
