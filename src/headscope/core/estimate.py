"""An estimate: a quantity of a result with its interval, its count and its p-values, read by name."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.errors import InputError, unknown_name

ENDS = ("", "_low", "_high")
"""Endings of the names of a quantity, and of the ends of its interval."""


def interval_names(name: Hashable) -> list[str]:
    """Return the names of a quantity and of the ends of its interval.

    >>> interval_names("gain")
    ['gain', 'gain_low', 'gain_high']
    """
    return [f"{name}{end}" for end in ENDS]


def name_ends(name: Hashable, ends: Iterable[Any]) -> dict[str, Any]:
    """Return a value and the ends of its interval by their names.

    >>> name_ends("gain", (0.2, 0.1, 0.3))
    {'gain': 0.2, 'gain_low': 0.1, 'gain_high': 0.3}
    """
    return dict(zip(interval_names(name), ends, strict=True))


def with_interval(name: str, dims: Sequence[str], ends: Iterable[Any], **attrs: Any) -> dict[str, Any]:
    """Return the variables x, x_low and x_high of a Dataset; `attrs` are those of x.

    >>> with_interval("gain", (), (0.2, 0.1, 0.3), units="%")
    {'gain': ((), 0.2, {'units': '%'}), 'gain_low': ((), 0.1), 'gain_high': ((), 0.3)}
    """
    variables: dict[str, Any] = name_ends(name, ((dims, values) for values in ends))
    return {**variables, name: (*variables[name], attrs)} if attrs else variables


def take_interval(data: xr.Dataset, name: str, new_name: str) -> xr.Dataset:
    """Return a quantity and its interval under another name.

    >>> list(take_interval(xr.Dataset(name_ends("gain", (0.2, 0.1, 0.3)) | {"n": 7}), "gain", "change"))
    ['change', 'change_low', 'change_high']
    """
    return data[interval_names(name)].rename(name_ends(name, interval_names(new_name)))


@dataclass(frozen=True)
class Estimate:
    """A view of the variables `x`, `x_low`, `x_high`, `x_n`, `x_p`, `x_p_adjusted` and `x_significant` of a Dataset.

    What a result does not hold is None.
    """

    value: xr.DataArray
    low: xr.DataArray | None = None
    high: xr.DataArray | None = None
    n: xr.DataArray | None = None
    p: xr.DataArray | None = None
    p_adjusted: xr.DataArray | None = None
    significant: xr.DataArray | None = None

    @classmethod
    def from_fields(cls, data: xr.Dataset) -> "Estimate":
        """Return the estimate whose fields are the variables of a Dataset: `value`, `low`, `high` and so on.

        >>> Estimate.from_fields(xr.Dataset({"value": 0.42, "low": 0.39, "high": 0.45})).format()
        '0.42 [0.39, 0.45]'
        """
        others = [field.name for field in fields(cls) if field.name != "value"]
        return cls(data["value"], **{name: data.get(name) for name in others})

    @property
    def has_interval(self) -> bool:
        """Whether the interval is known."""
        return self.low is not None and self.high is not None

    @property
    def ends(self) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
        """The value and both ends of its interval."""
        if self.low is None or self.high is None:
            raise InputError(f"'{self.value.name}' has no interval here. Measure it with one.")
        return self.value, self.low, self.high

    @property
    def margins(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The distances from the value to both ends, as error bars take them; 0 where an end is not known."""
        value = self.value.values.astype(float)
        if self.low is None or self.high is None:
            return np.zeros((2, *value.shape))
        ends = np.stack([value - self.low.values.astype(float), self.high.values.astype(float) - value])
        margins: np.ndarray[Any, np.dtype[np.float64]] = np.nan_to_num(ends.clip(0))
        return margins

    def isel(self, **indices: Any) -> "Estimate":
        """Select by position in every variable that has the axis."""
        return self._map(lambda variable: variable.isel(indices, missing_dims="ignore"))

    def sel(self, **labels: Any) -> "Estimate":
        """Select by label in every variable that has the axis."""
        return self._map(
            lambda variable: variable.sel({dim: label for dim, label in labels.items() if dim in variable.dims})
        )

    def scale(self, factor: float) -> "Estimate":
        """Multiply the value and its interval, for percent."""
        low, high = (None if end is None else factor * end for end in (self.low, self.high))
        return replace(self, value=factor * self.value, low=low, high=high)

    def format(self, spec: str = ".3g") -> str:
        """Return a single value with its interval in brackets.

        >>> data = xr.Dataset({"x": 0.42, "x_low": 0.39, "x_high": 0.45})
        >>> estimate(data, "x").format(".2f")
        '0.42 [0.39, 0.45]'
        """
        text = format(float(self.value), spec)
        if self.low is None or self.high is None:
            return text
        return f"{text} [{format(float(self.low), spec)}, {format(float(self.high), spec)}]"

    def columns(self, title: str) -> dict[str, Any]:
        """Return the columns of a table, `title`, `title_low` and `title_high`, of an estimate with one axis."""
        ends = zip(ENDS, (self.value, self.low, self.high), strict=True)
        return {f"{title}{end}": variable.values for end, variable in ends if variable is not None}

    def frame(self, title: str, index: str) -> pd.DataFrame:
        """Return a table with a row for each label along the axis `index`."""
        labels = pd.Index(self.value[index].values, name=index)
        return pd.DataFrame(self.columns(title), index=labels)

    def _map(self, function: Any) -> "Estimate":
        return replace(self, **{name: function(value) for name, value in vars(self).items() if value is not None})


def estimate(data: xr.Dataset, name: Hashable) -> Estimate:
    """Return a quantity of a result with what accompanies it.

    >>> data = xr.Dataset({"x": ("head", [0.4, 0.2]), "x_low": ("head", [0.3, 0.1]), "x_high": ("head", [0.5, 0.3])})
    >>> estimate(data, "x").isel(head=1).format()
    '0.2 [0.1, 0.3]'
    """
    if name not in data:
        raise unknown_name("variable in this data", str(name), [str(variable) for variable in data.data_vars])
    names = {field.name: f"{name}_{field.name}" for field in fields(Estimate) if field.name != "value"}
    # looked for first: data.get would list the names that are similar to a missing one
    return Estimate(data[name], **{suffix: data[other] for suffix, other in names.items() if other in data})
