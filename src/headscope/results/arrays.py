"""Datasets as plain arrays in one file: what a study keeps on its way, readable wherever numpy is."""

import io
import json
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.results.atomic import atomic_path


def write(data: xr.Dataset, path: Path) -> Path:
    """Write a Dataset as .npz; the file appears whole, and holds arrays and one line of JSON, no pickle."""
    about: dict[str, Any] = {"attrs": dict(data.attrs), "variables": {}}
    arrays = {}
    for place, (name, each) in enumerate(data.variables.items()):
        about["variables"][str(name)] = {
            "dims": list(each.dims),
            "attrs": dict(each.attrs),
            "coord": name in data.coords,
        }
        arrays[f"v{place}"] = each.values.astype(np.str_) if each.dtype == object else each.values
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, about=np.array(json.dumps(about, ensure_ascii=False)), **arrays)
    with atomic_path(path) as part:
        part.write_bytes(file.getvalue())
    return path


def read(path: Path) -> xr.Dataset:
    """Read what `write` wrote."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            held = {
                name: (each["dims"], file[f"v{place}"], each["attrs"])
                for place, (name, each) in enumerate(about["variables"].items())
            }
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise InputError(
            f"Cannot open {path}: it is no step of a study that headscope wrote, or it is damaged. Delete it, and run "
            "the study again."
        ) from error
    coords = {name for name, each in about["variables"].items() if each["coord"]}
    return xr.Dataset(
        {name: each for name, each in held.items() if name not in coords},
        coords={name: each for name, each in held.items() if name in coords},
        attrs=about["attrs"],
    )
