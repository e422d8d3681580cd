"""Read and write Datasets as Zarr folders."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.core.checksum import (
    CHANGED,
    PLACEHOLDER,
    TAG,
    DamagedFile,
    fill,
    guard_reading,
    hash_contents,
    may_expand,
)
from headscope.core.errors import InputError, OutputError, require_package
from headscope.results.isolation import check_in_child
from headscope.results.netcdf import CHANGED_FILE, MARKER, read_values

MARKER_FILES = (".zgroup", "zarr.json")
"""Files that every Zarr folder has, in format 2 and 3."""

MARKED_FILES = (".zattrs", ".zmetadata")
"""Files that hold the checksum of all files, each computed with zeros in its place."""

METADATA_FILES = (".zarray", ".zmetadata", "zarr.json")
"""Files that name the codecs of arrays."""

KEY = f'"{MARKER}": "'.encode() + TAG
DAMAGED = "it is not a Zarr folder that headscope wrote, or it is damaged. Copy it again, or make it again."


def write_zarr(data: xr.Dataset, path: Path, temporary: Path) -> None:
    """Write a Dataset to the folder `temporary`, which will replace `path`; refuse to replace another kind of folder.

    Empty chunks are written too, so that a missing chunk is detected on reading. The files are written from memory: the
    threads of Zarr would go on writing after one of them has failed.
    """
    _require_zarr()
    if path.is_dir() and any(path.iterdir()) and not is_zarr(path):
        raise OutputError(f"Cannot write {path}: a folder of that name holds something else. Give another path.")
    marked = data.drop_encoding().assign_attrs({MARKER: PLACEHOLDER})  # that of another file does not fit
    try:
        files = _write_in_memory(marked)
        if not may_expand(data.nbytes, sum(map(len, files.values()))):
            files = _write_in_memory(marked, {name: {"compressors": None} for name in data.variables})
    except (ValueError, TypeError) as error:
        raise OutputError(f"This Dataset does not fit into a Zarr folder: {error}.") from error
    digest = _hash_files(files)
    for name, content in files.items():
        (temporary / name).parent.mkdir(parents=True, exist_ok=True)
        (temporary / name).write_bytes(fill(content, KEY, digest) if name in MARKED_FILES else content)


def _write_in_memory(data: xr.Dataset, encoding: Mapping[Any, Any] | None = None) -> dict[str, bytes]:
    """Return the files of a folder by name."""
    zarr, files = _require_zarr(), dict[str, Any]()
    options: Any = {"mode": "w", "zarr_format": 2, "consolidated": True, "write_empty_chunks": True}
    data.to_zarr(zarr.storage.MemoryStore(files), encoding=encoding, **options)
    return {name: content.to_bytes() for name, content in files.items()}


def read_zarr(path: Path) -> xr.Dataset:
    """Read a whole Dataset from a folder; verify its checksum, or for an older folder that it can be read."""
    _require_zarr()
    if not path.is_dir() or not is_zarr(path):
        existing = "a file" if path.is_file() else "a folder without Zarr data" if path.exists() else "nothing"
        raise InputError(f"Cannot open {path}: there is {existing} of that name. Give the path of a .zarr folder.")
    with guard_reading(path, DAMAGED, changed=CHANGED_FILE):
        _refuse_pickle(path)
        sealed = _verify_folder(path)
        if not sealed:
            check_in_child(path, load_zarr)
        data = load_zarr(path)
        if data.attrs.pop(MARKER, None) is not None and not sealed:
            raise DamagedFile(CHANGED)
        return data


def load_zarr(path: Path) -> xr.Dataset:
    """Read a whole Dataset from a folder, unless it declares more than it can hold."""
    zarr = _require_zarr()
    arrays = [array for _, array in zarr.open_group(path, mode="r").arrays()]
    stored = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    if not may_expand(int(sum(array.nbytes for array in arrays)), stored):
        raise DamagedFile("It expands to far more than its size.")
    missing = sum(array.nchunks - array.nchunks_initialized for array in arrays)  # Zarr would read them as empty
    if missing:
        raise InputError(f"Cannot open {path}: {missing} of its files are missing. Copy the whole folder again.")
    return read_values(xr.open_zarr(path, consolidated=None).load())


def _refuse_pickle(path: Path) -> None:
    """Raise InputError if an array is pickled: numcodecs may read it, which runs code of the file."""
    for file in path.rglob("*"):
        if file.name in METADATA_FILES and "pickle" in _list_codecs(json.loads(file.read_bytes())):
            raise InputError(
                f"Cannot open {path}: an array in it is pickled, and reading it could run code. headscope writes no "
                "such file: ask for one that it wrote."
            )


def _list_codecs(metadata: Any) -> Iterator[str]:
    """Yield what could be the name of a codec anywhere in metadata, without the prefix of its package."""
    if isinstance(metadata, dict):
        yield from (str(metadata[key]).rpartition(".")[2] for key in ("id", "name") if key in metadata)
    if isinstance(metadata, dict | list):
        for item in metadata.values() if isinstance(metadata, dict) else metadata:
            yield from _list_codecs(item)


def _verify_folder(path: Path) -> bool:
    """Return whether a folder has a checksum; raise DamagedFile if it does not match the files."""
    files = {file.relative_to(path).as_posix(): file.read_bytes() for file in _list_files(path)}
    marked = {name: files[name] for name in MARKED_FILES if KEY in files.get(name, b"")}
    if not marked:
        return False
    digest = _hash_files(files | {name: fill(content, KEY) for name, content in marked.items()})
    if any(content != fill(content, KEY, digest) for content in marked.values()):
        raise DamagedFile(CHANGED)
    return True


def _list_files(path: Path) -> list[Path]:
    """Return the files of Zarr: those that begin with .z, and the chunks, which are in folders."""
    return [
        file
        for file in path.rglob("*")
        if file.is_file() and (file.name.startswith(".z") or (file.parent != path and not file.name.startswith(".")))
    ]


def _hash_files(files: Mapping[str, bytes]) -> bytes:
    return hash_contents(item for name, content in sorted(files.items()) for item in (name.encode(), content))


def _require_zarr() -> Any:
    return require_package("zarr", "zarr", "A .zarr file", "   (or use .nc, which needs nothing more)")


def is_zarr(path: Path) -> bool:
    """Whether a path is a Zarr folder."""
    return any((path / name).is_file() for name in MARKER_FILES)
