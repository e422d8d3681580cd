"""The folder for what can be made or fetched again."""

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """Return `$HEADSCOPE_CACHE`, or `headscope` in the user's cache; None if there is no home folder to hold one."""
    if folder := os.environ.get("HEADSCOPE_CACHE"):
        return Path(folder)
    if folder := os.environ.get("XDG_CACHE_HOME"):
        return Path(folder) / "headscope"
    try:
        return Path.home() / ".cache" / "headscope"
    except RuntimeError:  # the user has no home folder
        return None
