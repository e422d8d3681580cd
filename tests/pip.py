"""pip, as the tests use it."""

import os
import subprocess
import sys


def pip(verb, *words):
    """Build with what is installed here, fetch nothing, and show what went wrong."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    command = [sys.executable, "-m", "pip", verb, "-q", "--no-build-isolation", "--no-deps", *map(str, words)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
