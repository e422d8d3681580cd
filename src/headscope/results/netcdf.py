"""Read and write Datasets as NetCDF files."""

import mmap
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.core.checksum import CHANGED, DamagedFile, guard_reading, may_expand, seal_end, verify
from headscope.core.errors import InputError, OutputError
from headscope.results.isolation import check_in_child

COMPRESSION = {"zlib": True, "complevel": 5, "shuffle": True}
COMPRESSED = 4096  # bytes; a smaller variable would grow

MARKER = "headscope_checksum"
"""Attribute of a file with a checksum, so that a file that lost it is not taken for an older one without."""

SIGNATURE = b"\x89HDF\r\n\x1a\n"
DAMAGED = "it is not a NetCDF file that headscope wrote, or it is damaged. Copy it again, or make it again."
CHANGED_FILE = (
    "If it is damaged, copy or make it again. If you changed it by another program, open it with xarray.open_dataset, "
    "and write it with hs.save."
)


def write_netcdf(data: xr.Dataset, temporary: Path) -> None:
    """Write the file from memory: HDF5 kills Python when a disk is full, while bytes raise OSError."""
    numbers = {name: variable for name, variable in data.variables.items() if variable.dtype.kind in "fiu"}
    encoding = {name: {**COMPRESSION} for name, variable in numbers.items() if variable.nbytes >= COMPRESSED}
    marked = data.assign_attrs({MARKER: "SHA-256 of the file, at its end"})
    try:
        content = bytes(marked.to_netcdf(engine="h5netcdf", format="NETCDF4", encoding=encoding))
        if not may_expand(data.nbytes, len(content)):
            content = bytes(marked.to_netcdf(engine="h5netcdf", format="NETCDF4"))
    except (ValueError, TypeError) as error:  # text that HDF5 cannot hold, attributes other than text and numbers
        raise OutputError(f"This Dataset does not fit into a NetCDF file: {error}.") from error
    temporary.write_bytes(seal_end(content))


def read_netcdf(path: Path) -> xr.Dataset:
    """Read a whole file; verify its checksum, or where an older file has none, that it can be read at all."""
    if not path.is_file():
        existing = "a folder" if path.is_dir() else "nothing"
        raise InputError(f"Cannot open {path}: there is {existing} of that name. Give the path of a .nc file.")
    with guard_reading(path, DAMAGED, changed=CHANGED_FILE):
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content[: len(SIGNATURE)] != SIGNATURE:
                raise DamagedFile("It is no HDF5 file.")
            sealed = verify(content)
        if not sealed:
            check_in_child(path, load_netcdf)
        data = load_netcdf(path)
        if data.attrs.pop(MARKER, None) is not None and not sealed:
            raise DamagedFile(CHANGED)
        return data


def load_netcdf(path: Path) -> xr.Dataset:
    """Read a whole file, unless it declares more than it can hold."""
    import h5py

    with h5py.File(path, "r") as file:
        _check_own(file)
        size = sum(item.size * item.dtype.itemsize for item in file.values() if isinstance(item, h5py.Dataset))
    if not may_expand(size, path.stat().st_size):
        raise DamagedFile("It expands to far more than its size.")
    return read_values(xr.load_dataset(path, engine="h5netcdf"))


def _check_own(file: Any) -> None:
    """Raise DamagedFile where HDF5 would read content from other files: links and arrays may name any of the disk."""
    import h5py

    for name in file:
        link = file.get(name, getlink=True)
        item = file[name] if isinstance(link, h5py.HardLink) else None  # a soft link may lead through an external one
        if item is None or (isinstance(item, h5py.Dataset) and (item.external or item.is_virtual)):
            raise DamagedFile("It refers to other files.")


def read_values(data: xr.Dataset) -> xr.Dataset:
    """Read every value of a Dataset now: damaged text in an index would raise only when it is used."""
    for variable in data.variables.values():
        _ = variable.values
    return data
