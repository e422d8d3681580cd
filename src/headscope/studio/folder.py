"""The files under the folder of a studio: the browser names them by ids, never by paths."""

import hashlib
import json
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from headscope.core.catalog import readers
from headscope.core.errors import InputError
from headscope.results.zarr_folder import is_zarr
from headscope.studio.options import Limits

RESULTS = (".nc", ".zarr")
LARGEST_CONFIG = 1_000_000
"""Bytes of a config.json that is read."""

LONGEST_NAME = 200
"""Bytes of the name of a result; file systems take 255, and files beside it have longer names."""


@dataclass(frozen=True)
class StudioFile:
    """A file, or a folder that is one thing: its id, its path below the folder, and what it is."""

    id: str
    name: str
    kind: str  # result, data or model
    path: Path
    bytes: int
    changed: float

    def describe(self) -> dict[str, Any]:
        """Return what the browser gets to know."""
        return {name: getattr(self, name) for name in ("id", "name", "kind", "bytes", "changed")}


@dataclass(frozen=True)
class StudioFolder:
    """The folder that was given at the start. What lies elsewhere, also behind a link, is not there."""

    root: Path
    limits: Limits

    @classmethod
    def open(cls, folder: Path, limits: Limits) -> "StudioFolder":
        """Return a folder that exists."""
        if not folder.is_dir():
            found = "a file" if folder.exists() else "nothing"
            raise InputError(
                f"The studio needs a folder, but there is {found} at {folder}. Make it first, or give another."
            )
        return cls(folder.resolve(), limits)

    def list(self, kind: str | None = None) -> Sequence[StudioFile]:
        """Return the results, data files and models, by name."""
        return self.scan(kind)[0]

    def scan(self, kind: str | None = None) -> tuple[Sequence[StudioFile], bool]:
        """Return the same, and whether it is all: of very many files, those in the upper folders are found."""
        walk, endings = self._walk(), data_endings()
        files = (self._describe(path, endings) for path in islice(walk, self.limits.entries))
        fitting = (file for file in files if file is not None and kind in (None, file.kind))
        found = list(islice(fitting, self.limits.listed))
        return sorted(found, key=lambda file: file.name), next(walk, None) is None

    def find(self, identity: Any, kind: str) -> StudioFile:
        """Return the file of an id, with its links resolved."""
        for file in self.list(kind):
            if file.id == identity:
                return replace(file, path=self.check(file.path))
        raise InputError(f"There is no {kind} of that id in {self.root.name}. It may have been moved; reload the list.")

    def check(self, path: Path) -> Path:
        """Return the path with its links resolved; raise InputError if it, or a file in it, leads out of the folder."""
        resolved = path.resolve()
        inside = (
            [resolved, *(entry for entry in resolved.rglob("*") if entry.is_symlink())] if path.is_dir() else [resolved]
        )
        if any(not entry.resolve().is_relative_to(self.root) for entry in inside):
            raise InputError(f"{path.name} leads out of the folder of this studio, so it is not opened.")
        return resolved

    def new_path(self, name: Any, ending: str) -> Path:
        """Return the path of a result to write: a plain name in this folder."""
        plain = isinstance(name, str) and 0 < len(name) <= 80 and name == name.strip() and name[0] not in ".-~"
        if not plain or any(not (letter.isalnum() or letter in " ._-+") for letter in name):
            raise InputError(
                "The name of a result is made of at most 80 letters, digits, spaces and . _ - +, but got "
                f"{str(name)[:80]!r}."
            )
        if len(name.encode()) > LONGEST_NAME:
            raise InputError(f"The name {name!r} is too long for a file. Give a shorter one.")
        path = self.root / f"{name.removesuffix(ending)}{ending}"
        if path.is_symlink():
            raise InputError(f"{path.name} is a link. Give another name.")
        return path

    def identify(self, path: Path) -> str:
        """Return the id of a path in this folder."""
        return identify(path.relative_to(self.root).as_posix())

    def _walk(self) -> Iterator[Path]:
        """Yield the entries of the folder, then of those below, without hidden ones and those that lead out."""
        folders = deque([(self.root, 0)])
        while folders:
            folder, depth = folders.popleft()
            for entry in _read_folder(folder):
                path = Path(entry.path)
                if entry.name.startswith(".") or (entry.is_symlink() and not self._is_inside(path)):
                    continue
                yield path
                if depth < self.limits.depth and entry.is_dir(follow_symlinks=False) and not is_whole(path):
                    folders.append((path, depth + 1))

    def _is_inside(self, path: Path) -> bool:
        try:
            return path.resolve(strict=True).is_relative_to(self.root)
        except (OSError, RuntimeError):  # a link to nothing, or to itself
            return False

    def _describe(self, path: Path, endings: set[str]) -> StudioFile | None:
        try:
            kind = find_kind(path, endings)
            facts = path.stat() if kind else None
        except OSError:  # removed meanwhile
            return None
        if kind is None or facts is None:
            return None
        name = path.relative_to(self.root).as_posix()
        return StudioFile(identify(name), name, kind, path, facts.st_size, facts.st_mtime)


def _read_folder(folder: Path) -> "list[os.DirEntry[str]]":
    """Return the entries of a folder by name; none where it may not be read, or was removed meanwhile."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def identify(name: str) -> str:
    """Return a short id, the same for the same name.

    >>> identify("heads.nc")
    'b68da2cb9552603d'
    """
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def is_whole(path: Path) -> bool:
    """Whether a folder is one thing: a Zarr store or a model."""
    return is_zarr(path) or is_model(path)


def find_kind(path: Path, endings: set[str]) -> str | None:
    """Return what an entry of a folder is, data by these endings; None for what the studio does not show."""
    ending = path.suffix.lower()
    if path.is_dir():
        return "result" if ending == ".zarr" and is_zarr(path) else "model" if is_model(path) else None
    if ending in RESULTS:
        return "result"
    return "data" if ending.removeprefix(".") in endings else None


def data_endings() -> set[str]:
    """Return the endings of files that `hs.read` reads."""
    return {ending for reader in readers for ending in reader.endings}


def is_model(path: Path) -> bool:
    """Whether a folder holds the config of a model."""
    config = path / "config.json"
    try:
        if not config.is_file() or config.stat().st_size > LARGEST_CONFIG:
            return False
        return "model_type" in json.loads(config.read_bytes())
    except (OSError, ValueError, TypeError):
        return False
