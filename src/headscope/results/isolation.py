"""Read a file in a child process before it is read in this one.

HDF5 and the codecs of Zarr are C libraries that a damaged file can crash, or keep busy forever. A file with a checksum
is known to be what headscope wrote; one without is first read by a child, which may die of it.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from headscope.core.checksum import DamagedFile
from headscope.core.errors import InputError

SECONDS, SECONDS_PER_MEGABYTE = 5, 5  # of processor time, so that a busy computer does not matter
MEMORY, MEMORY_PER_BYTE = 2**32, 500
IDLE = 60  # seconds after which the child ends
LIBRARIES = {".nc": "h5netcdf", ".zarr": "zarr"}  # imported once, before the first file is read
CODE = "from headscope.results.isolation import serve; serve()"

_child: "subprocess.Popen[str] | None" = None
_parent_pid = 0
_lock = threading.Lock()


def check_in_child(path: Path, load: Callable[[Path], object]) -> None:
    """Call `load(path)` in a child process; raise DamagedFile if it raises there, crashes or does not end.

    An InputError there is raised here. `load` is a function of a module. The child stays for the next file, and ends
    when it is not used.
    """
    request = json.dumps([load.__module__, load.__qualname__, str(path.resolve())])
    with _lock:
        answer = _ask(request) or _ask(request)  # the first child may have ended for lack of work
    if answer == "failed":
        raise DamagedFile("It cannot be read.")
    if answer not in ("", "read"):
        raise InputError(json.loads(answer))


def _ask(request: str) -> str:
    """Return the child's answer as JSON: "read", "failed" or the text of an InputError; empty without a child."""
    global _child, _parent_pid
    try:
        if _child is None or _child.poll() is not None or _parent_pid != os.getpid():
            _stop()
            _child, _parent_pid = _start(), os.getpid()
        stdin, stdout = cast(Any, _child.stdin), cast(Any, _child.stdout)
        stdin.write(request + "\n")
        stdin.flush()
        if not stdout.readline():
            raise BrokenPipeError
        answer: str = stdout.readline().strip()
    except OSError:
        _stop()
        return ""
    except BaseException:  # such as KeyboardInterrupt: the answer that is still to come is not that of the next file
        _stop()
        raise
    return answer or "failed"


def _start() -> "subprocess.Popen[str]":
    if not sys.executable:
        raise FileNotFoundError("Python has no executable here.")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-c", CODE], text=True, encoding="utf-8", env=environment, **pipes)


@atexit.register
def _stop() -> None:
    global _child
    child, _child = _child, None
    if child is not None and _parent_pid == os.getpid():
        child.kill()
        child.communicate()


def serve() -> None:
    """Read the files that the parent names, one a line; this is the child.

    Each is read in a copy of this process (fork), which takes a moment, so that no file affects the next.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    while line := _wait_for_line():
        print("begun", file=answers, flush=True)
        module, name, path = json.loads(line)
        load = getattr(import_module(module), name)
        with suppress(ImportError):
            import_module(LIBRARIES.get(Path(path).suffix.lower(), module))
        if not hasattr(os, "fork"):
            _answer(load, Path(path), answers)
        elif (pid := os.fork()) == 0:
            _limit(Path(path))
            _answer(load, Path(path), answers)
            os._exit(0)
        elif os.waitpid(pid, 0)[1]:
            print("failed", file=answers, flush=True)


def _wait_for_line() -> str:
    """Return a line of the parent; end this process if there is none for long."""
    if hasattr(signal, "alarm"):
        signal.alarm(IDLE)
    line = sys.stdin.readline()
    if hasattr(signal, "alarm"):
        signal.alarm(0)
    return line


def _answer(load: Callable[[Path], object], path: Path, answers: Any) -> None:
    answer = "read"
    try:
        load(path)
    except InputError as error:
        answer = json.dumps(str(error))
    except Exception:
        answer = "failed"
    print(answer, file=answers, flush=True)


def _limit(path: Path) -> None:
    """Limit the memory and time of this process, so that a damaged file cannot exhaust the computer."""
    if os.name == "nt":
        return
    import resource

    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    for resource_type, limit in (
        (resource.RLIMIT_CPU, SECONDS + SECONDS_PER_MEGABYTE * size // 2**20),
        (resource.RLIMIT_AS, MEMORY + MEMORY_PER_BYTE * size),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(resource_type)
        resource.setrlimit(resource_type, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
