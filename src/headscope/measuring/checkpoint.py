"""Checkpoints: the states of the batches measured so far, on disk."""

import io
import json
from collections.abc import Mapping, Sequence
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

ENVIRONMENT = frozenset({"device", "dtype", "threads"})
"""Facts that may differ between parts of one measurement, which then agree to rounding."""


@dataclass(frozen=True)
class Checkpoint:
    """The summed states of the first `done` batches of a plan, and the facts of the run."""

    facts: Mapping[str, Any]
    done: int
    total: int
    states: States = field(default_factory=dict)
    examples: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # fields by name, where every value is kept

    @property
    def complete(self) -> bool:
        """Whether it holds every batch of the plan."""
        return self.done == self.total

    def to_bytes(self) -> bytes:
        """Return plain arrays and JSON in the format of `numpy.savez`, without pickle."""
        keys = [list(key) for key in self.states]
        about = {"facts": dict(self.facts), "done": self.done, "total": self.total, "keys": keys}
        arrays = {
            f"{index}/{name}": array
            for index, state in enumerate(self.states.values())
            for name, array in state.arrays().items()
        }
        if self.examples:
            arrays["examples"] = np.frombuffer(json.dumps(dict(self.examples)).encode(), dtype=np.uint8)
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, about=np.array(json.dumps(about, ensure_ascii=False)), **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Checkpoint":
        """Return the checkpoint that `to_bytes` wrote."""
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            examples = json.loads(file["examples"].tobytes()) if "examples" in file.files else {}
            arrays: dict[int, dict[str, Any]] = {}
            for path in file.files:
                index, slash, name = path.partition("/")
                if slash:
                    arrays.setdefault(int(index), {})[name] = file[path]
        keys = [(lens, statistic) for lens, statistic in about["keys"]]
        states = {key: State.of_arrays(arrays[index]) for index, key in enumerate(keys)}
        return cls(about["facts"], about["done"], about["total"], states, examples)


def write_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint atomically: an older file stays until the new one is complete."""
    with atomic_path(path) as part:
        part.write_bytes(checkpoint.to_bytes())


def read_checkpoint(path: Path) -> Checkpoint:
    """Read what `write_checkpoint` wrote."""
    if not path.is_file():
        raise InputError(f"Cannot open {path}: there is no such file. Give the path of a .state file.")
    try:
        return Checkpoint.from_bytes(path.read_bytes())
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise InputError(
            f"Cannot open {path}: it is not a state that headscope wrote, or it is damaged. Measure it again."
        ) from error


def open_checkpoint(
    path: Path, facts: Mapping[str, Any], total: int, *, resume: bool, overwrite: bool = False
) -> Checkpoint:
    """Return the checkpoint to resume, or write an empty one, so that a path that cannot be written fails at once.

    Without `resume`, an existing checkpoint is replaced only with `overwrite`.
    """
    if not path.exists() or (overwrite and not resume):
        checkpoint = Checkpoint(dict(facts), 0, total)
        write_checkpoint(checkpoint, path)
        return checkpoint
    checkpoint = read_checkpoint(path)
    if not resume:
        content = (
            "a finished measurement"
            if checkpoint.complete
            else f"{checkpoint.done} of {checkpoint.total} batches of an unfinished measurement"
        )
        raise InputError(
            f"{path} holds {content}. Resume it (resume=True, in the shell --resume), start over (overwrite=True, in "
            "the shell --force), or give another path."
        )
    remedy = "Measure as before, start over (overwrite=True, in the shell --force), or give another path."
    check_resumable(path, checkpoint.facts, facts, ignore=ENVIRONMENT, remedy=remedy)
    return checkpoint


def add_states(first: States, second: States) -> States:
    """Add two parts of one measurement, statistic by statistic."""
    if not first:
        return second
    if set(first) != set(second):
        raise InputError("Cannot add these states: they hold different lenses or statistics. Measure both alike.")
    return {key: state + second[key] for key, state in first.items()}
