"""Read and write Datasets as .npz files, the format of the steps of a study."""

import io
import json
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.results.atomic import atomic_path


def write_npz(data: xr.Dataset, path: Path) -> Path:
    """Write a Dataset atomically as numpy arrays and one JSON string, without pickle."""
    variables, arrays = {}, {}
    for index, (name, variable) in enumerate(data.variables.items()):
        coord = name in data.coords
        variables[str(name)] = {"dims": list(variable.dims), "attrs": dict(variable.attrs), "coord": coord}
        arrays[f"v{index}"] = variable.values.astype(np.str_) if variable.dtype == object else variable.values
    about: dict[str, Any] = {"attrs": dict(data.attrs), "variables": variables}
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, about=np.array(json.dumps(about, ensure_ascii=False)), **arrays)
    with atomic_path(path) as part:
        part.write_bytes(file.getvalue())
    return path


def read_npz(path: Path) -> xr.Dataset:
    """Read a Dataset that `write_npz` wrote."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            variables = {
                name: (entry["dims"], file[f"v{index}"], entry["attrs"])
                for index, (name, entry) in enumerate(about["variables"].items())
            }
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise InputError(
            f"Cannot open {path}: it is no step of a study that headscope wrote, or it is damaged. Delete it, and run "
            "the study again."
        ) from error
    coords = [name for name, entry in about["variables"].items() if entry["coord"]]
    return xr.Dataset(variables, attrs=about["attrs"]).set_coords(coords)
