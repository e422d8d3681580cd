"""Statistics with one value per example: their states, means and confidence intervals."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.errors import InputError
from headscope.core.estimate import interval_names
from headscope.core.example import Example
from headscope.core.spec import entry_name, to_spec
from headscope.core.state import Array, Labels, Leaf, Moments, Rows, State, Total
from headscope.core.statistic import Statistic
from headscope.core.tokens import Tokens
from headscope.core.transfer import copy_to_device
from headscope.maps.rows import find_nan_maps
from headscope.uncertainty.intervals import student_margin


class PerExample(Statistic):
    """A statistic with one value per example for each layer and head, and for the labels of further axes.

    The result is the mean over examples, with standard deviation, count and confidence interval. Every example has
    the same weight, whatever its length.

    >>> class Largest(hs.PerExample):
    ...     def values(self, batch):
    ...         return {"largest": batch.focus.weights.amax((-2, -1))}  # batch layer head
    >>> data = hs.measure(model, ["The cat sat down.", "It rained."], statistics=[Largest()], progress=False)
    >>> data["largest"].dims, sorted(data.data_vars)
    (('lens', 'site', 'layer', 'head'), ['largest', 'largest_high', 'largest_low', 'largest_n', 'largest_sd'])
    """

    units: ClassVar[str] = ""
    """The units of its values, written into the result and shown by figures."""

    quantities: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Readable names of its variables, where the variable's own name is not one; the result's `long_name`."""

    def axes(self, batch: Batch) -> Mapping[str, Sequence[Any]]:  # noqa: ARG002
        """Return further axes after layer and head, with their labels.

        An axis named `head` replaces the heads of the measured maps.

        Parameters
        ----------
        batch
            Examples and their maps.
        """
        return {}

    def tokens(self, examples: Sequence[Example], queries: Tokens, keys: Tokens) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return what it needs to know about the tokens, as small CPU tensors, computed once for all layers.

        With a GPU this runs on the host while the model computes.

        Parameters
        ----------
        examples
            The examples of a batch.
        queries, keys
            Their tokens.
        """
        return ()

    def token_tables(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the result of `tokens` for a batch, on the device of its maps.

        Parameters
        ----------
        batch
            Examples and their maps.
        """
        maps, cached = batch.focus, batch.token_tables.get(to_spec(self))
        if cached is not None:
            return cached
        return copy_to_device(maps.visible[0].device, self.tokens(batch.examples, maps.queries, maps.keys))

    @abstractmethod
    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return each variable as `batch layer head …`; NaN where an example has no value.

        The first variable has the statistic's own name; others are called `name_something`.

        Parameters
        ----------
        batch
            Examples and their maps.
        """

    def observe(self, batch: Batch) -> State:
        """Return the moments of every variable over the examples of a batch; maps with NaN are left out and counted.

        Parameters
        ----------
        batch
            Examples and their maps.
        """
        values, labels = compute_values(self, batch)
        nan = find_nan_maps(batch.focus)
        values = {name: drop_nan(table, nan.to(table.device)) for name, table in values.items()}
        values = {name: average_parts(table, batch.examples) for name, table in values.items()}
        return make_state(self, values, list_wholes(batch.examples), labels, nan=any_part(nan, batch.examples))

    def finish(self, state: State) -> xr.Dataset:
        """Return for each variable x its mean x, and x_sd, x_n, x_low, x_high (95 % interval) and any x_rows.

        Where maps with NaN were left out, x_nan counts them.

        Parameters
        ----------
        state
            The sum of the states of all batches.
        """
        attributes = {"units": self.units} if self.units else {}
        dims = tuple(state.labels)
        variables: dict[str, Any] = {}
        coords: dict[str, Any] = {name: list(labels) for name, labels in state.labels.items()}
        for name, leaf in state.leaves.items():
            if isinstance(leaf, Moments):
                for key, values in _summarize(name, leaf).items():
                    variables[key] = (dims, values, {} if key == f"{name}_n" else attributes)
            elif isinstance(leaf, Total):
                if leaf.sum.any():
                    variables[name] = (dims[: leaf.sum.ndim], leaf.sum)
            elif isinstance(leaf, Rows):
                coords["example"] = leaf.ids.astype(object)
                variables[name] = (("example", *dims), leaf.values, attributes)
        data = xr.Dataset(variables, coords=coords)
        for variable, quantity in self.quantities.items():
            if variable in data:
                data[variable].attrs["long_name"] = quantity
        return data


def compute_values(statistic: PerExample, batch: Batch) -> tuple[Mapping[str, Tensor], Labels]:
    """Return the values of a statistic with the labels of their axes; raise InputError if they do not fit."""
    if batch.focus.queries.position is not None and not statistic.row_wise:
        raise InputError(
            f"The statistic '{to_spec(statistic)}' needs whole maps, but these hold "
            f"{batch.focus.queries.real.shape[1]:,} of their queries. Capture without rows."
        )
    values = statistic.values(batch)
    return values, check_values(statistic, values, batch)


def check_values(statistic: PerExample, values: Any, batch: Batch) -> Labels:
    """Return the labels of the axes of values; raise InputError if the values do not fit."""
    labels, name = {"layer": batch.focus.layers, "head": batch.focus.heads, **statistic.axes(batch)}, to_spec(statistic)
    if not isinstance(values, Mapping) or not all(isinstance(table, Tensor) for table in values.values()):
        raise InputError(
            f"The statistic '{name}' must return tensors by name, but returned {_describe_type(values)}. Return "
            f"{{'{entry_name(type(statistic))}': tensor}}."
        )
    expected = [len(batch.examples), *map(len, labels.values())]
    for variable, table in values.items():
        if list(table.shape) != expected:
            raise InputError(
                f"The statistic '{name}' returned '{variable}' of shape {list(table.shape)}, but {expected} is "
                f"expected: {', '.join(('batch', *labels))}."
            )
    return labels


def make_state(
    statistic: PerExample,
    values: Mapping[str, Tensor | Array],
    ids: Sequence[str],
    labels: Labels,
    *,
    rows: bool = False,
    nan: Tensor | None = None,
) -> State:
    """Return the state of a batch: the moments of every variable, and with `rows` the value of every example.

    `nan` says which maps were left out, `batch layer head`; the state counts them for each variable.
    """
    leaves: dict[str, Leaf] = {}
    heads = tuple(map(len, labels.values()))[:2]
    count = np.zeros(heads, np.int64) if nan is None else _count_nan(nan, heads)
    for name, value in values.items():
        table = np.asarray(value.cpu() if isinstance(value, Tensor) else value, dtype=np.float64)
        leaves[name] = Moments.from_values(table)
        leaves[f"{name}_nan"] = Total(count)
        if rows:
            leaves[f"{name}_rows"] = Rows.from_values(np.array(ids, dtype=np.str_), table)
    return State(to_spec(statistic), leaves, {name: list(axis) for name, axis in labels.items()})


def list_wholes(examples: Sequence[Example]) -> list[str]:
    """Return the ids of examples; those of windows of one picture are one, that of the picture.

    >>> list_wholes([Example("0.0", "", part_of="0"), Example("0.1", "", part_of="0"), Example("1", "")])
    ['0', '1']
    """
    if all(example.part_of is None for example in examples):
        return [example.id for example in examples]
    return list(dict.fromkeys(example.part_of or example.id for example in examples))


def average_parts(values: Float[Tensor, "batch *axes"], examples: Sequence[Example]) -> Float[Tensor, "whole *axes"]:
    """Return the mean over the parts of each example, such as windows of a picture; NaN are left out.

    >>> windows = [Example("0.0", "", part_of="0"), Example("0.1", "", part_of="0")]
    >>> average_parts(torch.tensor([1.0, 2.0]), windows).tolist()
    [1.5]
    """
    rows = _rows_of_wholes(examples)
    if rows is None:
        return values
    means = [values[row.to(values.device)].double().nanmean(0) for row in rows]
    return torch.stack(means)


def any_part(table: Bool[Tensor, "batch *axes"], examples: Sequence[Example]) -> Bool[Tensor, "whole *axes"]:
    """Return which examples have a part where a table is true."""
    rows = _rows_of_wholes(examples)
    return table if rows is None else torch.stack([table[row.to(table.device)].any(0) for row in rows])


def _rows_of_wholes(examples: Sequence[Example]) -> list[Tensor] | None:
    """Return the rows of the parts of each example; None if no example is a part."""
    if all(example.part_of is None for example in examples):
        return None
    rows: dict[str, list[int]] = {}
    for row, example in enumerate(examples):
        rows.setdefault(example.part_of or example.id, []).append(row)
    return [torch.tensor(numbers) for numbers in rows.values()]


def align_heads(nan: Bool[Tensor, "batch _ _"], heads: Sequence[int]) -> Bool[Tensor, "batch _ _"]:
    """Reduce a NaN table to the layers and heads of the values: a value of several maps is NaN if one of them is.

    >>> align_heads(torch.tensor([[[False, False], [False, True]]]), (2, 1)).tolist()
    [[[False], [True]]]
    """
    if nan.shape[1] != heads[0] and nan.shape[1] > 1:
        nan = nan.any(1, keepdim=True)
    return nan.any(2, keepdim=True) if nan.shape[2] != heads[1] and nan.shape[2] > 1 else nan


def drop_nan(values: Float[Tensor, "batch layer *axes"], nan: Bool[Tensor, "batch _ _"]) -> Tensor:
    """Return a statistic's values with NaN where a map is NaN: some would be numbers that mean nothing.

    >>> drop_nan(torch.ones(1, 2, 2), torch.tensor([[[False, False], [False, True]]])).tolist()
    [[[1.0, 1.0], [1.0, nan]]]
    """
    if not bool(nan.any()):
        return values
    nan = align_heads(nan, values.shape[1:3])
    return values.double().masked_fill(nan.reshape(*nan.shape, *[1] * (values.ndim - 3)), torch.nan)


def _count_nan(nan: Tensor, heads: Sequence[int]) -> Array:
    return np.broadcast_to(align_heads(nan, heads).sum(0).cpu().numpy(), tuple(heads)).copy()


def _describe_type(values: Any) -> str:
    if not isinstance(values, Mapping):
        return f"a {type(values).__name__}"
    return f"a {next(type(value).__name__ for value in values.values() if type(value) is not Tensor)}"


def _summarize(name: str, leaf: Moments) -> dict[str, Array]:
    """Return mean, sd, n and interval; one example has no sd, and no example has no mean."""
    n = leaf.n
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(n > 0, leaf.mean, np.nan)
        sd = np.where(n > 1, np.sqrt(leaf.square / (n - 1)), np.nan)
    margin = student_margin(sd, n)
    _, low, high = interval_names(name)
    return {name: mean, f"{name}_sd": sd, f"{name}_n": n, low: mean - margin, high: mean + margin}
