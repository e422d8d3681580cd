"""Failed writes of other libraries, the room on a disk, and folders that are deleted at once."""

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headscope.results.atomic import describe_room, temporary_path

NUMBERED = re.compile(r"\(os error (\d+)\)|\[Errno (\d+)\]")  # texts of Rust and of shutil.copytree
TORCH_WRITER = re.compile(r"inline_container|PytorchStreamWriter|iostream error")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@contextmanager
def raise_os_errors() -> Iterator[None]:
    """Raise OSError where a library reports a failed write in another way.

    safetensors and tokenizers have the number of the system's error in their text, torch.save has none.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if match := NUMBERED.search(str(error)):
            number = int(match[1] or match[2])
            raise OSError(number, os.strerror(number)) from error
        if TORCH_WRITER.search(str(error)):
            raise OSError(errno.EIO, "a file could not be written in full") from error
        raise


def explain_failed_write(error: OSError, folder: Path) -> tuple[str, str]:
    """Return why something cannot be written into a folder, and what to do about it."""
    if error.errno in FULL:
        reason = "the disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error)).lower()
        return f"{reason}. {describe_room(folder)}", "Free some space"
    return (error.strerror or str(error)).lower(), "Make it writable"


def remove_folder(folder: Path) -> None:
    """Rename a folder, then delete it: an interruption leaves it complete or gone under its own name."""
    hidden = temporary_path(folder)
    folder.replace(hidden)
    shutil.rmtree(hidden)
