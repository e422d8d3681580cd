"""The files under the folder of a studio: the browser names them by ids, never by paths."""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.core.catalog import readers
from headscope.core.errors import InputError
from headscope.results.zarr_folder import is_zarr
from headscope.studio.options import Limits

RESULTS = (".nc", ".zarr")
LARGEST_CONFIG = 1_000_000
"""Bytes of a config.json that is read."""


@dataclass(frozen=True)
class StudioFile:
    """A file, or a folder that is one thing: its id, its path below the folder, and what it is."""

    id: str
    name: str
    kind: str  # result, data or model
    path: Path

    def describe(self) -> dict[str, Any]:
        """Return what the browser gets to know."""
        facts = self.path.stat()
        return {"id": self.id, "name": self.name, "kind": self.kind, "bytes": facts.st_size, "changed": facts.st_mtime}


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

    def list(self, kind: str | None = None) -> list[StudioFile]:
        """Return the results, data files and models, by name; as many as the limit says."""
        found: list[StudioFile] = []
        for path in self._walk(self.root, 0):
            file = self._describe(path)
            if file is not None and kind in (None, file.kind):
                found.append(file)
            if len(found) >= self.limits.listed:
                break
        return sorted(found, key=lambda file: file.name)

    def find(self, identity: Any, kind: str) -> StudioFile:
        """Return the file of an id."""
        for file in self.list(kind):
            if file.id == identity:
                self.check(file.path)
                return file
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
                f"The name of a result is made of letters, digits, spaces and . _ - +, but got {str(name)[:80]!r}."
            )
        path = self.root / f"{name.removesuffix(ending)}{ending}"
        if path.is_symlink():
            raise InputError(f"{path.name} is a link. Give another name.")
        return path

    def identify(self, path: Path) -> str:
        """Return the id of a path in this folder."""
        return identify(path.relative_to(self.root).as_posix())

    def _walk(self, folder: Path, depth: int) -> Iterator[Path]:
        """Return the entries of a folder and of those below, without hidden ones and those that lead out."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:  # not ours to read, or removed meanwhile
            return
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith(".") or not self._is_inside(path):
                continue
            yield path
            if entry.is_dir(follow_symlinks=False) and depth < self.limits.depth and not is_whole(path):
                yield from self._walk(path, depth + 1)

    def _is_inside(self, path: Path) -> bool:
        try:
            return path.resolve(strict=True).is_relative_to(self.root)
        except (OSError, RuntimeError):  # a link to nothing, or to itself
            return False

    def _describe(self, path: Path) -> StudioFile | None:
        kind = find_kind(path)
        if kind is None:
            return None
        name = path.relative_to(self.root).as_posix()
        return StudioFile(identify(name), name, kind, path)


def identify(name: str) -> str:
    """Return a short id, the same for the same name.

    >>> identify("heads.nc")
    '6b8ae2d1c4ab3b6f'
    """
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def is_whole(path: Path) -> bool:
    """Whether a folder is one thing: a Zarr store or a model."""
    return is_zarr(path) or is_model(path)


def find_kind(path: Path) -> str | None:
    """Return what an entry of a folder is; None for what the studio does not show."""
    ending = path.suffix.lower()
    if path.is_dir():
        return "result" if ending == ".zarr" and is_zarr(path) else "model" if is_model(path) else None
    if ending in RESULTS:
        return "result"
    return "data" if ending.removeprefix(".") in data_endings() else None


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
