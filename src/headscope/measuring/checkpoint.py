"""Checkpoints: the states of the batches measured so far, on disk."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from headscope.core.checksum import DamagedFile, guard_reading, seal_zip
from headscope.core.errors import InputError
from headscope.core.npz import pack_arrays, unpack_arrays
from headscope.core.state import State
from headscope.measuring.observe import States
from headscope.results.atomic import atomic_path
from headscope.results.resume import check_resumable

ENVIRONMENT = frozenset({"device", "dtype", "threads"})
"""Facts that may differ between parts of one measurement, which then agree to rounding."""

DAMAGED = "it is not a state that headscope wrote, or it is damaged. Measure it again."


@dataclass(frozen=True)
class Checkpoint:
    """The summed states of the first `done` examples of a plan, and the facts of the run."""

    facts: Mapping[str, Any]
    done: int
    total: int
    states: States = field(default_factory=dict)
    examples: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # fields by name, where every value is kept

    @property
    def complete(self) -> bool:
        """Whether it holds every example of the plan."""
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
        return pack_arrays({"about": np.array(json.dumps(about, ensure_ascii=False)), **arrays})

    @classmethod
    def from_bytes(cls, data: bytes) -> "Checkpoint":
        """Return the checkpoint that `to_bytes` wrote; other content may raise any exception."""
        arrays = unpack_arrays(data)
        about = json.loads(str(arrays.pop("about")))
        examples = json.loads(arrays.pop("examples").tobytes()) if "examples" in arrays else {}
        by_state: dict[int, dict[str, Any]] = {index: {} for index in range(len(about["keys"]))}
        for path, array in arrays.items():
            index, _, name = path.partition("/")
            by_state[int(index)][name] = array
        keys = [(str(lens), str(statistic)) for lens, statistic in about["keys"]]
        states = {key: State.from_arrays(by_state[index]) for index, key in enumerate(keys)}
        checkpoint = cls(dict(about["facts"]), about["done"], about["total"], states, examples)
        if len(states) < len(keys) or not checkpoint.sound:
            raise DamagedFile("Its states or examples cannot be counted.")
        return checkpoint

    @property
    def sound(self) -> bool:
        """Whether `done` is between 0 and `total`, and all fields of the examples have one length."""
        counts = {len(column) for column in self.examples.values()}
        types = {type(self.done), type(self.total), *map(type, self.examples.values())}
        return types <= {int, list} and 0 <= self.done <= self.total and len(counts) <= 1


def write_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint atomically: an older file stays until the new one is complete."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(seal_zip(checkpoint.to_bytes()))


def read_checkpoint(path: Path) -> Checkpoint:
    """Read what `write_checkpoint` wrote, and verify its checksum."""
    if not path.is_file():
        raise InputError(f"Cannot open {path}: there is no such file. Give the path of a .state file.")
    with guard_reading(path, DAMAGED):
        return Checkpoint.from_bytes(path.read_bytes())


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
            else f"{checkpoint.done:,} of {checkpoint.total:,} examples of an unfinished measurement"
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
