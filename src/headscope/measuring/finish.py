"""From states to a Dataset that says where it comes from."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.catalog import statistics
from headscope.core.statistic import Statistic
from headscope.measuring.observe import States
from headscope.results.stamp import stamp


def finished(states: States, facts: Mapping[str, Any]) -> xr.Dataset:
    """All statistics along `lens` and `site`; a head that a lens does not have is NaN there, with n = 0."""
    lenses = list(dict.fromkeys(lens for lens, _ in states))
    parts = []
    for lens in lenses:
        found = [_finish(spec, state) for (seen, spec), state in states.items() if seen == lens]
        together = xr.merge(found, join="outer", compat="no_conflicts")
        parts.append(together.expand_dims({"lens": [lens], "site": [facts["site"]]}))
    data = xr.concat(parts, "lens", join="outer") if len(parts) > 1 else parts[0]
    return stamp(_counted(data), **facts)


def _finish(spec: str, state: Any) -> xr.Dataset:
    statistic: Statistic = statistics.make(spec)
    return statistic.finish(state)


def _counted(data: xr.Dataset) -> xr.Dataset:
    """Counts are whole numbers, also where joining left a gap."""
    counts = [str(name) for name in data.data_vars if str(name).endswith("_n")]
    return data.assign({name: data[name].fillna(0).astype(np.int64) for name in counts})
