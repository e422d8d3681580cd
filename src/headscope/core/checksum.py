"""Checksums inside the files that headscope writes, and how damaged files are refused.

A file holds a tag and 64 digits, which are the SHA-256 of the whole file with zeros in their place. NetCDF files have
them at their end, zip archives in their comment, safetensors and JSON files in an entry. Files of older versions have
none.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headscope.core.errors import InputError

TAG = b"headscope-sha256:"
ZEROS = b"0" * 64
PLACEHOLDER = (TAG + ZEROS).decode()
"""What a format that has entries stores until `seal` fills in the checksum."""

TRAILER = b"\n" + TAG + ZEROS + b"\n"

UNCHECKED_SIZE = 2**28  # bytes that any file may expand to
MAX_EXPANSION = 200  # times its size that a larger file may expand to

CHANGED = "it changed since headscope wrote it (its checksum differs)."


class DamagedFile(ValueError):  # noqa: N818  (the name says what is wrong)
    """The content of a file cannot be what was written."""


def seal(content: bytes) -> bytes:
    """Write the checksum of content over its last placeholder."""
    start = content.rfind(TAG) + len(TAG)
    return content[:start] + _digest([content]) + content[start + len(ZEROS) :]


def seal_end(content: bytes) -> bytes:
    """Append a checksum to content of a format that ignores what follows its end."""
    return seal(content + TRAILER)


def seal_zip(content: bytes) -> bytes:
    """Add a checksum to a zip archive without a comment, as its comment."""
    return seal(content[:-2] + struct.pack("<H", len(TRAILER)) + TRAILER)


def verify(content: Any) -> bool:
    """Return whether content has a checksum; raise DamagedFile if it does not match the content.

    >>> verify(seal_end(b"content")), verify(b"content")
    (True, False)
    """
    start = content.rfind(TAG)
    if start < 0:
        return False
    start += len(TAG)
    with memoryview(content) as view, view[:start] as head, view[start + len(ZEROS) :] as tail:
        digest = hashlib.sha256(head)
        digest.update(ZEROS)
        digest.update(tail)
    if content[start : start + len(ZEROS)] != digest.hexdigest().encode():
        raise DamagedFile(CHANGED)
    return True


def fill(content: bytes, key: bytes, digits: bytes = ZEROS) -> bytes:
    """Return content with other digits in place of the checksum after every `key`."""
    head, *rest = content.split(key)
    return head + b"".join(key + digits + piece[len(ZEROS) :] for piece in rest)


def hash_contents(contents: Iterable[bytes]) -> bytes:
    """Return one checksum of several contents and their lengths; the contents hold placeholders."""
    return _digest(piece for content in contents for piece in (struct.pack("<Q", len(content)), content))


def _digest(pieces: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest().encode()


def may_expand(uncompressed: int, stored: int) -> bool:
    """Return whether a file may expand to this size in memory; a few bytes that fill the memory are an attack."""
    return uncompressed <= max(UNCHECKED_SIZE, MAX_EXPANSION * stored)


@contextmanager
def guard_reading(path: Path, problem: str, *, changed: str | None = None) -> Iterator[None]:
    """Turn every error of reading a file in this block into one sentence.

    A damaged file can raise anything: errors of zip, JSON, numpy, HDF5, and of the code that uses a wrong value.

    Parameters
    ----------
    path
        The file, for the sentence.
    problem
        What is wrong and what to do, such as "it is not a state that headscope wrote. Measure it again."
    changed
        What to do about a file whose checksum differs; `problem` by default.
    """
    try:
        yield
    except InputError:
        raise
    except PermissionError as error:
        raise InputError(f"Cannot open {path}: you may not read it. Ask its owner, or copy it.") from error
    except MemoryError as error:
        raise InputError(f"Cannot open {path}: there is not enough memory for it. Free some memory.") from error
    except DamagedFile as error:
        text = f"{CHANGED} {changed}" if changed is not None and str(error) == CHANGED else problem
        raise InputError(f"Cannot open {path}: {text}") from error
    except Exception as error:
        raise InputError(f"Cannot open {path}: {problem}") from error
