"""Compute what one batch contributes to every statistic."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from headscope.core.batch import Batch
from headscope.core.edit import Edit
from headscope.core.errors import DataWarning, InputError
from headscope.core.lens import Lens, view
from headscope.core.maps import LazyTensors, Maps
from headscope.core.maps.factored import Factored
from headscope.core.prose import join_words
from headscope.core.spec import parse_spec, to_spec
from headscope.core.state import State
from headscope.core.tokens import Tokens
from headscope.core.trace import Trace, select_labels
from headscope.core.trace.nan_attention import (
    REMEDY,
    HeadLabels,
    HeadMask,
    describe_maps,
    describe_nan,
    fill_nan,
    find_nan,
)
from headscope.core.transfer import copy_to_device, copy_to_host_async
from headscope.engine.batch import Inputs
from headscope.engine.blocks import map_blocks, try_blocks
from headscope.engine.capture import capture_batch, make_request, map_layers
from headscope.engine.edited import edit_if_any
from headscope.engine.model import Model
from headscope.engine.offloaded import list_devices
from headscope.maps.per_example import (
    PerExample,
    align_heads,
    any_part,
    average_parts,
    compute_values,
    drop_nan,
    list_wholes,
    make_state,
)
from headscope.maps.rows import find_nan_maps
from headscope.maps.words import to_words
from headscope.measuring.plan import max_cells
from headscope.measuring.row_sums import RowSums, SkippedLayer
from headscope.measuring.settings import MeasureSettings

Key = tuple[str, str]
"""The specs of a lens and a statistic."""

States = dict[Key, State]
TokenTables = Mapping[str, tuple[Tensor, ...]]
"""Tensors about the tokens of a batch, by the spec of the statistic that uses them."""


MapsByLens = Mapping[tuple[str, str], Maps]
"""The maps of a batch, by role and lens."""


def select_layer(maps: MapsByLens, label: int) -> dict[tuple[str, str], Maps]:
    """Return the maps of one layer, each computed once for all statistics."""
    selected = {}
    for key, stack in maps.items():
        index = stack.layers.index(label)
        tables = LazyTensors({name: partial(_select, stack.diagnostics, name, index) for name in stack.diagnostics})
        selected[key] = replace(
            stack, parts=[stack.layer(label)], layers=(label,), visible=[stack.visible[index]], diagnostics=tables
        )
    return selected


def fold_layers(maps: MapsByLens) -> dict[tuple[str, str], Maps] | None:
    """Return the heads of all layers as the heads of one layer, so that a GPU launches fewer kernels.

    None where heads are merged, or where layers differ in shape or mask.
    """
    shapes = {
        tuple(layer.left.shape[:3]) if isinstance(layer, Factored) else tuple(layer.shape[:3])
        for stack in maps.values()
        for layer in stack.parts
    }
    masks = {id(mask) for stack in maps.values() for mask in stack.visible}
    if any(stack.merged for stack in maps.values()) or len(shapes) > 1 or len(masks) > 1:
        return None
    return {
        key: replace(
            stack,
            parts=[torch.cat([stack.layer(label) for label in stack.layers], dim=1)],
            layers=(0,),
            heads=tuple(range(len(stack.layers) * len(stack.heads))),
            visible=stack.visible[:1],
            diagnostics=LazyTensors({name: partial(_fold, stack.diagnostics, name) for name in stack.diagnostics}),
        )
        for key, stack in maps.items()
    }


def _select(tables: Mapping[str, Tensor], name: str, index: int) -> Tensor:
    return tables[name][:, index : index + 1]


def _fold(tables: Mapping[str, Tensor], name: str) -> Tensor:
    return tables[name].flatten(1, 2)[:, None]


@dataclass(frozen=True)
class _Values:
    """Values of one statistic through one lens, `batch layer head …`, on the device of the maps."""

    tensors: Mapping[str, Tensor]
    labels: Mapping[str, Sequence[Any]]


NAN_MAPS = "Statistics leave these maps out: x_nan counts them, x_n the others."
RoleAndLens = tuple[str, str]
AnyKey = TypeVar("AnyKey")


@dataclass(frozen=True)
class _NanTables:
    """Where something is NaN or infinite, `batch layer head`: in the first model's trace, and in maps."""

    sources: Mapping[str, HeadMask]  # "attention", "values"
    maps: Mapping[RoleAndLens, HeadMask]

    @classmethod
    def concat(cls, layers: Sequence["_NanTables"]) -> "_NanTables":
        """Concatenate the tables of single layers."""
        return cls(
            _concat_tables([layer.sources for layer in layers]), _concat_tables([layer.maps for layer in layers])
        )

    def join_parts(self, trace: Trace) -> "_NanTables":
        """Return the tables by example, where the rows of a trace are windows of pictures."""
        sources = {name: any_part(table, trace.examples) for name, table in self.sources.items()}
        return _NanTables(sources, {key: any_part(table, trace.examples) for key, table in self.maps.items()})

    def find_unexpected(self, labels: HeadLabels) -> "_NanTables":
        """Return the tables without heads that were pruned."""
        sources = {name: labels.find_unexpected(nan) for name, nan in self.sources.items()}
        return _NanTables(sources, {key: labels.find_unexpected(nan) for key, nan in self.maps.items()})

    def describe(self, labels: HeadLabels) -> str:
        """Return sentences on NaN in the trace, and on lenses that give NaN from what is finite; "" if none does."""
        unexpected = self.find_unexpected(labels)
        source = torch.stack(list(unexpected.sources.values())).any(0)
        texts = [f"{describe_nan(unexpected.sources, labels)} {REMEDY}"] if bool(source.any()) else []
        follows = _with_layers_above(source)
        for (role, lens), nan in unexpected.maps.items():
            own = nan if role == "against" else nan & ~align_heads(follows, nan.shape[1:])
            texts += [self._describe_lens(role, lens, describe_maps(own, labels))] if bool(own.any()) else []
        return " ".join(texts)

    def _describe_lens(self, role: str, lens: str, places: str) -> str:
        if role == "against":
            return f"The second model's maps through the lens '{lens}' are NaN or infinite in {places}"
        verb = "are" if len(self.sources) > 1 else "is"
        finite = f"{' and '.join(self.sources).capitalize()} {verb} finite there."
        return f"The lens '{lens}' gives NaN or infinite weights in {places} {finite}"


