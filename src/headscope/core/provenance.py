"""Provenance of results: versions, models, data, settings and the kind of result, stored in the Dataset."""

import json
from typing import TYPE_CHECKING, Any

from headscope.version import __version__

if TYPE_CHECKING:
    import xarray as xr


def stamp(data: "xr.Dataset", /, **facts: Any) -> "xr.Dataset":
    """Add facts to the provenance of a Dataset.

    >>> import xarray as xr
    >>> read_provenance(stamp(xr.Dataset(), model="bert-base-uncased"))["model"]
    'bert-base-uncased'
    """
    all_facts = {"version": __version__, **read_provenance(data), **facts}
    return data.assign_attrs(headscope=json.dumps(all_facts, sort_keys=True, ensure_ascii=False))


def drop_attrs(data: "xr.Dataset") -> "xr.Dataset":
    """Return a Dataset without any attributes, as its own `drop_attrs`, which assigns each variable by itself: slowly.

    >>> import xarray as xr
    >>> drop_attrs(stamp(xr.Dataset({"x": ((), 1.0, {"units": "m"})}), model="bert-base-uncased"))["x"].attrs
    {}
    """
    bare = data.copy()
    bare.attrs = {}
    for variable in bare.variables.values():
        variable.attrs = {}
    return bare


def read_provenance(data: "xr.Dataset") -> dict[str, Any]:
    """Return the provenance of a Dataset, which is stored as JSON in an attribute."""
    facts: dict[str, Any] = json.loads(data.attrs.get("headscope", "{}"))
    return facts
