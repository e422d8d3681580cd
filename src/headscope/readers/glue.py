"""The nine tasks of GLUE, from a folder laid out like its download."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headscope.core.errors import InputError, unknown_name
from headscope.core.reader import Columns, Reader, RecordTable, Unreadable
from headscope.data.reading.files import find_file, list_folder
from headscope.data.reading.tab_separated import read_tab_table


@dataclass(frozen=True)
class GlueTask:
    """One task: its folder, its columns, and its ordered class names."""

    folder: str
    text: str
    pair: str | None
    label: str
    classes: tuple[str, ...] = ()
    header: tuple[str, ...] | None = None  # the columns of train and dev, if these files have no header


ENTAILMENT = ("entailment", "not_entailment")
TASKS = {
    "cola": GlueTask(
        "CoLA", "sentence", None, "label", ("unacceptable", "acceptable"), ("source", "label", "star", "sentence")
    ),
    "sst2": GlueTask("SST-2", "sentence", None, "label", ("negative", "positive")),
    "mrpc": GlueTask("MRPC", "#1 String", "#2 String", "Quality", ("not_equivalent", "equivalent")),
    "stsb": GlueTask("STS-B", "sentence1", "sentence2", "score"),
    "qqp": GlueTask("QQP", "question1", "question2", "is_duplicate", ("not_duplicate", "duplicate")),
    "mnli": GlueTask("MNLI", "sentence1", "sentence2", "gold_label", ("entailment", "neutral", "contradiction")),
    "qnli": GlueTask("QNLI", "question", "sentence", "label", ENTAILMENT),
    "rte": GlueTask("RTE", "sentence1", "sentence2", "label", ENTAILMENT),
    "wnli": GlueTask("WNLI", "sentence1", "sentence2", "label", ("not_entailment", "entailment")),
}


@dataclass(frozen=True)
class Glue(Reader):
    """A task of GLUE (Wang et al., 2019): cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte or wnli.

    `split` is train, dev or test; for MNLI, dev and test are the matched sets, beside dev-mismatched and
    test-mismatched. Labels are class indices, with their names in the column `label_name`; test sets have no labels.
    """

    task: str = ""
    split: str = "dev"

    def __call__(self, path: str) -> RecordTable:
        """Read one split; the path is GLUE's folder, the task's own folder, or the file."""
        task = _find_task(self.task)
        split = self.split.lower().replace("_", "-").replace("validation", "dev")
        unlabeled = split.startswith("test")
        labels = {task.label: task.classes} if task.classes else {}
        return read_tab_table(
            _find_split(path, task, split),
            Columns(text=task.text, pair=task.pair, label=task.label, labels=labels),
            header=None if unlabeled else task.header,
            convert=partial(_convert, task),
            required=(task.text, task.pair, None if unlabeled else task.label),
        )


def _find_task(name: str) -> GlueTask:
    key = _normalize(name)
    if not key:
        raise InputError("Which task of GLUE? Write glue:TASK:SPLIT@DIR, such as glue:rte:dev@glue_data.")
    if key not in TASKS:
        raise unknown_name("GLUE task", name, [task.folder.lower() for task in TASKS.values()])
    return TASKS[key]


def _find_split(path: str, task: GlueTask, split: str) -> Path:
    """Return the file of a split: in the task's folder below `path`, in `path`, or `path` itself."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        return find_file(folder)
    if task.folder == "MNLI" and split in ("dev", "test"):
        split += "-matched"
    name, key = f"{split.replace('-', '_')}.tsv", _normalize(task.folder)
    inner = next(
        (child for child in sorted(folder.iterdir()) if child.is_dir() and _normalize(child.name) == key), None
    )
    if inner is None and not (folder / name).is_file():
        raise InputError(
            f"{folder} has no folder {task.folder}, as in GLUE's download, and no {name}. It holds: "
            f"{list_folder(folder)}."
        )
    return find_file((inner or folder) / name)


def _normalize(name: str) -> str:
    return re.sub(r"[-_\s]", "", name.lower())


def _convert(task: GlueTask, row: dict[str, Any]) -> Mapping[str, Any]:
    """Add the missing label of a test set; parse the scores of STS-B, which run from 0 to 5."""
    label = row.setdefault(task.label, None)
    if label is not None and not task.classes:
        try:
            row[task.label] = float(label)
        except ValueError:
            row[task.label] = -1.0
        if not 0 <= row[task.label] <= 5:
            raise Unreadable(f"the label (column '{task.label}') is {label!r}, but a number from 0 to 5 is expected")
    return row
