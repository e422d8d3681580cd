"""Linear layers without some of their outputs, which are zero, or without some of their inputs, which are not read."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn


class CutLayer(nn.Module):
    """A mixin for linear layers; what is around them sees the sizes that they had before."""

    rows: tuple[int, ...] | None  # the outputs that are left
    columns: tuple[int, ...] | None  # the inputs that are left
    full_rows: int
    full_columns: int
    indices: dict[tuple[str, torch.device], Tensor]

    def forward(self, hidden: Tensor) -> Tensor:
        """Project what is left, and put zeros in place of the rest."""
        if self.columns is not None:
            hidden = hidden.index_select(-1, self._index("columns", hidden.device))
        projected: Tensor = super().forward(hidden)
        if self.rows is None:
            return projected
        whole = projected.new_zeros(*projected.shape[:-1], self.full_rows)
        return whole.index_copy(-1, self._index("rows", projected.device), projected)

    def _index(self, name: str, device: torch.device) -> Tensor:
        key = (name, device)
        if key not in self.indices:
            self.indices[key] = torch.tensor(getattr(self, name), dtype=torch.long, device=device)
        return self.indices[key]


def is_linear(module: Any) -> bool:
    """Return True for a linear layer: torch's Linear, or one that is derived from it, and GPT-2's Conv1D."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def expand_matrix(layer: Any, matrix: Tensor) -> Tensor:
    """Return a matrix `input output` of a layer with zeros in place of the inputs that were removed."""
    if not isinstance(layer, CutLayer) or layer.columns is None:
        return matrix
    whole = matrix.new_zeros(layer.full_columns, matrix.shape[1])
    return whole.index_copy(0, torch.tensor(layer.columns, dtype=torch.long, device=matrix.device), matrix)


def describe_cut(layer: CutLayer) -> dict[str, Any]:
    """Return what is left of a layer, as ranges for a config."""
    left = {"rows": (layer.rows, layer.full_rows), "columns": (layer.columns, layer.full_columns)}
    return {name: [size, _to_ranges(numbers)] for name, (numbers, size) in left.items() if numbers is not None}


def read_cut(cut: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the outputs and inputs that are left, by name, from what `describe_cut` wrote."""
    return {
        name: tuple(number for first, end in ranges for number in range(first, end))
        for name, (_, ranges) in cut.items()
    }


def _to_ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Return ranges that together are some sorted numbers.

    >>> _to_ranges([0, 1, 2, 7])
    [[0, 3], [7, 8]]
    """
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number:
            ranges[-1][1] += 1
        else:
            ranges.append([number, number + 1])
    return ranges


def cut_layer(layer: Any, *, rows: Sequence[int] | None = None, columns: Sequence[int] | None = None) -> None:
    """Leave a linear layer some of its outputs and inputs, in place; numbers are those of the whole layer."""
    transposed = is_transposed(layer)
    if not isinstance(layer, CutLayer):
        outputs, inputs = layer.weight.shape[::-1] if transposed else layer.weight.shape
        original: Any = type(layer)
        layer.__class__ = _derive_class(original)
        layer.rows = layer.columns = None
        layer.full_rows, layer.full_columns = outputs, inputs
    layer.indices = {}
    if rows is not None:
        index = _find_positions(layer.rows, rows)
        layer.weight = select_weights(layer.weight, int(transposed), index)
        layer.bias = None if layer.bias is None else select_weights(layer.bias, 0, index)
        layer.rows = tuple(rows)
        setattr(layer, "nf" if transposed else "out_features", len(rows))
    if columns is not None:
        index = _find_positions(layer.columns, columns)
        layer.weight = select_weights(layer.weight, int(not transposed), index)
        layer.columns = tuple(columns)
        setattr(layer, "nx" if transposed else "in_features", len(columns))


def is_transposed(layer: Any) -> bool:
    """Return True for GPT-2's Conv1D, whose weight is input × output."""
    return not isinstance(layer, nn.Linear)


def _find_positions(left: Sequence[int] | None, wanted: Sequence[int]) -> Tensor:
    """Return where the wanted numbers are among those that are left."""
    places = None if left is None else {number: place for place, number in enumerate(left)}
    return torch.tensor([n if places is None else places[n] for n in wanted], dtype=torch.long)


def select_weights(weight: nn.Parameter, dim: int, index: Tensor) -> nn.Parameter:
    """Return some rows or columns of a weight, or entries of a bias."""
    selected = weight.detach().index_select(dim, index.to(weight.device))
    return nn.Parameter(selected, requires_grad=weight.requires_grad)


@cache
def _derive_class(original: Any) -> Any:
    """Return a subclass of a linear layer's class, under the same name; that of Linear can be pickled."""
    return CutLinear if original is nn.Linear else type(original.__name__, (CutLayer, original), {})


class CutLinear(CutLayer, nn.Linear):
    """A Linear without some of its outputs or inputs."""
