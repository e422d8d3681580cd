"""States on disk: what a run has seen so far, and what it will come to."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from headscope.core.errors import InputError
from headscope.core.state import State
from headscope.measuring.observe import States
from headscope.results.atomic import atomic_path
from headscope.results.resume import check_resumable

CIRCUMSTANCES = frozenset({"device", "dtype", "threads"})
"""Facts that may differ between parts of one measurement, which then agree to rounding."""


@dataclass(frozen=True)
class Checkpoint:
    """The folded states of the first `done` batches of a plan, and the facts that make two runs the same."""

    facts: Mapping[str, Any]
    done: int
    total: int
    states: States = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every batch of the plan is in it."""
        return self.done == self.total


def write(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint; the file appears whole, and an older one stays until then."""
    with atomic_path(path) as part:
        part.write_bytes(packed(checkpoint))


def read(path: Path) -> Checkpoint:
    """Read what `write` wrote."""
    if not path.is_file():
        raise InputError(f"Cannot open {path}: there is no such file. Give the path of a .state file.")
    try:
        return unpacked(path.read_bytes())
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise InputError(
            f"Cannot open {path}: it is not a state that headscope wrote, or it is damaged. Measure it again."
        ) from error


def packed(checkpoint: Checkpoint) -> bytes:
    """A checkpoint as bytes: plain arrays and JSON, no pickle."""
    keys = [list(key) for key in checkpoint.states]
    about = {"facts": dict(checkpoint.facts), "done": checkpoint.done, "total": checkpoint.total, "keys": keys}
    arrays = {
        f"{place}/{name}": each
        for place, state in enumerate(checkpoint.states.values())
        for name, each in state.arrays().items()
    }
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, about=np.array(json.dumps(about, ensure_ascii=False)), **arrays)
    return file.getvalue()


def unpacked(data: bytes) -> Checkpoint:
    """A checkpoint from what `packed` gave."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        about = json.loads(str(file["about"]))
        parts: dict[int, dict[str, Any]] = {}
        for name in file.files:
            place, slash, rest = name.partition("/")
            if slash:
                parts.setdefault(int(place), {})[rest] = file[name]
    keys = [(lens, statistic) for lens, statistic in about["keys"]]
    states = {key: State.of_arrays(parts[place]) for place, key in enumerate(keys)}
    return Checkpoint(about["facts"], about["done"], about["total"], states)


def begun(path: Path, facts: Mapping[str, Any], total: int, *, resume: bool) -> Checkpoint:
    """A new checkpoint, written at once so that a folder without room or rights is known now; or one to go on from."""
    if not path.exists():
        new = Checkpoint(dict(facts), 0, total)
        write(new, path)
        return new
    found = read(path)
    if not resume:
        state = "a finished measurement" if found.complete else f"{found.done} of {found.total} batches of one"
        raise InputError(
            f"{path} holds {state}. Go on with it (resume=True, in the shell --resume), delete it, or give another "
            "path."
        )
    check_resumable(path, found.facts, facts, ignore=CIRCUMSTANCES, remedy="Measure as before, or give another path.")
    return found


def added(one: States, other: States) -> States:
    """The sum of two parts of one measurement, statistic by statistic."""
    if not one:
        return other
    if set(one) != set(other):
        raise InputError("Cannot add these states: they hold different lenses or statistics. Measure both alike.")
    return {key: state + other[key] for key, state in one.items()}
