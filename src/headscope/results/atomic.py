"""Write files and folders atomically."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from headscope.core.errors import OutputError

REPLACE = "Give another {}, or replace it with overwrite=True, in the shell --force."
"""What to do about a result, report or model that exists already."""


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` on success, and is removed on failure.

    An existing file or folder is unchanged until then.
    """
    part = path.with_name(f".headscope-{uuid4().hex[:12]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        if part.is_dir() and path.is_dir():
            _swap(part, path)
        else:
            part.replace(path)
    except OSError as error:
        raise OutputError(f"Cannot write {path}: {_reason(error)}.") from error
    finally:
        if part.is_dir():
            shutil.rmtree(part)
        elif part.exists():
            part.unlink()


def _swap(part: Path, path: Path) -> None:
    """Replace a folder by a new one; restore it if that fails."""
    older = path.with_name(f".headscope-{uuid4().hex[:12]}")
    path.rename(older)
    try:
        part.rename(path)
    except OSError:
        older.rename(path)
        raise
    shutil.rmtree(older)


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the disk is full. Free some space, or give a path on another disk"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "you may not write there. Give a path in a folder that is yours"
    return f"{(error.strerror or str(error)).lower()}. Give another path"
