"""The sets of heads of an ablation in one row, under their names."""

import xarray as xr


def stack_sets(data: xr.Dataset) -> xr.Dataset:
    """Return the changes along `set`, named as sets of heads are written, without those of missing heads."""
    dims = [str(dim) for dim in data["change"].dims]
    names = [name for name in data.data_vars if set(data[name].dims) == set(dims)]
    flat = data[names].stack(set=dims, create_index=False)
    labels = [
        _name_set(dict(zip(dims, cell, strict=True))) for cell in zip(*(flat[dim].values for dim in dims), strict=True)
    ]
    return flat.assign_coords(set=labels).dropna("set", subset=["change"])


def _name_set(cell: dict[str, object]) -> str:
    if "heads" in cell:
        return str(cell["heads"])
    return f"L{cell['layer']}" + (f"H{cell['head']}" if "head" in cell else "")
