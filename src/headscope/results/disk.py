"""What disks do beyond one file: folders that are deleted at once."""

import shutil
from pathlib import Path

from headscope.results.atomic import temporary_path


def remove_folder(folder: Path) -> None:
    """Delete a folder under another name: a run that is killed meanwhile leaves all of it or nothing under its own."""
    hidden = temporary_path(folder)
    folder.replace(hidden)
    shutil.rmtree(hidden)