@dataclass(frozen=True)
class _PendingBatch:
    """Values of one batch on their way to the host, and the states that are complete already."""

    labels: HeadLabels
    values: Mapping[Key, _Values]
    fetch: Callable[[], tuple[_NanTables, list[Tensor]]]  # returns what is NaN, and all tensors of `values`
    states: States

    @classmethod
    def start(
        cls, labels: HeadLabels, nan: _NanTables, values: Mapping[Key, _Values], states: States
    ) -> "_PendingBatch":
        """Start copying the values to the host."""
        tensors = (tensor for entry in values.values() for tensor in entry.tensors.values())
        copy = copy_to_host_async([*nan.sources.values(), *nan.maps.values(), *tensors])

        def fetch() -> tuple[_NanTables, list[Tensor]]:
            arrived = iter(copy())
            sources = {name: next(arrived) for name in nan.sources}
            return _NanTables(sources, {key: next(arrived) for key in nan.maps}), list(arrived)

        return cls(labels, values, fetch, states)


@dataclass(frozen=True)
class Observer:
    """A model, an optional second model to compare it with, and the settings of the measurement."""

    model: Model
    settings: MeasureSettings
    against: Model | None = None
    edits: tuple[Edit, ...] = ()  # applied to the first model while it runs
    max_cells: int | None = None  # cells of a batch's maps of one head above which queries are measured in blocks

    def __call__(self, batches: Iterable[tuple[Inputs, Inputs | None]]) -> Iterator[States]:
        """Yield the states of every batch. The second item of a pair is the same batch for the second model.

        On a GPU the next batch is launched before the values of the last are reduced, so that it is never idle.
        """
        warned = False
        for pending in self._launch(batches):
            nan, tables = pending.fetch()
            if not warned and (text := nan.describe(pending.labels)):
                warned = True
                warnings.warn(f"{text} {NAN_MAPS}", DataWarning, stacklevel=2)
            yield self._make_states(pending, nan, tables)

    def _launch(self, batches: Iterable[tuple[Inputs, Inputs | None]]) -> Iterator[_PendingBatch]:
        """Yield the values of every batch; on a GPU when the next batch is launched."""
        pending: _PendingBatch | None = None
        for inputs, second in batches:
            in_blocks = self._needs_blocks(inputs)
            if (in_blocks or self.streams(inputs)) and pending is not None:
                yield pending
                pending = None
            if in_blocks:
                yield self._observe_blocks(inputs)
                continue
            if self.streams(inputs):
                yield self._observe_streaming(inputs)
                continue
            traces = self._capture(inputs, second)
            if pending is not None:
                yield pending
            if traces["model"].other_layers:
                pending = self._observe_shapes(traces["model"], inputs)
                continue
            _check_examples(traces["model"], inputs)
            pending = self._observe_stack(traces)
        if pending is not None:
            yield pending

    def _capture(self, inputs: Inputs, second: Inputs | None) -> dict[str, Trace]:
        """Run one forward pass of each model; a GPU may still be computing."""
        with self.edited_model() as model:
            traces = {"model": capture_batch(model, inputs, self.make_request(model))}
        if second is not None:
            assert self.against is not None
            traces["against"] = capture_batch(self.against, second, self.make_request(self.against))
        return traces

    def _observe_stack(self, traces: Mapping[str, Trace]) -> _PendingBatch:
        """Compute the statistics from the traces of all layers."""
        tables = self._token_tables(traces["model"])  # a GPU is still computing
        maps = self._view(traces)
        sources = find_nan(traces["model"])
        if not self._on_cpu() and (folded := fold_layers(maps)) is not None:
            values = self._compute(folded, "layer", tables)
            values = {key: _unfold_layers(folds, maps["model", key[0]]) for key, folds in values.items()}
            shapes = {key: (-1, len(stack.layers), len(stack.heads)) for key, stack in maps.items()}
            nan = _NanTables(sources, {key: find_nan_maps(folded[key]).view(shapes[key]) for key in folded})
        else:
            layers = [self._observe_maps(select_layer(maps, label), tables) for label in traces["model"].layers]
            values = _concat_layers([layer for layer, _ in layers])
            nan = _NanTables(sources, _concat_tables([tables_of_layer for _, tables_of_layer in layers]))
        values |= self._compute(maps, "stack", tables)
        labels = _label_heads(traces["model"])
        return _PendingBatch.start(labels, nan.join_parts(traces["model"]), values, self._observe_directly(maps))

    def _observe_shapes(self, trace: Trace, inputs: Inputs) -> _PendingBatch:
        """Compute the statistics of layers whose maps differ in shape, of each layer by itself."""
        if not self.settings.streams or self.against is not None:
            raise InputError(
                f"The maps of layers {list(trace.layers)} and of {trace.describe_other_layers()} of this model differ "
                "in shape, so only statistics and lenses that need one layer at a time can be measured on all of them. "
                f"Measure those of one shape: layers={list(trace.layers)}."
            )
        layers = [
            self._observe_layer({}, inputs, _select_trace_layer(part, index))
            for part in (trace, *trace.other_layers)
            for index in range(len(part.layers))
        ]
        return self._join_layers(sorted(layers, key=lambda layer: layer[0].layers[0]))

    def _observe_streaming(self, inputs: Inputs) -> _PendingBatch:
        """Compute the statistics of each layer while the model runs, and free its maps."""
        with self.edited_model() as model:
            return self._join_layers(
                map_layers(model, inputs, self.make_request(model), partial(self._observe_layer, {}, inputs))
            )

    def _needs_blocks(self, inputs: Inputs) -> bool:
        """Whether a batch is measured in blocks of queries: as was asked for, or because its maps are too large."""
        if self.settings.block is not None:
            return True
        if self.max_cells is None or self.why_whole() is not None or inputs.source is None:
            return False
        batch, width = inputs.source.real.shape
        return bool(batch * width**2 > self.max_cells)

    def why_whole(self) -> str | None:
        """Return why whole maps are needed, or None if blocks of queries do."""
        if self.edits or self.against is not None:
            return "an edit" if self.edits else "a second model"
        return self.settings.why_whole()

    def _observe_blocks(self, inputs: Inputs) -> _PendingBatch:
        """Compute the statistics of each layer from blocks of its queries, and free each block."""
        request = self.make_request(self.model)
        wanted = select_labels(try_blocks(self.model, inputs, request).layers, self.settings.layers, "layer")

        def start(layer: Trace, queries: Tokens) -> RowSums | SkippedLayer:
            _check_examples(layer, inputs)
            return RowSums(self.settings, layer, queries) if layer.layers[0] in wanted else SkippedLayer()

        found = map_blocks(self.model, inputs, request, start, size=self.settings.block)
        layers = {result.layer.layers[0]: result for result in found if result is not None}
        return self._join_layers(
            [
                (
                    _label_heads(layers[label].layer),
                    _NanTables(layers[label].nan, layers[label].nan_maps),
                    {key: _Values(*values) for key, values in layers[label].values.items()},
                )
                for label in wanted
            ]
        )

    @staticmethod
    def _join_layers(layers: Sequence[tuple[HeadLabels, _NanTables, dict[Key, _Values]]]) -> _PendingBatch:
        labels, nan, values = zip(*_gather_tables(layers), strict=True)
        return _PendingBatch.start(HeadLabels.join(labels), _NanTables.concat(nan), _concat_layers(values), {})

    def _observe_layer(
        self, tables: dict[Any, TokenTables], inputs: Inputs, trace: Trace
    ) -> tuple[HeadLabels, _NanTables, dict[Key, _Values]]:
        """Compute the statistics of one layer; the first layer with the same tokens fills the token tables."""
        _check_examples(trace, inputs)
        key = None if trace.examples[0].part_of else (trace.queries.real.shape, trace.keys.real.shape)
        if key is None or key not in tables:  # windows may be of other tokens in each layer
            tables[key] = self._token_tables(trace)
        maps = self._view({"model": trace})
        values, nan = self._observe_maps(select_layer(maps, trace.layers[0]), tables[key])
        return _label_heads(trace), _NanTables(find_nan(trace), nan).join_parts(trace), values

    def _observe_maps(
        self, layer: MapsByLens, tables: TokenTables
    ) -> tuple[dict[Key, _Values], dict[RoleAndLens, HeadMask]]:
        """Compute the statistics of the maps of one layer, and which maps are NaN."""
        return self._compute(layer, "layer", tables), {key: find_nan_maps(maps) for key, maps in layer.items()}

    def edited_model(self) -> AbstractContextManager[Model]:
        """The model, with its edits while the block lasts."""
        return edit_if_any(self.model, self.edits)

    def streams(self, inputs: Inputs) -> bool:
        """Whether each layer of a batch is seen while the model runs, and freed before the next."""
        return self.can_stream and (self.streams_always or not self._fits(inputs))

    @property
    def can_stream(self) -> bool:
        """Whether all that is asked for can be computed of one layer after the other."""
        return self.settings.streams and self.settings.layers is None and self.against is None

    @cached_property
    def streams_always(self) -> bool:
        """Whether one layer after the other is the quicker way: on a CPU, and where layers lie on several devices.

        A GPU is faster with all layers at once, which are computed as one layer with many heads.
        """
        return self._on_cpu() or len(list_devices(self.model.network)) > 1

    def _fits(self, inputs: Inputs) -> bool:
        """Whether the maps of all layers of a batch fit in a GPU's memory together."""
        sides = [tokens.real.shape[1] for tokens in (inputs.source, inputs.target) if tokens is not None]
        cells = len(inputs.examples) * max(sides, default=0) ** 2
        return cells <= max_cells(self.model, self.settings.copies)

    def _on_cpu(self) -> bool:
        """Whether the model runs on the CPU."""
        return self.model.device.type == "cpu"

    def make_request(self, model: Model) -> Any:
        """Return what is captured of a model."""
        settings = self.settings
        keep = tuple(settings.keep - {"gradient"})
        return make_request(model, settings.site, settings.layers, settings.heads, keep, target=settings.target)

    def _view(self, traces: Mapping[str, Trace]) -> dict[tuple[str, str], Maps]:
        """Return every trace through every lens that is needed; values from NaN are dropped when they arrive."""
        maps = self._apply_lenses(traces)
        if self.settings.units == "tokens":
            return maps
        query = "first" if self.settings.units == "words_first" else "mean"
        return {key: to_words(stack, query) for key, stack in maps.items()}

    def _apply_lenses(self, traces: Mapping[str, Trace]) -> dict[tuple[str, str], Maps]:
        lenses = {"model": self.settings.all_lenses, "against": self.settings.lenses}
        maps = {
            (role, to_spec(lens)): view_with_nan(trace, lens) for role, trace in traces.items() for lens in lenses[role]
        }
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
                    rows, labels = compute_values(statistic, batch)
                    means = {name: average_parts(table, batch.examples) for name, table in rows.items()}
                    values[lens, to_spec(statistic)] = _Values(means, labels)
        return values

    def _make_states(self, pending: _PendingBatch, nan: _NanTables, tables: Iterable[Tensor]) -> States:
        """Return the states of a batch from its values, which have arrived; those of maps with NaN are left out."""
        statistics = {to_spec(entry): entry for entry in self.settings.statistics if isinstance(entry, PerExample)}
        lenses = {to_spec(lens): lens for lens in self.settings.lenses}
        arrived, states, ids = iter(tables), {}, pending.labels.ids
        unexpected = nan.find_unexpected(pending.labels)
        for (lens, spec), values in pending.values.items():
            read = _maps_read(statistics[spec], lenses[lens])
            heads = [len(axis) for axis in values.labels.values()][:2]
            wrong, counted = (_any_of([cells.maps[key] for key in read], heads) for cells in (nan, unexpected))
            tensors = {name: drop_nan(next(arrived), wrong) for name in values.tensors}
            states[lens, spec] = make_state(
                statistics[spec], tensors, ids, values.labels, rows=self.settings.rows, nan=counted
            )
        return states | pending.states

    def _observe_directly(self, maps: MapsByLens) -> States:
        """Return the states of the statistics that are not computed per example."""
        return {
            (lens, to_spec(statistic)): statistic.observe(Batch(maps["model", lens].examples, maps, lens))
            for lens in map(to_spec, self.settings.lenses)
            for statistic in self.settings.statistics
            if not isinstance(statistic, PerExample)
        }


