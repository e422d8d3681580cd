"""The nine tasks of GLUE, from a folder as its download makes it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headscope.core.errors import InputError, unknown_name
from headscope.core.reader import Columns, Reader, RecordTable, Unreadable
from headscope.data.reading.locate import find_file
from headscope.data.reading.tab_separated import expect_columns, read_tab_table


@dataclass(frozen=True)
class Task:
    """One task: its folder, its columns, the names of its labels in their order."""

    folder: str
    text: str
    pair: str | None
    label: str
    names: tuple[str, ...] = ()
    unnamed: tuple[str, ...] | None = None  # its columns, where train and dev have no header


ENTAILMENT = ("entailment", "not_entailment")
TASKS = {
    "cola": Task(
        "CoLA", "sentence", None, "label", ("unacceptable", "acceptable"), ("source", "label", "star", "sentence")
    ),
    "sst2": Task("SST-2", "sentence", None, "label", ("negative", "positive")),
    "mrpc": Task("MRPC", "#1 String", "#2 String", "Quality", ("not_equivalent", "equivalent")),
    "stsb": Task("STS-B", "sentence1", "sentence2", "score"),
    "qqp": Task("QQP", "question1", "question2", "is_duplicate", ("not_duplicate", "duplicate")),
    "mnli": Task("MNLI", "sentence1", "sentence2", "gold_label", ("entailment", "neutral", "contradiction")),
    "qnli": Task("QNLI", "question", "sentence", "label", ENTAILMENT),
    "rte": Task("RTE", "sentence1", "sentence2", "label", ENTAILMENT),
    "wnli": Task("WNLI", "sentence1", "sentence2", "label", ("not_entailment", "entailment")),
}


@dataclass(frozen=True)
class Glue(Reader):
    """A task of GLUE (Wang et al., 2019): cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte or wnli.

    `split` is train, dev or test; for MNLI these are the matched ones, beside dev-mismatched and test-mismatched.
    Labels are numbers with their names in the column `label_name`; test sets have none.
    """

    task: str = ""
    split: str = "dev"

    def __call__(self, place: str) -> RecordTable:
        """The rows of one split; the place is GLUE's folder, the task's own, or the file."""
        task = _task(self.task)
        split = self.split.lower().replace("_", "-").replace("validation", "dev")
        path = _file(place, task, split)
        unlabelled = split.startswith("test")
        header = None if unlabelled else task.unnamed
        labels = {task.label: task.names} if task.names else {}
        columns = Columns(text=task.text, pair=task.pair, label=task.label, labels=labels)
        table = read_tab_table(path, columns, header=header, typed=partial(_typed, task))
        wanted = (task.text, task.pair, None if unlabelled else task.label)
        expect_columns(path, table, [name for name in wanted if name])
        return table


def _task(name: str) -> Task:
    key = re.sub(r"[-_\s]", "", name.lower())
    if not key:
        raise InputError("Which task of GLUE? Write glue:TASK:SPLIT@DIR, such as glue:rte:dev@glue_data.")
    if key not in TASKS:
        raise unknown_name("GLUE task", name, [task.folder.lower() for task in TASKS.values()])
    return TASKS[key]


def _file(place: str, task: Task, split: str) -> Path:
    """The split's file: in the task's folder under this one, or in this one, or the file itself."""
    path = Path(place).expanduser()
    if not path.is_dir():
        return find_file(path)
    if task.folder == "MNLI" and split in ("dev", "test"):
        split += "-matched"
    spelled = re.sub(r"[-_]", "", task.folder.lower())
    inner = (each for each in sorted(path.iterdir()) if re.sub(r"[-_]", "", each.name.lower()) == spelled)
    folder, name = next((each for each in inner if each.is_dir()), None), f"{split.replace('-', '_')}.tsv"
    if folder is None and not (path / name).is_file():
        held = ", ".join(sorted(each.name for each in path.iterdir())[:12]) or "nothing"
        raise InputError(
            f"{path} has no folder {task.folder}, as GLUE's download makes it, and no {name} either. It holds: {held}."
        )
    return find_file((folder or path) / name)


def _typed(task: Task, row: dict[str, Any]) -> Mapping[str, Any]:
    """Test sets have no labels; where labels have no names (STS-B), they are scores from 0 to 5."""
    label = row.setdefault(task.label, None)
    if label is not None and not task.names:
        try:
            row[task.label] = float(label)
        except ValueError:
            row[task.label] = -1.0
        if not 0 <= row[task.label] <= 5:
            raise Unreadable(f"the label (column '{task.label}') is {label!r}, where a number from 0 to 5 is expected")
    return row
