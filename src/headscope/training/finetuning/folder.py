"""The folder of a tuned model: checkpoints while it is trained, then the model and its stamp."""

import json
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.core.errors import DataWarning, InputError, OutputError
from headscope.core.prose import join_words
from headscope.results.atomic import atomic_path, check_name, sync_folder, sync_tree
from headscope.results.disk import explain_failed_write, raise_os_errors, remove_folder
from headscope.results.hashes import hash_file
from headscope.results.resume import check_resumable, to_plain

STAMP = "finetune.json"
UNCOMPARED = frozenset({"guessed"})
"""Facts that may differ between two parts of one run."""


KEPT = 2
"""How many checkpoints are kept while a model is trained: if the last one is damaged, there is another."""

MANIFEST = "checkpoint.json"
"""The file with the size and hash of every other file of a checkpoint. It is written last."""

TRAINER_FILES = ("optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json", "training_args.bin")
"""Files of a checkpoint that only resuming needs, and that it does need."""


class TrainingWriteError(OutputError):
    """A fine-tuning could not write what it has to; `problem` is what happened, without how to resume."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}, then resume with resume=True, in the shell --resume.")
        self.problem = problem


@dataclass(frozen=True)
class TrainingFolder:
    """The output folder of one fine-tuning."""

    path: Path

    @property
    def checkpoints(self) -> Path:
        """The folder of the trainer's checkpoints."""
        return self.path / "checkpoints"

    def check(self, *, resume: bool, overwrite: bool = False) -> None:
        """Raise an error for a path that is a file or, without `resume`, a folder that is not empty.

        With `overwrite`, the folder of an earlier fine-tuning is accepted.
        """
        check_name(self.path)
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"Cannot write the model to {self.path}: it is a file. Give the path of a folder.")
        if resume or not self._has_files():
            return
        stamp = read_stamp(self.path)
        if stamp is None:
            raise InputError(f"{self.path} holds other files. Give another folder.")
        if overwrite:
            return
        content = "a finished fine-tuning" if stamp["finished"] else "an unfinished fine-tuning"
        raise InputError(
            f"{self.path} holds {content}. Resume it (resume=True, in the shell --resume), start over (overwrite=True, "
            "in the shell --force), or give another folder."
        )

    def begin(self, facts: Mapping[str, Any], *, resume: bool, overwrite: bool = False) -> None:
        """Write the facts of a new run, or raise an error unless they are those of the run to resume.

        With `overwrite` and without `resume`, an earlier fine-tuning is deleted first.
        """
        stamp = read_stamp(self.path)
        if stamp is not None and overwrite and not resume:
            remove_folder(self.path)
            stamp = None
        if stamp is None:
            if resume and self._has_files():
                raise InputError(
                    f"{self.path} cannot be resumed: it holds files, but no {STAMP} that describes them. Give another "
                    "folder."
                )
            self.write_stamp({"command": "hs.finetune", "finished": False, "facts": to_plain(facts)})
            return
        remedy = "Tune as before, start over (overwrite=True, in the shell --force), or give another folder."
        check_resumable(self.path, stamp["facts"], facts, ignore=UNCOMPARED, remedy=remedy)

    def is_finished(self) -> bool:
        """Return whether the folder holds a finished fine-tuning."""
        stamp = read_stamp(self.path)
        return stamp is not None and bool(stamp["finished"])

    def write_stamp(self, stamp: Mapping[str, Any]) -> None:
        """Write the stamp atomically."""
        with atomic_path(self.path / STAMP) as temporary:
            lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in stamp.items())
            temporary.write_text("{\n " + ",\n ".join(lines) + "\n}\n", encoding="utf-8")

    def write_checkpoint(self, step: int, write: Callable[[], None], *, keep: bool) -> None:
        """Let the trainer write a checkpoint and seal it; then delete all but the last two, unless all are kept."""
        path = self.checkpoints / f"checkpoint-{step}"
        with self._explain_failure(f"the checkpoint of step {step:,}", path):
            write()
            seal_checkpoint(path)
        for older in [] if keep else list_checkpoints(self.checkpoints)[KEPT:]:
            remove_folder(older)

    def find_checkpoint(self) -> tuple[Path | None, int]:
        """Return the last complete checkpoint and its step, (None, 0) without one; delete damaged ones with a warning.

        A damaged one would count as newer than those that the resumed run writes.
        """
        defects = {}
        for path in list_checkpoints(self.checkpoints):
            if (defect := find_defect(path)) is None:
                break
            defects[path] = defect
            remove_folder(path)
        last = next(iter(list_checkpoints(self.checkpoints)), None)
        if defects:
            resumed = f"after step {find_step(last):,}" if last else "from the beginning"
            problems = join_words(f"{path.name} ({defect})" for path, defect in defects.items())
            warnings.warn(
                f"{self.checkpoints} holds what cannot be resumed: {problems}. Training goes on {resumed}.",
                DataWarning,
                stacklevel=4,
            )
        return last, find_step(last) if last else 0

    def find_last_step(self) -> int:
        """Return the step of the last checkpoint that was written to its end; 0 without one."""
        return next((find_step(path) for path in list_checkpoints(self.checkpoints) if is_sealed(path)), 0)

    def keep_step(self, network: Any, tokenizer: Any, step: int) -> None:
        """Write the model of one step to `step-N`."""
        path = self.path / f"step-{step}"
        with self._explain_failure(f"the model of step {step:,}", path):
            write_model(network, tokenizer, path)

    def keep_epochs(self, steps: int) -> None:
        """Copy the model of each epoch to `epoch-N`; the checkpoints stay, so that the run can still be resumed."""
        for path in list_checkpoints(self.checkpoints):
            epoch, rest = divmod(find_step(path), steps)
            if rest == 0:
                copy, ignore = self.path / f"epoch-{epoch}", shutil.ignore_patterns(MANIFEST, *TRAINER_FILES)
                with self._explain_failure(f"the model of epoch {epoch}", copy):
                    shutil.copytree(path, copy, ignore=ignore, dirs_exist_ok=True)

    def finish(self, network: Any, tokenizer: Any, stamp: Mapping[str, Any]) -> None:
        """Write the model; the config, which makes a folder a model, and the stamp come last."""
        with self._explain_failure("the tuned model"):
            write_model(network, tokenizer, self.path)
            self.write_stamp(stamp)
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    @contextmanager
    def _explain_failure(self, what: str, incomplete: Path | None = None) -> Iterator[None]:
        """Raise TrainingWriteError where a write in this block fails, and delete the incomplete folder."""
        try:
            with raise_os_errors():
                yield
        except (OSError, OutputError) as error:
            if incomplete is not None:
                shutil.rmtree(incomplete, ignore_errors=True)
            cause = error if isinstance(error, OSError) else error.__cause__
            if not isinstance(cause, OSError):
                raise
            reason, remedy = explain_failed_write(cause, self.path)
            step = self.find_last_step()
            valid = f"The checkpoint of step {step:,} is complete" if step else "There is no earlier checkpoint"
            raise TrainingWriteError(f"Cannot write {what} to {self.path}: {reason}. {valid}. {remedy}") from error

    def _has_files(self) -> bool:
        return self.path.is_dir() and any(self.path.iterdir())


