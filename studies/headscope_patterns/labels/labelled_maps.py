"""Attention maps and their labels, in a folder of three files.

`maps.tsv` describes the source of each map, `maps.npz` holds its weights in one byte each, and `labels.tsv` has one
line for each map and annotation pass. So labels can be read, compared and committed apart from the maps.
"""

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from headscope.core.checksum import DamagedFile, guard_reading, seal_zip
from headscope.core.errors import InputError, unknown_name
from headscope.core.npz import pack_arrays, unpack_arrays
from headscope.patterns import CLASSES
from headscope.results.atomic import atomic_path

Array = np.ndarray[Any, np.dtype[Any]]
BUNDLED = Path(__file__).parent / "bundled"
LEVELS = 127
DAMAGED = "it does not hold the maps of this folder, or it is damaged. Copy the folder again."


@dataclass(frozen=True)
class Source:
    """Where one map comes from."""

    id: str
    part: str  # "random"; "topped_up", selected for rare classes; "test", sampled at random and never trained on
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
    def head_group(self) -> str:
        """The head of a model and its fine-tuned versions, whose maps are alike; a split does not separate them."""
        return f"{self.model} L{self.layer}H{self.head}"

    @property
    def text_group(self) -> str:
        """The text, with its data set."""
        return f"{self.data} {self.text}"

    @property
    def kind(self) -> str:
        """Whether the map is of a pair of texts or of a single one."""
        return "pair" if any(self.segments) else "single text"


@dataclass(frozen=True)
class PatternMap:
    """One map over real tokens, signed as its lens gives it."""

    source: Source
    weights: Array  # query key


@dataclass(frozen=True)
class LabelledMaps:
    """Maps and, for each annotation pass, the classes of the maps labelled in it."""

    maps: tuple[PatternMap, ...]
    passes: dict[str, dict[str, str]]  # pass → map id → class

    def select(self, name: str) -> tuple[list[PatternMap], list[str]]:
        """Return the maps labelled in a pass, and their labels."""
        if name not in self.passes:
            raise unknown_name("pass", name, list(self.passes))
        labels = self.passes[name]
        maps = [item for item in self.maps if item.source.id in labels]
        return maps, [labels[item.source.id] for item in maps]


def read_labelled_maps(folder: str | Path | None = None) -> LabelledMaps:
    """Read the labelled maps of a folder; by default those bundled with this package."""
    folder = BUNDLED if folder is None else Path(folder)
    for name in ("maps.tsv", "maps.npz"):
        if not (folder / name).is_file():
            raise InputError(f"{folder} is not a folder of labelled maps: it has no {name}.")
    sources = [_parse_source(row) for row in _read_table(folder / "maps.tsv")]
    with guard_reading(folder / "maps.npz", DAMAGED):
        arrays = unpack_arrays((folder / "maps.npz").read_bytes())
        codes, peaks = arrays["codes"], arrays["peaks"]
        if peaks.shape != (len(sources),) or codes.shape != (sum(len(source.tokens) ** 2 for source in sources),):
            raise DamagedFile("It holds other maps than maps.tsv.")
    maps, start = [], 0
    for source, peak in zip(sources, peaks, strict=True):
        n = len(source.tokens)
        maps.append(PatternMap(source, decode_weights(codes[start : start + n * n].reshape(n, n), float(peak))))
        start += n * n
    return LabelledMaps(tuple(maps), _read_passes(folder / "labels.tsv", {source.id for source in sources}))


def save_maps(maps: Sequence[PatternMap], folder: str | Path) -> None:
    """Write maps, without labels, to a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    codes, peaks = zip(*(encode_weights(item.weights) for item in maps), strict=True)
    arrays = {"codes": np.concatenate([code.ravel() for code in codes]), "peaks": np.array(peaks, dtype=np.float32)}
    with atomic_path(folder / "maps.npz") as path:
        path.write_bytes(seal_zip(pack_arrays(arrays, compress=True)))
    _write_table(folder / "maps.tsv", [f.name for f in fields(Source)], [_format_source(item.source) for item in maps])


def save_labels(passes: dict[str, dict[str, str]], folder: str | Path) -> None:
    """Write the labels of all passes, one line for each map and pass."""
    lines = [[map_id, name, label] for name, labels in passes.items() for map_id, label in labels.items()]
    _write_table(Path(folder) / "labels.tsv", ["id", "pass", "label"], lines)


def encode_weights(weights: Array) -> tuple[Array, float]:
    """Quantise weights to one signed byte each, by the root of |w| / max |w|; also return that maximum."""
    peak = float(np.abs(weights).max())
    root = np.sqrt(np.abs(weights) / peak) if peak else np.zeros_like(weights)
    return np.rint(np.copysign(root * LEVELS, weights)).astype(np.int8), peak


def decode_weights(codes: Array, peak: float) -> Array:
    """Restore weights from one byte each.

    >>> codes, peak = encode_weights(np.array([[0.81, 0.19], [0.0, -0.5]]))
    >>> decode_weights(codes, peak).astype(float).round(2).tolist()
    [[0.81, 0.19], [0.0, -0.5]]
    """
    root = codes.astype(np.float32) / LEVELS
    return np.copysign(root**2 * peak, root)


def _parse_source(row: dict[str, str]) -> Source:
    values: dict[str, Any] = {**row, "layer": int(row["layer"]), "head": int(row["head"])}
    values |= {"tokens": tuple(json.loads(row["tokens"])), "segments": tuple(map(int, row["segments"]))}
    return Source(**values)


def _format_source(source: Source) -> list[str]:
    values = {f.name: getattr(source, f.name) for f in fields(Source)}
    values |= {"tokens": json.dumps(source.tokens, ensure_ascii=False), "segments": "".join(map(str, source.segments))}
    return [str(value) for value in values.values()]


def _read_passes(path: Path, known: set[str]) -> dict[str, dict[str, str]]:
    passes: dict[str, dict[str, str]] = {}
    for row in _read_table(path) if path.is_file() else []:
        if row["label"] not in CLASSES:
            raise unknown_name("pattern class", row["label"], list(CLASSES))
        if row["id"] not in known:
            raise InputError(f"{path} has a label for the map '{row['id']}', which is not in maps.tsv.")
        passes.setdefault(row["pass"], {})[row["id"]] = row["label"]
    return passes


def _read_table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def _write_table(path: Path, names: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    with atomic_path(path) as part:
        part.write_text("".join("\t".join(line) + "\n" for line in [names, *lines]), encoding="utf-8")
