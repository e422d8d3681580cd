"""Compute what one batch contributes to every statistic."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.edit import Edit
from headscope.core.errors import DataWarning, InputError
from headscope.core.lens import view
from headscope.core.maps import Maps
from headscope.core.prose import join_words
from headscope.core.spec import parse_spec, to_spec
from headscope.core.state import State
from headscope.core.trace import Trace
from headscope.core.trace.nan_attention import HeadLabels, describe_nan, drop_nan, fill_nan, largest_values
from headscope.core.transfer import copy_to_device, copy_to_host_async
from headscope.engine.batch import Inputs
from headscope.engine.capture import capture_batch, make_request, map_layers
from headscope.engine.edited import edit_if_any
from headscope.engine.model import Model
from headscope.maps.per_example import PerExample, compute_values, make_state
from headscope.maps.words import to_words
from headscope.measuring.layers import MapsByLens, fold_layers, select_layer
from headscope.measuring.settings import MeasureSettings

Key = tuple[str, str]
"""The specs of a lens and a statistic."""

States = dict[Key, State]
TokenTables = Mapping[str, tuple[Tensor, ...]]
"""Tensors about the tokens of a batch, by the spec of the statistic that uses them."""


@dataclass(frozen=True)
class _Values:
    """Values of one statistic through one lens, `batch layer head …`, on the device of the maps."""

    tensors: Mapping[str, Tensor]
    labels: Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class _PendingBatch:
    """Values of one batch on their way to the host, and the states that are complete already."""

    labels: HeadLabels
    values: Mapping[Key, _Values]
    fetch: Callable[[], tuple[Tensor, ...]]  # returns the largest values of each head, then all tensors of `values`
    states: States

    @classmethod
    def start(
        cls, labels: HeadLabels, largest: Tensor, values: Mapping[Key, _Values], states: States
    ) -> "_PendingBatch":
        """Start copying the values to the host; `largest` is the result of `largest_values`."""
        tensors = (tensor for entry in values.values() for tensor in entry.tensors.values())
        return cls(labels, values, copy_to_host_async([largest, *tensors]), states)

    def arrive(self) -> tuple[Tensor, list[Tensor]]:
        """Wait for the values; return where attention is NaN, `batch layer head`, and all tensors without those."""
        largest, *tables = self.fetch()
        nan = ~largest.isfinite()
        return nan, [drop_nan(table, nan) for table in tables] if bool(nan.any()) else tables


@dataclass(frozen=True)
class Observer:
    """A model, an optional second model to compare it with, and the settings of the measurement."""

    model: Model
    settings: MeasureSettings
    against: Model | None = None
    edits: tuple[Edit, ...] = ()  # applied to the first model while it runs

    def __call__(self, batches: Iterable[tuple[Inputs, Inputs | None]]) -> Iterator[States]:
        """Yield the states of every batch. The second item of a pair is the same batch for the second model.

        On a GPU the next batch is launched before the values of the last are reduced, so that it is never idle.
        """
        warned = False
        for pending in self._launch(batches):
            nan, tables = pending.arrive()
            nan = pending.labels.find_unexpected(nan)
            if not warned and bool(nan.any()):
                warned = True
                text = f"{describe_nan(nan, pending.labels)} Statistics leave these out, and x_n counts the others."
                warnings.warn(text, DataWarning, stacklevel=2)
            yield self._make_states(pending, tables)

    def _launch(self, batches: Iterable[tuple[Inputs, Inputs | None]]) -> Iterator[_PendingBatch]:
        """Yield the values of every batch; on a GPU when the next batch is launched."""
        pending: _PendingBatch | None = None
        for inputs, second in batches:
            if self.settings.streams and self.settings.layers is None and second is None and self._on_cpu():
                yield self._observe_streaming(inputs)
                continue
            traces = self._capture(inputs, second)
            if pending is not None:
                yield pending
            pending = self._observe_stack(traces)
        if pending is not None:
            yield pending

    def _capture(self, inputs: Inputs, second: Inputs | None) -> dict[str, Trace]:
        """Run one forward pass of each model; a GPU may still be computing."""
        with self._edited_model() as model:
            traces = {"model": capture_batch(model, inputs, self._make_request(model))}
        if second is not None:
            assert self.against is not None
            traces["against"] = capture_batch(self.against, second, self._make_request(self.against))
        return traces

    def _observe_stack(self, traces: Mapping[str, Trace]) -> _PendingBatch:
        """Compute the statistics from the traces of all layers."""
        tables = self._token_tables(traces["model"])  # a GPU is still computing
        maps = self._view(traces)
        if not self._on_cpu() and (folded := fold_layers(maps)) is not None:
            values = self._compute(folded, "layer", tables)
            values = {key: _unfold_layers(folds, maps["model", key[0]]) for key, folds in values.items()}
        else:
            layers = (select_layer(maps, label) for label in traces["model"].layers)
            values = _concat_layers([self._compute(layer, "layer", tables) for layer in layers])
        values |= self._compute(maps, "stack", tables)
        labels = HeadLabels.of(traces["model"])
        return _PendingBatch.start(labels, largest_values(*traces.values()), values, self._observe_directly(maps))

    def _observe_streaming(self, inputs: Inputs) -> _PendingBatch:
        """Compute the statistics of each layer while the model runs, and free its maps."""
        with self._edited_model() as model:
            layers = map_layers(model, inputs, self._make_request(model), partial(self._observe_layer, {}))
        labels, largest, values = zip(*layers, strict=True)
        return _PendingBatch.start(HeadLabels.join(labels), torch.cat(largest, dim=1), _concat_layers(values), {})

    def _observe_layer(
        self, tables: dict[str, tuple[Tensor, ...]], trace: Trace
    ) -> tuple[HeadLabels, Tensor, dict[Key, _Values]]:
        """Compute the statistics of one layer; the first layer fills the token tables."""
        if not tables:
            tables.update(self._token_tables(trace))
        maps = self._view({"model": trace})
        values = self._compute(select_layer(maps, trace.layers[0]), "layer", tables)
        return HeadLabels.of(trace), largest_values(trace), values

    def _edited_model(self) -> AbstractContextManager[Model]:
        return edit_if_any(self.model, self.edits)

    def _on_cpu(self) -> bool:
        """Whether the model runs on the CPU; a GPU is faster with all layers at once."""
        return self.model.device.type == "cpu"

    def _make_request(self, model: Model) -> Any:
        settings = self.settings
        keep = tuple(settings.keep - {"gradient"})
        return make_request(model, settings.site, settings.layers, settings.heads, keep, target=settings.target)

    def _view(self, traces: Mapping[str, Trace]) -> dict[tuple[str, str], Maps]:
        """Return every trace through every lens that is needed; values from NaN are dropped when they arrive."""
        try:
            maps = self._apply_lenses(traces)
        except InputError:  # a lens that refuses NaN
            if bool(largest_values(*traces.values()).isfinite().all()):
                raise
            maps = self._apply_lenses({role: fill_nan(trace) for role, trace in traces.items()})
        if self.settings.units == "tokens":
            return maps
        query = "first" if self.settings.units == "words_first" else "mean"
        return {key: to_words(stack, query) for key, stack in maps.items()}

    def _apply_lenses(self, traces: Mapping[str, Trace]) -> dict[tuple[str, str], Maps]:
        lenses = {"model": self.settings.all_lenses, "against": self.settings.lenses}
        maps = {(role, to_spec(lens)): view(trace, lens) for role, trace in traces.items() for lens in lenses[role]}
        for (role, lens), stack in maps.items():
            if stack.layers != traces[role].layers:
                raise InputError(
                    f"The lens '{lens}' has maps of the layers {join_words(stack.layers)} only, but layers "
                    f"{join_words(traces[role].layers)} are measured. {_advise_layers(lens, stack.layers)}"
                )
        return maps

    def _token_tables(self, trace: Trace) -> TokenTables:
        """Return what statistics need about the tokens; for words, they compute it from the maps."""
        if self.settings.units != "tokens":
            return {}
        tables = {
            to_spec(statistic): statistic.tokens(trace.examples, trace.queries, trace.keys)
            for statistic in self.settings.statistics
            if isinstance(statistic, PerExample)
        }
        flat = [tensor for tensors in tables.values() for tensor in tensors]
        moved = iter(copy_to_device(trace.visible[0].device, flat))
        return {spec: tuple(next(moved) for _ in tensors) for spec, tensors in tables.items()}

    def _compute(self, maps: MapsByLens, scope: str, tables: TokenTables) -> dict[Key, _Values]:
        """Return the values of every per-example statistic of this scope through every lens."""
        values = {}
        for lens in map(to_spec, self.settings.lenses):
            batch = Batch(maps["model", lens].examples, maps, lens, tables)
            for statistic in self.settings.statistics:
                if isinstance(statistic, PerExample) and statistic.scope == scope:
                    values[lens, to_spec(statistic)] = _Values(*compute_values(statistic, batch))
        return values

    def _make_states(self, pending: _PendingBatch, tables: Iterable[Tensor]) -> States:
        """Return the states of a batch from its values, which have arrived."""
        statistics = {to_spec(entry): entry for entry in self.settings.statistics if isinstance(entry, PerExample)}
        arrived, states, ids = iter(tables), {}, pending.labels.ids
        for key, values in pending.values.items():
            tensors = {name: next(arrived) for name in values.tensors}
            states[key] = make_state(statistics[key[1]], tensors, ids, values.labels, rows=self.settings.rows)
        return states | pending.states

    def _observe_directly(self, maps: MapsByLens) -> States:
        """Return the states of the statistics that are not computed per example."""
        return {
            (lens, to_spec(statistic)): statistic.observe(Batch(maps["model", lens].examples, maps, lens))
            for lens in map(to_spec, self.settings.lenses)
            for statistic in self.settings.statistics
            if not isinstance(statistic, PerExample)
        }


def _advise_layers(lens: str, layers: Sequence[int]) -> str:
    """Return how to measure the layers that a lens has; with depth=last it needs all layers below as well."""
    if parse_spec(lens)[1].get("depth") == "last":
        return f"Measure the lens with depth=all, and select the result with .sel(layer={layers[-1]})."
    return f"Give layers={list(layers)}."


def _unfold_layers(values: _Values, maps: Maps) -> _Values:
    """Undo `fold_layers` for the values computed from it."""
    shape = (len(maps.layers), len(maps.heads))
    tensors = {name: table.view(len(table), *shape, *table.shape[3:]) for name, table in values.tensors.items()}
    return _Values(tensors, {**values.labels, "layer": maps.layers, "head": maps.heads})


def _concat_layers(layers: Sequence[Mapping[Key, _Values]]) -> dict[Key, _Values]:
    """Concatenate the values of single layers along the layer axis."""
    joined = {}
    for key, first in layers[0].items():
        parts = [layer[key] for layer in layers]
        tensors = {name: torch.cat([part.tensors[name] for part in parts], dim=1) for name in first.tensors}
        labels = {**first.labels, "layer": [label for part in parts for label in part.labels["layer"]]}
        joined[key] = _Values(tensors, labels)
    return joined