def view_with_nan(trace: Trace, lens: Lens) -> Maps:
    """Return a trace through a lens; the maps of one that refuses NaN are NaN where what it reads is NaN."""
    try:
        return view(trace, lens)
    except InputError:
        nan = torch.stack([table for source, table in find_nan(trace).items() if source in lens.needs]).any(0)
        if not bool(nan.any()):
            raise
    maps = view(fill_nan(trace), lens)
    nan = _with_layers_above(nan) if lens.scope == "stack" else nan
    nan = align_heads(nan, (len(maps.layers), len(maps.heads)))
    cells = zip(maps.layers, nan.unbind(1), strict=True)
    return replace(
        maps, parts=[maps.layer(layer).masked_fill(heads[..., None, None], torch.nan) for layer, heads in cells]
    )


def _with_layers_above(nan: HeadMask) -> HeadMask:
    """Return where a layer or one below it is NaN: a layer follows from those below."""
    return nan.int().cumsum(1) > 0


def _maps_read(statistic: PerExample, lens: Lens) -> list[RoleAndLens]:
    """Return the maps that a statistic of a lens is computed from."""
    read = [("model", to_spec(other)) for other in (lens, *statistic.lenses(lens))]
    return [*read, ("against", to_spec(lens))] if "against" in statistic.needs else read


