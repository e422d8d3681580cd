"""The tasks of the study: what is learned from, and what is studied."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.core.errors import InputError, unknown_name
from headscope.core.example import Example
from headscope.data.reading.read import read
from headscope.experiments.split import by_text
from headscope.studies.effective_attention.paper import KINDS

HELD = 0.3
"""The share that is studied where one set has to be divided."""


@dataclass(frozen=True)
class TaskData:
    """One task: examples to learn from, examples to study, and where they come from."""

    name: str
    kind: str
    train: Sequence[Example]
    dev: Sequence[Example]
    source: str


def bundled() -> TaskData:
    """GAP as pairs, which comes with the package."""
    return TaskData(
        "GAP",
        "does the pronoun mean this name?",
        read("gap_pairs:development"),
        read("gap_pairs:validation"),
        "GAP's development set to learn from, its validation set to study; both come with the package",
    )


def of_glue(folder: str, names: Sequence[str], seed: int, *, learning: bool = True) -> tuple[list[TaskData], list[str]]:
    """Those of the paper's tasks that a folder of GLUE has, and the names of those that it lacks.

    Tasks that were asked for by name must be there. Where a task has no train file, its dev file is divided, unless
    nothing is to be learned.
    """
    if not Path(folder).is_dir():
        raise InputError(f"There is no folder '{folder}'. Give the folder that holds those of GLUE's tasks.")
    wanted = [known_task(name) for name in names] or list(KINDS)
    found, missing = [], []
    for name in wanted:
        try:
            dev = read(f"glue:{name}:dev@{folder}")
        except InputError:
            if names or _there(folder, name, "dev"):
                raise
            missing.append(name)
            continue
        found.append(_with_train(name, dev, folder, seed) if learning else _whole(name, KINDS[name], dev))
    if not found:
        raise InputError(
            f"{folder} has none of the tasks {', '.join(KINDS)}. Give the folder that holds theirs, as GLUE's download "
            "makes it."
        )
    return found, missing


def of_files(
    train: Any,
    dev: Any,
    name: str,
    seed: int,
    columns: Mapping[str, Any] | None = None,
    *,
    learning: bool = True,
) -> TaskData:
    """A task of the user's own: whatever `hs.read` reads; without anything to learn from, the one set is divided."""
    named: dict[str, Any] = dict(columns or {})
    held = read(dev, **named)
    if not learning:
        return _whole(name, "the user's own", held)
    if train is not None:
        return TaskData(
            name, "the user's own", read(train, **named), held, f"{len(held):,} examples to study, others to learn"
        )
    learned, kept = by_text(held, HELD, seed)
    return TaskData(name, "the user's own", learned, kept, _divided(learned, kept))


def known_task(name: str) -> str:
    """A task of the paper as GLUE spells it.

    >>> known_task("sst2")
    'SST-2'
    """
    spelled = {_plain(each): each for each in KINDS}
    if _plain(name) not in spelled:
        raise unknown_name("task of this study", name, KINDS)
    return spelled[_plain(name)]


def _with_train(name: str, dev: Sequence[Example], folder: str, seed: int) -> TaskData:
    try:
        train = read(f"glue:{name}:train@{folder}")
    except InputError:
        if _there(folder, name, "train"):
            raise
        learned, held = by_text(dev, HELD, seed)
        return TaskData(name, KINDS[name], learned, held, _divided(learned, held))
    return TaskData(name, KINDS[name], train, dev, "train to learn from, dev to study")


def _whole(name: str, kind: str, dev: Sequence[Example]) -> TaskData:
    return TaskData(name, kind, (), dev, f"all {len(dev):,} examples to study")


def _there(folder: str, name: str, part: str) -> bool:
    """Whether a task has a file of this name, which is then broken and not missing."""
    return any(_plain(path.parent.name) == _plain(name) for path in Path(folder).glob(f"*/{part}.tsv"))


def _divided(learned: Sequence[Example], held: Sequence[Example]) -> str:
    many = len(learned) + len(held)
    return (
        f"{many:,} pairs of one file, divided: {len(learned):,} to learn from, {len(held):,} to study, and no text "
        "(no question, no sentence of a passage) in both"
    )


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]", "", name.lower())
