"""The folder a tuned model goes to: begun, resumed, finished."""

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
LOOSE = ("optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json", "training_args.bin")
"""What a checkpoint holds only to go on from it."""

REASONS = frozenset({"guessed"})
"""Facts that may differ between two parts of one run."""


@dataclass(frozen=True)
class Folder:
    """Where one fine-tuning lives: checkpoints while it runs, a model and its stamp when it is done."""

    path: Path

    @property
    def stamp(self) -> dict[str, Any] | None:
        """What the folder says about itself, or None."""
        return stamp_of(self.path)

    @property
    def checkpoints(self) -> Path:
        """Where the trainer saves what it needs to go on."""
        return self.path / "checkpoints"

    def check(self, *, resume: bool) -> None:
        """Refuse a folder that holds something, or that cannot be written, before any work is done."""
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"Cannot write the model to {self.path}: it is a file. Give the path of a folder.")
        if not resume and self.path.is_dir() and any(self.path.iterdir()):
            stamp = self.stamp
            held = "other files" if stamp is None else _state(stamp)
            todo = "" if stamp is None else "Go on with it (resume=True, in the shell --resume), delete it, or g"
            raise InputError(f"{self.path} holds {held}. {todo or 'G'}ive another folder.")

    def begin(self, facts: Mapping[str, Any], *, resume: bool) -> bool:
        """Write down what is about to run, or see that it is what ran before; whether that is finished already."""
        stamp = self.stamp
        if stamp is None:
            if resume and self.path.is_dir() and any(self.path.iterdir()):
                raise InputError(
                    f"{self.path} cannot be resumed: it holds files, but no {STAMP} that says what they are. Give "
                    "another folder."
                )
            self.write({"command": "hs.finetune", "finished": False, "facts": to_plain(facts)})
            return False
        remedy = "Tune as before, or give another folder."
        check_resumable(self.path, stamp["facts"], facts, ignore=REASONS, remedy=remedy)
        return bool(stamp["finished"])

    def write(self, stamp: Mapping[str, Any]) -> None:
        """Put the stamp down, whole."""
        with atomic_path(self.path / STAMP) as part:
            lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in stamp.items())
            part.write_text("{\n " + ",\n ".join(lines) + "\n}\n", encoding="utf-8")

    def last(self) -> Path | None:
        """The last checkpoint that was written whole; those that were not are removed."""
        found = sorted(self.checkpoints.glob("checkpoint-*"), key=_step)
        for each in reversed(found):
            if _whole(each):
                return each
            shutil.rmtree(each)
        return None

    def finish(self, network: Any, tokenizer: Any, stamp: Mapping[str, Any]) -> None:
        """Put the model down; the config, by which a folder is known as a model, and the stamp come last."""
        part = self.path / ".part"
        try:
            network.save_pretrained(part)
            tokenizer.save_pretrained(part)
            for each in sorted(part.iterdir(), key=lambda file: file.name == "config.json"):
                each.replace(self.path / each.name)
            part.rmdir()
        except OSError as error:
            raise OutputError(f"Cannot write the model to {self.path}: {error.strerror or error}.") from error
        self.write(stamp)
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    def keep_epochs(self, steps: int) -> None:
        """Name the checkpoints at the ends of epochs, and leave of them only what makes a model."""
        for each in self.checkpoints.glob("checkpoint-*"):
            epoch, rest = divmod(_step(each), steps)
            if rest == 0:  # copied, so that a run that is stopped here can still go on
                loose = shutil.ignore_patterns(*LOOSE)
                shutil.copytree(each, self.path / f"epoch-{epoch}", ignore=loose, dirs_exist_ok=True)


def stamp_of(path: Path) -> dict[str, Any] | None:
    """What a tuned model's folder says about itself; None where it is no such folder."""
    file = path / STAMP
    if not file.is_file():
        return None
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file} is damaged. Delete the folder, or give another.") from error
    return found


def _state(stamp: Mapping[str, Any]) -> str:
    return "a finished fine-tuning" if stamp["finished"] else "a fine-tuning that was stopped"


def _step(path: Path) -> int:
    return int(path.name.partition("-")[2])


def _whole(path: Path) -> bool:
    """The trainer writes its own state last."""
    try:
        json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True
