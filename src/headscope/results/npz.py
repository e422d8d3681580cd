"""Read and write Datasets as .npz files, the format of the steps of a study."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.checksum import DamagedFile, guard_reading, seal_zip
from headscope.core.npz import pack_arrays, unpack_arrays
from headscope.results.atomic import atomic_path

DAMAGED = "it is no step of a study that headscope wrote, or it is damaged. Delete it, and run the study again."


def write_npz(data: xr.Dataset, path: Path) -> Path:
    """Write a Dataset atomically as numpy arrays and one JSON string, without pickle."""
    variables, arrays = {}, {}
    for index, (name, variable) in enumerate(data.variables.items()):
        coord = name in data.coords
        variables[str(name)] = {"dims": list(variable.dims), "attrs": dict(variable.attrs), "coord": coord}
        arrays[f"v{index}"] = variable.values.astype(np.str_) if variable.dtype == object else variable.values
    about: dict[str, Any] = {"attrs": dict(data.attrs), "variables": variables}
    text = np.array(json.dumps(about, ensure_ascii=False))
    content = seal_zip(pack_arrays({"about": text, **arrays}, compress=True))
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)
    return path


def read_npz(path: Path) -> xr.Dataset:
    """Read a Dataset that `write_npz` wrote, and verify its checksum."""
    with guard_reading(path, DAMAGED):
        arrays = unpack_arrays(path.read_bytes())
        about = json.loads(str(arrays.pop("about")))
        entries = about["variables"]
        if set(arrays) != {f"v{index}" for index in range(len(entries))}:
            raise DamagedFile("It holds other arrays than it describes.")
        variables = {
            name: (entry["dims"], arrays[f"v{index}"], entry["attrs"])
            for index, (name, entry) in enumerate(entries.items())
        }
        coords = [name for name, entry in entries.items() if entry["coord"]]
        return xr.Dataset(variables, attrs=about["attrs"]).set_coords(coords)
