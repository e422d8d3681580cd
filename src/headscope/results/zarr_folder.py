"""Read and write Datasets as Zarr folders."""

from pathlib import Path
from typing import Any

import xarray as xr

from headscope.core.errors import InputError, OutputError, require_package

MARKER_FILES = (".zgroup", "zarr.json")
"""Files that every Zarr folder has, in format 2 and 3."""


def write_zarr(data: xr.Dataset, path: Path, part: Path) -> None:
    """Write a Dataset to the new folder `part`, which will replace `path`; refuse to replace any other kind of folder.

    Empty chunks are written too, so that a missing chunk is detected on reading. The files are written from memory: the
    threads of Zarr would go on writing after one of them has failed.
    """
    zarr = _require_zarr()
    if path.is_dir() and any(path.iterdir()) and not is_zarr(path):
        raise OutputError(f"Cannot write {path}: a folder of that name holds something else. Give another path.")
    files: dict[str, Any] = {}
    try:
        store = zarr.storage.MemoryStore(files)
        data.to_zarr(store, mode="w", zarr_format=2, consolidated=True, write_empty_chunks=True)
    except (ValueError, TypeError) as error:
        raise OutputError(f"This Dataset does not fit into a Zarr folder: {error}.") from error
    for name, content in files.items():
        (part / name).parent.mkdir(parents=True, exist_ok=True)
        (part / name).write_bytes(content.to_bytes())


def read_zarr(path: Path) -> xr.Dataset:
    """Read a whole Dataset from a folder."""
    zarr = _require_zarr()
    if not path.is_dir() or not is_zarr(path):
        existing = "a file" if path.is_file() else "a folder without Zarr data" if path.exists() else "nothing"
        raise InputError(f"Cannot open {path}: there is {existing} of that name. Give the path of a .zarr folder.")
    try:
        arrays = [array for _, array in zarr.open_group(path, mode="r").arrays()]
        missing = sum(array.nchunks - array.nchunks_initialized for array in arrays)  # Zarr would read them as empty
        data: xr.Dataset = xr.open_zarr(path, consolidated=None).load()
    except PermissionError as error:
        raise InputError(f"Cannot open {path}: you may not read it. Ask its owner, or copy it.") from error
    except Exception as error:  # every codec raises errors of its own
        raise InputError(f"Cannot open {path}: it is not a Zarr folder that headscope wrote.") from error
    if missing:
        raise InputError(f"Cannot open {path}: {missing} of its files are missing. Copy the whole folder again.")
    return data


def _require_zarr() -> Any:
    return require_package("zarr", "zarr", "A .zarr file", "   (or use .nc, which needs nothing more)")


def is_zarr(path: Path) -> bool:
    """Whether a path is a Zarr folder."""
    return any((path / name).is_file() for name in MARKER_FILES)
