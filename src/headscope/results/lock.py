"""Lock an output, so that two runs do not write it at the same time."""

import json
import os
import shlex
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from headscope.core.errors import DataWarning, OutputError
from headscope.results.atomic import explain_os_error, make_folders, temporary_path

WIDTH = 100  # characters of a command that are stored
_held: dict[Path, int] = {}
"""The locks of this process, by path, with the thread that holds each."""


@dataclass(frozen=True)
class Owner:
    """The process that writes an output."""

    host: str
    pid: int
    command: str
    started: str  # when it locked the output
    process_start: str = ""  # distinguishes it from a later process with the same pid; empty where unknown

    @property
    def alive(self) -> bool:
        """Whether it may still run; of another host this is unknown."""
        if self.host != socket.gethostname() or os.name == "nt":
            return True
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:  # it is another user's
            pass
        now = read_process_start(self.pid)
        return not (now and self.process_start) or now == self.process_start

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} ({self.command}), which started at {self.started}"


def lock_path(path: Path) -> Path:
    """Return the lock file of an output: hidden, beside it."""
    path = path.resolve()
    return path.with_name(f".{path.name}.lock")


@contextmanager
def lock_output(path: Path) -> Iterator[None]:
    """Hold the lock of an output in this block, so that no other run writes it.

    The lock is a file beside the output that names its owner. That of a process that was killed is taken over with a
    warning. A block inside another one of the same thread and path is free.

    Parameters
    ----------
    path
        The file or folder to write; it need not exist.

    Raises
    ------
    OutputError
        Another run holds the lock, or the folder cannot be written.
    """
    lock = lock_path(path)
    if _held.get(lock) == threading.get_ident():
        yield
        return
    owner = _describe_owner()
    _acquire(lock, path, owner)
    _held[lock] = threading.get_ident()
    try:
        yield
    finally:
        del _held[lock]
        if _read_owner(lock) == owner:
            lock.unlink(missing_ok=True)


def _acquire(lock: Path, path: Path, owner: Owner) -> None:
    """Create the lock file with its content in one step; take over one whose owner is dead."""
    draft = temporary_path(lock)
    try:
        make_folders(lock.parent)
        draft.write_text(json.dumps(asdict(owner)), encoding="utf-8")
        while not _create(draft, lock):
            other = _read_owner(lock)
            if other is not None and other.alive:
                raise OutputError(
                    f"Cannot write {path}: it is being written by {other}. Wait until that is done, or give another "
                    f"path. If nothing of that kind runs any more, delete {lock}."
                )
            _remove_stale(lock, path, other)
    except OSError as error:
        raise OutputError(f"Cannot write {path}: {explain_os_error(error, path)}.") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _create(draft: Path, lock: Path) -> bool:
    """Give a complete lock file its name; return False if there is one already."""
    try:
        os.link(draft, lock)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links, or a network that lost the answer
        if lock.exists() and lock.samefile(draft):
            return True
        try:
            with lock.open("x", encoding="utf-8") as file:
                file.write(draft.read_text(encoding="utf-8"))
        except FileExistsError:
            return False
    return True


def _remove_stale(lock: Path, path: Path, stale: Owner | None) -> None:
    """Remove the lock of a dead owner, unless another run was faster and the lock is now its own."""
    taken = temporary_path(lock)
    try:
        lock.replace(taken)
    except FileNotFoundError:
        return
    removed = _read_owner(taken) == stale
    if not removed:
        _create(taken, lock)
    taken.unlink()
    if removed:
        owner = "a process that left no name" if stale is None else str(stale)
        warnings.warn(
            f"{path} was locked by {owner} and no longer runs. Its lock is taken over.", DataWarning, stacklevel=5
        )


def _read_owner(lock: Path) -> Owner | None:
    """Return the owner of a lock; None without a lock, or if a power loss left the file empty."""
    try:
        owner = Owner(**json.loads(lock.read_text(encoding="utf-8"))) if lock.is_file() else None
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    if owner is None:
        return None
    return owner if isinstance(owner.pid, int) and isinstance(owner.host, str) else None


def _describe_owner() -> Owner:
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]) if sys.argv and sys.argv[0] else "python"
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    return Owner(socket.gethostname(), os.getpid(), command[:WIDTH], now, read_process_start(os.getpid()))


def read_process_start(pid: int) -> str:
    """Return what tells a process from a later one with the same pid; empty where the system does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    state, *_, start = stat.rpartition(")")[2].split()[:20]  # as in proc(5)
    return "dead" if state in "ZX" else f"{_boot_id()} {start}"


@cache
def _boot_id() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    return ""
