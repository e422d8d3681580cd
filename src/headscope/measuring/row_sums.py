"""Statistics of one layer from blocks of its queries."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.catalog import lenses as lens_catalog
from headscope.core.errors import InputError
from headscope.core.lens import Lens
from headscope.core.maps import Maps
from headscope.core.spec import to_spec
from headscope.core.state import Labels
from headscope.core.tokens import Tokens
from headscope.core.trace import Trace
from headscope.core.trace.nan_attention import HeadMask, fill_nan, find_nan
from headscope.core.transfer import copy_to_device
from headscope.maps.per_example import check_values
from headscope.maps.row_wise import RowWise
from headscope.maps.rows import Sums, find_nan_maps
from headscope.measuring.settings import MeasureSettings

Key = tuple[str, str]


@dataclass(frozen=True)
class LayerResult:
    """The values of one layer by lens and statistic, with the labels of their axes, and what is NaN."""

    layer: Trace  # without queries
    values: Mapping[Key, tuple[Mapping[str, Tensor], Labels]]
    nan: Mapping[str, HeadMask]  # in attention and values
    nan_maps: Mapping[tuple[str, str], HeadMask]


class SkippedLayer:
    """A layer that is not measured."""

    def add(self, block: Trace, rows: slice) -> None:
        """Leave a block out."""

    def finish(self) -> None:
        """Return nothing."""


@dataclass
class RowSums:
    """Adds up what the blocks of a layer contribute to every statistic."""

    settings: MeasureSettings
    layer: Trace
    queries: Tokens
    sums: dict[Key, dict[str, Sums]] = field(default_factory=dict)
    nan: dict[Any, HeadMask] = field(default_factory=dict)
    maps: dict[tuple[str, str], Maps] = field(default_factory=dict)  # of the last block

    def __post_init__(self) -> None:
        """Prepare what all rows share."""
        raw: Lens = lens_catalog.make("raw")  # which sums of an effective share need
        lenses = {to_spec(lens): lens for lens in (*self.settings.all_lenses, raw)}
        self._lenses = {spec: _start_lens(lens, self.layer) for spec, lens in lenses.items()}
        device = self.layer.attention[0].device
        self._tables = {
            to_spec(statistic): copy_to_device(
                device, statistic.tokens(self.layer.examples, self.queries, self.layer.keys)
            )
            for statistic in self._statistics
        }

    @property
    def _statistics(self) -> list[RowWise]:
        return [statistic for statistic in self.settings.statistics if isinstance(statistic, RowWise)]

    def add(self, block: Trace, rows: slice) -> None:
        """Add a block."""
        self.maps.clear()  # free the last block
        label = self.layer.layers[0]
        for spec, compute in self._lenses.items():
            maps = compute(block)
            self.maps["model", spec] = replace(maps, parts=[maps.layer(label)])  # computed once for all statistics
            self._add_nan(("model", spec), find_nan_maps(self.maps["model", spec]))
        for source, table in find_nan(block).items():
            self._add_nan(source, table)
        width = block.visible[0].shape[-1]
        for lens in map(to_spec, self.settings.lenses):
            for statistic in self._statistics:
                spec = to_spec(statistic)
                tables = statistic.cut_tables(self._tables[spec], rows, width)
                batch = Batch(block.examples, self.maps, lens, {spec: tables})
                self._add_sums((lens, spec), statistic.sums(batch))

    def _add_nan(self, key: Any, table: HeadMask) -> None:
        self.nan[key] = self.nan[key] | table if key in self.nan else table

    def _add_sums(self, key: Key, sums: Mapping[str, Sums]) -> None:
        before = self.sums.get(key)
        self.sums[key] = {name: entry if before is None else before[name] + entry for name, entry in sums.items()}

    def finish(self) -> LayerResult:
        """Return the values from all blocks."""
        values = {}
        for lens in map(to_spec, self.settings.lenses):
            for statistic in self._statistics:
                spec = to_spec(statistic)
                batch = Batch(self.layer.examples, self.maps, lens, {spec: self._tables[spec]})
                tensors = statistic.finish_sums(self.sums[lens, spec], batch)
                values[lens, spec] = (tensors, check_values(statistic, tensors, batch))
        specs = {("model", to_spec(lens)) for lens in self.settings.all_lenses}
        sources = {name: table for name, table in self.nan.items() if isinstance(name, str)}
        return LayerResult(self.layer, values, sources, {key: self.nan[key] for key in specs})


def _start_lens(lens: Lens, layer: Trace) -> Callable[[Trace], Maps]:
    """Return a lens of blocks; its maps are NaN where values that it refuses are."""
    if layer.values is None or "values" not in lens.needs:
        return lens.start_rows(layer)
    wrong = ~torch.linalg.vector_norm(layer.values[0], torch.inf, (-1, -2)).isfinite()  # batch head
    if not bool(wrong.any()):
        return lens.start_rows(layer)
    return partial(_view_nan, lens, layer, wrong)


def _view_nan(lens: Lens, layer: Trace, wrong: Bool[Tensor, "batch head"], block: Trace) -> Maps:
    try:
        return lens.start_rows(layer)(block)
    except InputError:
        maps = lens.start_rows(fill_nan(layer))(fill_nan(block))
    (label,) = maps.layers
    return replace(maps, parts=[maps.layer(label).masked_fill(wrong[:, :, None, None], torch.nan)])
