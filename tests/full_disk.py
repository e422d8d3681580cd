"""Python on a disk that takes no more."""

import os
import subprocess
import sys
from pathlib import Path

LIMIT = """
import resource, sys
def fill_disk(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
def free_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


def run_python(code: str, *arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run Python code in a process of its own, where after `fill_disk(size)` no file can grow beyond that size.

    It writes no bytecode: Python would write as much as it can, and leave truncated files in the environment.
    """
    root = Path(__file__).parents[1]
    path = os.pathsep.join([str(root / "src"), str(root)])
    return subprocess.run(
        [sys.executable, "-B", "-c", LIMIT + code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