def _any_of(tables: Sequence[HeadMask], heads: Sequence[int]) -> HeadMask:
    """Return where one of several tables is true, for values of this number of layers and heads."""
    mask = align_heads(tables[0], heads)
    for table in tables[1:]:
        mask = mask | align_heads(table, heads)  # sizes of 1 broadcast
    return mask


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


def _check_examples(trace: Trace, inputs: Inputs) -> None:
    """Raise InputError if nothing says of which example the rows of a trace are."""
    if len(list_wholes(trace.examples)) != len(inputs.examples):
        raise InputError(
            f"The maps of layer {trace.layers[0]} have {len(trace.examples)} rows for {len(inputs.examples)} examples, "
            "and nothing says of which example each is, so that they cannot be averaged by example. hs.capture shows "
            "them."
        )


def _label_heads(trace: Trace) -> HeadLabels:
    return replace(HeadLabels.from_trace(trace), ids=list_wholes(trace.examples))


def _select_trace_layer(trace: Trace, index: int) -> Trace:
    """Return the trace of one layer."""
    tensors: dict[str, Any] = {
        name: None if (layers := getattr(trace, name)) is None else [layers[index]]
        for name in ("attention", "visible", "values", "gradient", "context", "output", "residual", "blocks")
    }
    return replace(trace, layers=(trace.layers[index],), other_layers=(), **tensors)


