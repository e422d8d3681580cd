"""Datasets as Zarr: a folder of compressed pieces, which many tools and object stores read."""

from pathlib import Path
from typing import Any

import xarray as xr

from headscope.core.errors import InputError, OutputError, require_package

MARKS = (".zgroup", "zarr.json")
"""What lies in every Zarr folder, of format 2 and 3."""


def write_zarr(data: xr.Dataset, path: Path, part: Path) -> None:
    """A Dataset as the new folder `part`, which may take the place of an older Zarr folder at `path`, and of no other.

    Every piece is written, so that a lost one can be told from an empty one.
    """
    require_package("zarr", "zarr", "A .zarr file", "   (or use .nc, which needs nothing more)")
    if path.is_dir() and any(path.iterdir()) and not _is_zarr(path):
        raise OutputError(f"Cannot write {path}: a folder of that name holds something else. Give another path.")
    try:
        data.to_zarr(part, mode="w", zarr_format=2, consolidated=True, write_empty_chunks=True)
    except (ValueError, TypeError) as error:
        raise OutputError(f"This Dataset does not fit into a Zarr folder: {error}.") from error


def read_zarr(path: Path) -> xr.Dataset:
    """A whole Dataset from a folder, or a sentence on what is wrong with it."""
    zarr = require_package("zarr", "zarr", "A .zarr file", "   (or use .nc, which needs nothing more)")
    if not path.is_dir() or not _is_zarr(path):
        found = "a file" if path.is_file() else "a folder without Zarr data" if path.exists() else "nothing"
        raise InputError(f"Cannot open {path}: there is {found} of that name. Give the path of a .zarr folder.")
    try:
        lost = _lost(zarr.open_group(path, mode="r"))
        data: xr.Dataset = xr.open_zarr(path, consolidated=None).load()
    except PermissionError as error:
        raise InputError(f"Cannot open {path}: you may not read it. Ask its owner, or copy it.") from error
    except Exception as error:  # every codec has its own kinds of errors
        raise InputError(f"Cannot open {path}: it is not a Zarr folder that headscope wrote.") from error
    if lost:
        raise InputError(f"Cannot open {path}: {lost} of its files are missing. Copy the whole folder again.")
    return data


def _is_zarr(path: Path) -> bool:
    return any((path / mark).is_file() for mark in MARKS)


def _lost(group: Any) -> int:
    """How many pieces should be there and are not; Zarr would take them for empty ones."""
    return sum(array.nchunks - array.nchunks_initialized for _, array in group.arrays())
