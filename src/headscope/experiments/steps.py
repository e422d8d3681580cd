"""The steps of a study, each kept in a folder as soon as it is done."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.core.errors import InputError
from headscope.results.atomic import atomic_path
from headscope.results.npz import read_npz, write_npz

FACTS = "study.json"


class Hashed(str):
    """A fact that stands for something too large to be written down; two of them tell nothing but that they differ."""

    __slots__ = ()


@dataclass(frozen=True)
class Steps:
    """A folder for the steps of one part of a study, and the facts that make two runs the same."""

    folder: Path
    name: str  # what the part is called when progress is shown
    total: int = 0  # how many steps there are, to say how far it is
    progress: bool = True

    def compare(self, facts: Mapping[str, Any]) -> None:
        """Refuse to go on with steps of another study."""
        path, plainly = self.folder / FACTS, json.loads(json.dumps(dict(facts)))
        found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else plainly
        differing = [name for name in {**plainly, **found} if found.get(name) != plainly.get(name)]
        if differing:
            name = differing[0]
            other = (
                f"with other {name}"
                if isinstance(facts.get(name), Hashed)
                else f"with {name}={found.get(name)!r}, but this run has {name}={plainly.get(name)!r}"
            )
            raise InputError(
                f"{self.folder} holds a study {other}. Study as before, or give another folder, in the shell -o."
            )

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Note what is studied, or refuse to go on with steps of another study."""
        self.compare(facts)
        path = self.folder / FACTS
        if not path.is_file():
            with atomic_path(path) as part:
                part.write_text(json.dumps(dict(facts), indent=1, ensure_ascii=False), encoding="utf-8")

    def kept(self, name: str, make: Callable[[], xr.Dataset]) -> xr.Dataset:
        """What a step found: read from the folder, or made now and put there."""
        path = self.folder / f"{name}.npz"
        if not path.is_file():
            write_npz(make(), path)
        return read_npz(path)

    def done(self, name: str) -> bool:
        """Whether a step is in the folder already."""
        return (self.folder / f"{name}.npz").is_file()

    def say(self, place: int, what: str) -> None:
        """Which step begins now."""
        if self.progress:
            print(f"{self.name}, step {place} of {self.total}: {what}", file=sys.stderr, flush=True)  # noqa: T201
