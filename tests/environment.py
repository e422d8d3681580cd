"""What tests may not leave in the environment that runs them: truncated bytecode, or changed files."""

import marshal
import os
from collections.abc import Iterator
from pathlib import Path

HEADER = 16  # bytes of a .pyc file before its code


def find_damage(folder: Path, since: float) -> list[str]:
    """Return what is wrong with files of installed packages that were written after `since`, in seconds of the epoch.

    Python writes bytecode whenever it imports a module, which is fine as long as the file is complete. Everything else
    in such a folder is written when a package is installed, and never later.
    """
    damage = []
    for path in list_written(folder, since):
        if path.suffix == ".pyc" and not is_complete(path):
            damage.append(f"{path} is truncated")
        elif path.suffix != ".pyc" and path.parent.name != "__pycache__":  # numba caches its own files there
            damage.append(f"{path} was changed")
    return damage


def list_written(folder: Path, since: float) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent) / name
            if path.exists() and path.lstat().st_mtime >= since:  # another process may just have removed it
                yield path


def is_complete(path: Path) -> bool:
    try:
        marshal.loads(path.read_bytes()[HEADER:])
    except (EOFError, ValueError, TypeError):
        return False
    return True