def list_steps(path: Path) -> dict[int, Path]:
    """Return the folders of the models that were kept during a fine-tuning, by step."""
    return {find_step(folder): folder for folder in sorted(list_numbered(path, "step"), key=find_step)}


def write_model(network: Any, tokenizer: Any, folder: Path) -> None:
    """Write a model into a folder; its config comes last."""
    temporary = folder / ".part"
    try:
        network.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        sync_tree(temporary)
        for file in sorted(temporary.iterdir(), key=lambda file: file.name == "config.json"):
            file.replace(folder / file.name)
        sync_folder(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_stamp(path: Path) -> dict[str, Any] | None:
    """Return the stamp of a tuned model's folder; None for another folder."""
    file = path / STAMP
    if not file.is_file():
        return None
    try:
        stamp: dict[str, Any] = dict(json.loads(file.read_text(encoding="utf-8")))
        return {**stamp, "finished": stamp["finished"] is True, "facts": dict(stamp["facts"])}
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(f"{file} is damaged. Delete the folder, or give another.") from error


def find_step(path: Path) -> int:
    """Return the step in the name of a checkpoint or model that was kept."""
    return int(path.name.partition("-")[2])


def list_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a run, the last first; copies under other names are left out."""
    return sorted(list_numbered(folder, "checkpoint"), key=find_step, reverse=True)


def list_numbered(folder: Path, prefix: str) -> list[Path]:
    """Return the folders `prefix`-1, `prefix`-2 and so on within a folder, in any order."""
    return [
        path for path in folder.glob(f"{prefix}-*") if re.fullmatch(r"[^-]+-[0-9]{1,18}", path.name) and path.is_dir()
    ]


def is_sealed(path: Path) -> bool:
    """Return whether a checkpoint was written to its end."""
    return (path / MANIFEST).is_file()


def seal_checkpoint(path: Path) -> None:
    """Write the sizes and hashes of all files of a checkpoint, once they are on the disk."""
    (path / MANIFEST).unlink(missing_ok=True)
    sync_tree(path)
    files = {file.name: [file.stat().st_size, hash_file(file)] for file in sorted(path.iterdir()) if file.is_file()}
    with atomic_path(path / MANIFEST) as temporary:
        temporary.write_text(json.dumps(files, indent=1), encoding="utf-8")


def find_defect(path: Path) -> str | None:
    """Return what is wrong with a checkpoint, such as "optimizer.pt is missing"; None if it can be resumed."""
    if not is_sealed(path):
        return "it was not written to its end"
    try:
        files = dict(json.loads((path / MANIFEST).read_text(encoding="utf-8")))
        expected = {str(name): (int(size), str(digest)) for name, (size, digest) in files.items()}
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return f"its {MANIFEST} is damaged"
    for name in {**dict.fromkeys(TRAINER_FILES), **expected}:
        file = path / name
        if not file.is_file():
            return f"{name} is missing"
        if name not in expected or (file.stat().st_size, hash_file(file)) != expected[name]:
            return f"{name} is damaged"
    return None
