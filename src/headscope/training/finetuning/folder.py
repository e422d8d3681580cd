"""The folder of a tuned model: checkpoints while it is trained, then the model and its stamp."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.core.errors import InputError, OutputError
from headscope.results.atomic import atomic_path
from headscope.results.resume import check_resumable, to_plain

STAMP = "finetune.json"
TRAINER_FILES = ("optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json", "training_args.bin")
"""Files of a checkpoint that only resuming needs."""

UNCOMPARED = frozenset({"guessed"})
"""Facts that may differ between two parts of one run."""


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

    def begin(self, facts: Mapping[str, Any], *, resume: bool, overwrite: bool = False) -> bool:
        """Write the facts of a new run, or check those of the run to resume; return whether that is finished.

        With `overwrite` and without `resume`, an earlier fine-tuning is deleted first.
        """
        stamp = read_stamp(self.path)
        if stamp is not None and overwrite and not resume:
            shutil.rmtree(self.path)
            stamp = None
        if stamp is None:
            if resume and self._has_files():
                raise InputError(
                    f"{self.path} cannot be resumed: it holds files, but no {STAMP} that describes them. Give another "
                    "folder."
                )
            self.write_stamp({"command": "hs.finetune", "finished": False, "facts": to_plain(facts)})
            return False
        remedy = "Tune as before, start over (overwrite=True, in the shell --force), or give another folder."
        check_resumable(self.path, stamp["facts"], facts, ignore=UNCOMPARED, remedy=remedy)
        return bool(stamp["finished"])

    def write_stamp(self, stamp: Mapping[str, Any]) -> None:
        """Write the stamp atomically."""
        with atomic_path(self.path / STAMP) as part:
            lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in stamp.items())
            part.write_text("{\n " + ",\n ".join(lines) + "\n}\n", encoding="utf-8")

    def find_checkpoint(self) -> tuple[Path | None, int]:
        """Return the last complete checkpoint and its step, (None, 0) without one; delete incomplete ones."""
        for path in sorted(self.checkpoints.glob("checkpoint-*"), key=_step, reverse=True):
            try:
                json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))  # the trainer writes it last
            except (OSError, ValueError):
                shutil.rmtree(path)
            else:
                return path, _step(path)
        return None, 0

    def finish(self, network: Any, tokenizer: Any, stamp: Mapping[str, Any]) -> None:
        """Write the model; the config, which makes a folder a model, and the stamp come last."""
        write_model(network, tokenizer, self.path)
        self.write_stamp(stamp)
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    def keep_epochs(self, steps: int) -> None:
        """Copy the model of each epoch to `epoch-N`; the checkpoints stay, so that the run can still be resumed."""
        for path in self.checkpoints.glob("checkpoint-*"):
            epoch, rest = divmod(_step(path), steps)
            if rest == 0:
                ignore = shutil.ignore_patterns(*TRAINER_FILES)
                shutil.copytree(path, self.path / f"epoch-{epoch}", ignore=ignore, dirs_exist_ok=True)

    def _has_files(self) -> bool:
        return self.path.is_dir() and any(self.path.iterdir())


def list_steps(path: Path) -> dict[int, Path]:
    """Return the folders of the models that were kept during a fine-tuning, by step."""
    return {_step(folder): folder for folder in sorted(path.glob("step-*"), key=_step)}


def write_model(network: Any, tokenizer: Any, folder: Path) -> None:
    """Write a model into a folder; its config comes last."""
    part = folder / ".part"
    try:
        network.save_pretrained(part)
        tokenizer.save_pretrained(part)
        for file in sorted(part.iterdir(), key=lambda file: file.name == "config.json"):
            file.replace(folder / file.name)
        part.rmdir()
    except OSError as error:
        raise OutputError(f"Cannot write the model to {folder}: {error.strerror or error}.") from error


def read_stamp(path: Path) -> dict[str, Any] | None:
    """Return the stamp of a tuned model's folder; None for another folder."""
    file = path / STAMP
    if not file.is_file():
        return None
    try:
        stamp: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file} is damaged. Delete the folder, or give another.") from error
    return stamp


def _step(path: Path) -> int:
    return int(path.name.partition("-")[2])
