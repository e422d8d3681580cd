"""Cache tags on disk, by a hash of the texts and the tagger's name.

The folder is $HEADSCOPE_CACHE, or headscope in the user's cache folder. A file that cannot be read is written again. If
the folder is not writable, nothing is cached.
"""

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from headscope.core.checksum import seal_zip
from headscope.core.npz import pack_arrays, unpack_arrays
from headscope.data.tagging.tagger import Item, Tagger, Tags

MINIMUM = 20_000
"""Data with fewer characters than this are not cached."""


def tag_cached(items: Sequence[Item], tagger: Tagger) -> list[Tags]:
    """Return the tags of these items, from the cache if it has them."""
    size = sum(len(item) if isinstance(item, str) else sum(map(len, item)) for item in items)
    path = cache_path(items, tagger.name) if size >= MINIMUM else None
    if path is None:
        return tagger(items)
    tags = _read(path, items)
    if tags is None:
        tags = tagger(items)
        _write(path, tags)
    return tags


def cache_path(items: Sequence[Item], name: str) -> Path | None:
    """Return the file for these items and this tagger, or None if there is no cache folder."""
    digest = hashlib.sha256(name.encode())
    for item in items:
        words = [item] if isinstance(item, str) else ["", *item]
        digest.update("\x00".join(words).encode(errors="surrogatepass") + b"\x01")
    folder = _cache_folder()
    return None if folder is None else folder / "tags" / f"{digest.hexdigest()[:32]}.npz"


def _cache_folder() -> Path | None:
    if folder := os.environ.get("HEADSCOPE_CACHE"):
        return Path(folder)
    if folder := os.environ.get("XDG_CACHE_HOME"):
        return Path(folder) / "headscope"
    try:
        return Path.home() / ".cache" / "headscope"
    except RuntimeError:  # the user has no home folder
        return None


def _write(path: Path, items: Sequence[Tags]) -> None:
    names = sorted({tag for item in items for tag in item.tags})
    index = {tag: number for number, tag in enumerate(names)}
    arrays: dict[str, Any] = {
        "names": np.array(names, dtype=np.str_),
        "counts": np.array([len(item.tags) for item in items], dtype=np.int64),
        "tags": np.array([index[tag] for item in items for tag in item.tags], dtype=np.uint8),
        "split": np.array([item.spans is not None for item in items], dtype=np.bool_),
        "spans": np.array([span for item in items for span in item.spans or ()], dtype=np.int32).reshape(-1, 2),
    }
    partial = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(seal_zip(pack_arrays(arrays, compress=True)))
        partial.replace(path)
    except OSError:  # the disk is full or the folder not writable: go on without a cache
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _read(path: Path, items: Sequence[Item]) -> list[Tags] | None:
    """Return the tags of a file, or None if it is missing or damaged."""
    try:
        data = unpack_arrays(path.read_bytes())
        names, counts, tags, split, spans = (data[key] for key in ("names", "counts", "tags", "split", "spans"))
        if len(counts) != len(items) or counts.sum() != len(tags) or counts[split].sum() != len(spans):
            return None
        tag, span = iter(names[tags].tolist()), map(tuple, spans.tolist())
        sizes = zip(counts.tolist(), split.tolist(), strict=True)
        return [Tags(tuple(islice(tag, n)), tuple(islice(span, n)) if has_spans else None) for n, has_spans in sizes]
    except (OSError, ValueError, KeyError, IndexError):
        return None
