"""Tasks of a study: labelled examples to fine-tune on, and others to study."""

import os
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headscope.core.errors import InputError, unknown_name
from headscope.core.example import Example
from headscope.data.labels import match_train
from headscope.data.reading.read import read

DEV_SHARE = 0.3
"""The share of examples that is studied where one set has to be split."""


@dataclass(frozen=True)
class TaskData:
    """The examples of one task, and a sentence on their source."""

    name: str
    kind: str
    train: Sequence[Example]
    dev: Sequence[Example]
    source: str


def read_bundled() -> TaskData:
    """Return GAP with its pronouns left out, which is bundled with the package."""
    source = "GAP's development set for training, its validation set to study; both are bundled with the package"
    train, dev = read("gap_pronouns:development"), read("gap_pronouns:validation")
    return TaskData("GAP", "is the missing pronoun feminine or masculine?", train, dev, source)


def read_glue(
    folder: str, names: Sequence[str], kinds: Mapping[str, str], *, seed: int = 0, tuned: bool = False
) -> tuple[list[TaskData], list[str]]:
    """Read tasks from a folder of GLUE; return them and the names of those that are missing.

    `kinds` are the tasks of the study with their descriptions. Tasks in `names` must exist; without names, all that the
    folder has are read. Where a task has no train file, its dev file is split, unless the model is `tuned` already.
    """
    if not Path(folder).is_dir():
        raise InputError(f"There is no folder '{folder}'. Give the folder that holds those of GLUE's tasks.")
    tasks, missing = [], []
    for name in [find_task_name(name, kinds) for name in names] or kinds:
        dev = _read_part(folder, name, "dev", required=bool(names))
        if dev is None:
            missing.append(name)
            continue
        train = None if tuned else _read_part(folder, name, "train")
        tasks.append(_make_task(name, kinds[name], dev, train, seed=seed, tuned=tuned))
    if not tasks:
        raise InputError(
            f"{folder} has none of the tasks {', '.join(kinds)}. Give the folder that holds theirs, as GLUE's download "
            "makes it."
        )
    return tasks, missing


def read_files(dev: Any, train: Any = None, *, seed: int = 0, tuned: bool = False, **columns: Any) -> TaskData:
    """Read a task from the user's own data, as `hs.read` does; it is named after the file, if there is one.

    Without `train` the examples are split, unless the model is `tuned` already.
    """
    named = isinstance(dev, str | os.PathLike)
    name = Path(str(dev).rpartition("@")[2] or str(dev)).stem.strip(".") if named else ""
    learned = None if train is None or tuned else read(train, **columns)
    return _make_task(name or "data", "the user's own", read(dev, **columns), learned, seed=seed, tuned=tuned)


def find_task_name(name: str, known: Mapping[str, str]) -> str:
    """Return the name of a task as GLUE spells it.

    >>> find_task_name("sst2", {"RTE": "NLI", "SST-2": "sentiment"})
    'SST-2'
    """
    for task in known:
        if same_name(task, name):
            return task
    raise unknown_name("task of this study", name, known)


def folder_name(task: str) -> str:
    """Return the name of a task as one of a folder; it is never empty, nor a path out of the folder that holds it.

    >>> folder_name("SST-2"), folder_name("../my task"), folder_name("..")
    ('SST-2', 'my_task', 'data')
    """
    return re.sub(r"[^\w.-]+", "_", task).strip("._") or "data"


def same_name(first: str, second: str) -> bool:
    """Return whether two names are equal but for case, spaces, - and _."""
    plain, other = (re.sub(r"[-_\s]", "", name.lower()) for name in (first, second))
    return plain == other


def split_by_text(examples: Sequence[Example], share: float, seed: int = 0) -> tuple[list[Example], list[Example]]:
    """Split examples so that no text is in both parts; the second has about `share` of them.

    Pairs that share a text stay together: otherwise a model could be scored on sentences it was trained on.

    >>> pairs = [Example(str(row), f"question {row}", f"sentence {row // 2}") for row in range(10)]
    >>> train, dev = split_by_text(pairs, 0.2)
    >>> len(train), len(dev), {example.pair for example in train} & {example.pair for example in dev}
    (8, 2, set())
    """
    groups = _group_by_text(examples)
    random.Random(seed).shuffle(groups)
    dev: set[int] = set()
    for group in groups:
        if len(dev) + len(group) / 2 < share * len(examples):
            dev.update(group)
    rows = range(len(examples))
    return [examples[row] for row in rows if row not in dev], [examples[row] for row in rows if row in dev]


def _group_by_text(examples: Sequence[Example]) -> list[list[int]]:
    """Return the rows connected by a shared text, ordered by the first row of each group."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    nodes: dict[tuple[str, str | None], int] = {}  # of texts, numbered after those of examples
    edges = [
        (row, nodes.setdefault(key, len(examples) + len(nodes)))
        for row, example in enumerate(examples)
        for key in (("text", example.text), ("pair", example.pair))
        if key[1]
    ]
    size, ends = len(examples) + len(nodes), np.array(edges, int).reshape(-1, 2).T
    labels = connected_components(coo_array((np.ones(len(edges)), ends), (size, size)), directed=False)[1]
    groups: dict[int, list[int]] = {}
    for row, label in enumerate(labels[: len(examples)].tolist()):
        groups.setdefault(label, []).append(row)
    return list(groups.values())


def _read_part(folder: str, name: str, part: str, *, required: bool = False) -> Sequence[Example] | None:
    """Return the examples of a GLUE file; None if it is missing, but an error if it is broken."""
    try:
        return read(f"glue:{name}:{part}@{folder}")
    except InputError:
        if required or any(same_name(path.parent.name, name) for path in Path(folder).glob(f"*/{part}.tsv")):
            raise
        return None


def _make_task(
    name: str, kind: str, dev: Sequence[Example], train: Sequence[Example] | None, *, seed: int, tuned: bool
) -> TaskData:
    if tuned:
        return TaskData(name, kind, (), dev, f"all {len(dev):,} examples to study")
    if train is not None:
        dev = match_train(dev, train, name)
        return TaskData(name, kind, train, dev, "train to learn from, dev to study")
    train, studied = split_by_text(dev, DEV_SHARE, seed)
    source = (
        f"{len(dev):,} pairs of one file, divided: {len(train):,} to learn from, {len(studied):,} to study, and no "
        "text (no question, no sentence of a passage) in both"
    )
    return TaskData(name, kind, train, studied, source)