def _gather_tables(
    layers: Sequence[tuple[HeadLabels, _NanTables, dict[Key, _Values]]],
) -> Sequence[tuple[HeadLabels, _NanTables, dict[Key, _Values]]]:
    """Return the numbers of all layers on one device; those of a model on several go to the host."""

    def fetch(tables: Mapping[AnyKey, Tensor]) -> dict[AnyKey, Tensor]:
        return {key: table.cpu() for key, table in tables.items()}

    if len({table.device for _, nan, _ in layers for table in nan.sources.values()}) < 2:
        return layers
    return [
        (
            labels,
            _NanTables(fetch(nan.sources), fetch(nan.maps)),
            {key: replace(entry, tensors=fetch(entry.tensors)) for key, entry in values.items()},
        )
        for labels, nan, values in layers
    ]


def _concat_tables(layers: Sequence[Mapping[AnyKey, Tensor]]) -> dict[AnyKey, Tensor]:
    """Concatenate tables of single layers along the layer axis; heads that a layer does not have are False."""
    return {key: torch.cat(_fill_heads([tables[key] for tables in layers], False), dim=1) for key in layers[0]}


def _fill_heads(tables: Sequence[Tensor], value: float) -> list[Tensor]:
    """Return tables `batch layer head …` with as many heads as the largest has."""
    heads = max(table.shape[2] for table in tables)
    missing = [[0, 0] * (table.ndim - 3) + [0, heads - table.shape[2]] for table in tables]
    return [functional.pad(table, pad, value=value) for table, pad in zip(tables, missing, strict=True)]


def _concat_layers(layers: Sequence[Mapping[Key, _Values]]) -> dict[Key, _Values]:
    """Concatenate the values of single layers along the layer axis."""
    joined = {}
    for key, first in layers[0].items():
        all_values = [layer[key] for layer in layers]
        if len({tuple(table.shape[3:]) for values in all_values for table in values.tensors.values()}) > 1:
            raise InputError(
                f"The statistic '{key[1]}' has values along an axis that differs between layers whose maps differ in "
                "shape. Measure layers of one shape: layers=[…], as hs.capture lists them."
            )
        tensors = {
            name: torch.cat(_fill_heads([values.tensors[name] for values in all_values], torch.nan), dim=1)
            for name in first.tensors
        }
        labels = {
            **first.labels,
            "layer": [label for values in all_values for label in values.labels["layer"]],
            "head": max((values.labels["head"] for values in all_values), key=len),
        }
        joined[key] = _Values(tensors, labels)
    return joined
