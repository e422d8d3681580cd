"""Checkpoints of a fine-tuning: sealed when they are complete, verified before they are used."""

import json
import re
from pathlib import Path

from headscope.results.atomic import atomic_path, sync_tree
from headscope.results.hashes import hash_file

MANIFEST = "checkpoint.json"
"""The file with the size and hash of every other file of a checkpoint. It is written last."""

TRAINER_FILES = ("optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json", "training_args.bin")
"""Files of a checkpoint that only resuming needs, and that it does need."""


def find_step(path: Path) -> int:
    """Return the step in the name of a checkpoint or model that was kept."""
    return int(path.name.partition("-")[2])


def list_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a run, the last first; a copy that somebody made beside them is none."""
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
