"""Write files and folders atomically and durably."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from headscope.core.errors import OutputError
from headscope.core.prose import format_bytes

REPLACE = "Give another {}, or replace it with overwrite=True, in the shell --force."
"""What to do about a result, report or model that exists already."""


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` on success, and is removed on failure.

    An existing file or folder is unchanged until then. The new one is on the disk before it takes the name, and the
    name is on the disk when this returns: a power loss leaves the older content or the new one, never an empty file.
    A folder takes two renames: a power loss between them leaves the older one beside it, under a hidden name. A link to
    a folder stays, and the folder is replaced.
    """
    try:
        target = path.resolve() if path.is_dir() else path
        temporary = temporary_path(target)
        try:
            make_folders(target.parent)
            yield temporary
            sync_tree(temporary)
            if temporary.is_dir() and target.is_dir():
                _swap(temporary, target)
            else:
                temporary.replace(target)
                sync_folder(target.parent)
        finally:
            if temporary.is_dir():
                shutil.rmtree(temporary)
            elif temporary.exists():
                temporary.unlink()
    except OSError as error:
        raise OutputError(f"Cannot write {path}: {explain_os_error(error, path)}.") from error


MAX_NAME = 240
"""Bytes of a name: file systems take 255, and checkpoints and locks have an ending more than their output."""

MAX_PATH = 4000
"""Bytes of a whole path: Linux takes 4,096."""


def check_name(path: Path) -> None:
    """Raise OutputError if a path is too long for a file system, before anything is computed."""
    longest = max(path.parts, key=lambda name: len(os.fsencode(name)), default="")
    for name, limit in ((longest, MAX_NAME), (str(path.absolute()), MAX_PATH)):
        if (size := len(os.fsencode(name))) > limit:
            what = "name" if limit == MAX_NAME else "path"
            raise OutputError(
                f"Cannot write to '{name[:40]}…': this {what} has {size:,} bytes, and at most {limit:,} are possible. "
                "Give a shorter one."
            )


def temporary_path(path: Path) -> Path:
    """Return a new hidden name beside a path."""
    return path.with_name(f".headscope-{uuid4().hex[:12]}")


def make_folders(folder: Path) -> None:
    """Create a folder and those above it that are missing, durably."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for created in missing:
        sync_folder(created.parent)


def sync_tree(path: Path) -> None:
    """Force the content of a file, or of all files and folders in a folder, to the disk."""
    if not path.is_dir():
        _sync_file(path)
        return
    for folder, _, names in os.walk(path):
        for name in names:
            _sync_file(Path(folder, name))
        sync_folder(Path(folder))


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk, on systems that can."""
    with suppress(OSError):  # Windows opens no folders, and some network file systems do not sync them
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sync_file(path: Path) -> None:
    with path.open("rb+") as file:  # Windows syncs only files that are open for writing
        os.fsync(file.fileno())


def _swap(new: Path, path: Path) -> None:
    """Replace a folder by a new one; restore it if that fails."""
    older = temporary_path(path)
    path.replace(older)
    try:
        new.replace(path)
    except OSError:
        older.replace(path)
        raise
    sync_folder(path.parent)
    shutil.rmtree(older)


def explain_os_error(error: OSError, path: Path) -> str:
    """Return why a file cannot be written and what to do, without the last full stop."""
    if error.errno == errno.ENOSPC:
        return f"the disk is full. {describe_room(path)}. Free some space, or give a path on another disk"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "you may not write there. Give a path in a folder that is yours"
    return f"{(error.strerror or str(error)).lower()}. Give another path"


def describe_room(path: Path) -> str:
    """Return how much room there is on the disk of a path, which need not exist yet."""
    existing = next(parent for parent in (path.resolve(), *path.resolve().parents) if parent.exists())
    return f"Its disk has {format_bytes(shutil.disk_usage(existing).free)} left"
