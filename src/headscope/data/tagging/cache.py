"""Tags that were made before, kept on disk by the fingerprint of the data and the tagger's name.

The folder is $HEADSCOPE_CACHE, or headscope in the user's cache folder. A file that cannot be read is made again, and
where nothing can be written, tags are made each time.
"""

import hashlib
import os
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from headscope.data.tagging.tagger import Item, Tagged, Tagging

WORTH = 20_000
"""Texts with fewer characters than this take no time, and no file."""


def kept(items: Sequence[Item], tagging: Tagging) -> list[Tagged]:
    """The tags of these items, from disk where they were made before."""
    place = place_of(items, tagging.name) if sum(map(_length, items)) >= WORTH else None
    found = _read(place, items) if place is not None else None
    if found is None:
        found = tagging(items)
        if place is not None:
            _write(place, found)
    return found


def place_of(items: Sequence[Item], name: str) -> Path | None:
    """The file for exactly these items and this tagger; None where there is no folder for it."""
    digest = hashlib.sha256(name.encode())
    for item in items:
        words = [item] if isinstance(item, str) else ["", *item]
        digest.update("\x00".join(words).encode(errors="surrogatepass") + b"\x01")
    folder = _folder()
    return None if folder is None else folder / "tags" / f"{digest.hexdigest()[:32]}.npz"


def _folder() -> Path | None:
    if given := os.environ.get("HEADSCOPE_CACHE"):
        return Path(given)
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "headscope"
    try:
        return Path.home() / ".cache" / "headscope"
    except RuntimeError:  # a user without a home
        return None


def _length(item: Item) -> int:
    return len(item) if isinstance(item, str) else sum(map(len, item))


def _write(place: Path, found: Sequence[Tagged]) -> None:
    names = sorted({tag for each in found for tag in each.tags})
    number = {tag: index for index, tag in enumerate(names)}
    table: dict[str, Any] = {
        "names": np.array(names, dtype=np.str_),
        "counts": np.array([len(each.tags) for each in found], dtype=np.int64),
        "tags": np.array([number[tag] for each in found for tag in each.tags], dtype=np.uint8),
        "split": np.array([each.spans is not None for each in found], dtype=np.bool_),
        "spans": np.array([span for each in found for span in each.spans or ()], dtype=np.int32).reshape(-1, 2),
    }
    part = place.with_name(f"{place.name}.{uuid4().hex}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **table)
        part.replace(place)  # whole or not at all
    except OSError:  # a full disk, or a folder that is not ours: the tags are there all the same
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _read(place: Path, items: Sequence[Item]) -> list[Tagged] | None:
    """What the file holds, or None where it is not there or not whole."""
    try:
        with place.open("rb") as file, np.load(file, allow_pickle=False) as held:
            names, counts, tags, cut, spans = (held[key] for key in ("names", "counts", "tags", "split", "spans"))
        whole = len(counts) == len(cut) == len(items) and counts.sum() == len(tags) and counts[cut].sum() == len(spans)
        return _parted(counts, cut, names[tags].tolist(), list(map(tuple, spans.tolist()))) if whole else None
    except (OSError, ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile, zlib.error):
        return None


def _parted(counts: Any, cut: Any, tags: list[str], spans: list[Any]) -> list[Tagged]:
    """Each item's own tags, and its spans where it was split."""
    found, at, stands = [], 0, 0
    for many, split in zip(counts.tolist(), cut.tolist(), strict=True):
        own = tuple(spans[stands : stands + many]) if split else None
        found.append(Tagged(tuple(tags[at : at + many]), own))
        at, stands = at + many, stands + many * split
    return found
