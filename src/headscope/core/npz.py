"""Named arrays as the bytes of an .npz file, read without trust in what they declare."""

import io
from collections.abc import Mapping
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.lib import format as npy

from headscope.core.checksum import DamagedFile, may_expand, verify

Array = np.ndarray[Any, np.dtype[Any]]
ENDING = ".npy"
READ_HEADER = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def pack_arrays(arrays: Mapping[str, Array], *, compress: bool = False) -> bytes:
    """Return arrays in the format of `numpy.savez`, without pickle; the same arrays give the same bytes.

    Arrays that would be compressed further than `unpack_arrays` accepts are not compressed.
    """
    if pickled := [name for name, array in arrays.items() if array.dtype.hasobject]:
        raise ValueError(f"The array '{pickled[0]}' holds objects, which would have to be pickled.")
    file = io.BytesIO()
    save: Any = np.savez_compressed if compress else np.savez
    save(file, **arrays)
    content = file.getvalue()
    if compress and not may_expand(sum(array.nbytes for array in arrays.values()), len(content)):
        return pack_arrays(arrays)
    return content


def unpack_arrays(content: bytes) -> dict[str, Array]:
    """Return the arrays of `pack_arrays`; raise DamagedFile for anything else.

    A checksum is verified first. No array is allocated before its size was compared with what the file holds.
    """
    verify(content)
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if not may_expand(sum(member.file_size for member in members), len(content)):
                raise DamagedFile("It expands to far more than its size.")
            if len({member.filename for member in members}) < len(members):
                raise DamagedFile("Two of its arrays have one name.")
            return {member.filename.removesuffix(ENDING): _read_array(archive.read(member)) for member in members}
    except DamagedFile:
        raise
    except Exception as error:  # zip, zlib and numpy raise a dozen kinds
        raise DamagedFile(f"It is no archive of arrays: {error}") from error


def _read_array(content: bytes) -> Array:
    file = io.BytesIO(content)
    shape, fortran, dtype = READ_HEADER[npy.read_magic(file)](file)
    start, count = file.tell(), 1
    for size in shape:
        count *= size
    if dtype.hasobject or not dtype.itemsize or min(shape, default=0) < 0:
        raise DamagedFile(f"It declares an array of {dtype} and shape {shape}.")
    if start + count * dtype.itemsize != len(content):
        raise DamagedFile(f"It declares {count} values of {dtype}, but holds {len(content) - start} bytes.")
    return np.ndarray(shape, dtype, content, start, order="F" if fortran else "C").copy(order="K")
