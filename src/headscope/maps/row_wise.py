"""Statistics that add up over queries, so that maps too large for memory are measured in blocks of rows."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor

from headscope.core.batch import Batch
from headscope.maps.per_example import PerExample
from headscope.maps.rows import Sums


class RowWise(PerExample):
    """A statistic whose values follow from sums over the rows of a map.

    `hs.measure` computes it from blocks of rows where whole maps do not fit in memory. A subclass returns sums in
    place of values.

    >>> from headscope.maps.rows import Sums
    >>> class Weight(RowWise):
    ...     def sums(self, batch):
    ...         rows = batch.focus.weights.abs().sum(-1)  # batch layer head query
    ...         return {"weight": Sums(rows.double().sum(-1), batch.focus.queries.real.sum(-1)[:, None, None])}
    >>> data = hs.measure(model, ["The cat sat down."], statistics=[Weight()], lens="raw", block=2, progress=False)
    >>> round(data["weight"].sel(layer=3, head=7).item(), 6)
    1.0
    """

    scope: ClassVar[Literal["layer", "stack"]] = "layer"
    row_wise = True

    @abstractmethod
    def sums(self, batch: Batch) -> Mapping[str, Sums]:
        """Return sums over the rows of a batch, which may be some rows of each map; those of other rows add.

        Parameters
        ----------
        batch
            Examples and their maps.
        """

    def finish_sums(self, sums: Mapping[str, Sums], batch: Batch) -> Mapping[str, Tensor]:  # noqa: ARG002
        """Return the values, `batch layer head …`, from the sums over all rows; by default total / count.

        Parameters
        ----------
        sums
            The sums over all rows.
        batch
            Examples and their maps, of whatever rows.
        """
        return {name: entry.mean for name, entry in sums.items()}

    def cut_tables(self, tables: tuple[Tensor, ...], rows: slice, keys: int) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Return what `tokens` says of some queries and of the first `keys` keys.

        Parameters
        ----------
        tables
            The result of `tokens`.
        rows
            The queries.
        keys
            The number of keys; no query of `rows` sees a later one.
        """
        assert not tables, f"{type(self).__name__} must say what its tables are of some rows"
        return tables

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the values of the rows of a batch."""
        return self.finish_sums(self.sums(batch), batch)


def cut_indices(index: Tensor, valid: Tensor, start: int, stop: int) -> tuple[Tensor, Tensor]:
    """Return padded indices within some tokens, counted from the first of these; others are no longer valid.

    >>> cut_indices(torch.tensor([[1, 5]]), torch.tensor([[True, True]]), 4, 8)
    (tensor([[0, 1]]), tensor([[False,  True]]))
    """
    inside = valid & (index >= start) & (index < stop)
    return torch.where(inside, index - start, 0), inside
