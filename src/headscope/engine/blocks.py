"""Capture some queries at a time: of texts whose whole maps do not fit in memory."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn.functional import pad

from headscope.core.errors import CaptureError, DataWarning, InputError
from headscope.core.prose import format_bytes, join_words
from headscope.core.tokens import Tokens
from headscope.core.trace import Trace, select_labels
from headscope.core.transfer import copy_to_device
from headscope.engine.batch import Inputs
from headscope.engine.capture import record
from headscope.engine.fingerprint import CapturedModel
from headscope.engine.memory import free_memory
from headscope.engine.model import Model, name_modules
from headscope.engine.recording.blocks import Blocks
from headscope.engine.recording.interface import is_editing
from headscope.engine.recording.make_trace import Request, check_padding_is_hidden, number_calls
from headscope.engine.recording.output_projection import describe_lack, has_projection, output_slices
from headscope.engine.recording.recorder import AttentionCall, Recorder, find_module
from headscope.engine.recording.sites import find_sites
from headscope.engine.recording.verify import HALF, relative_difference

TRIAL_TOKENS, TRIAL_BLOCK = 48, 7
"""How many tokens of an input are read in blocks and whole before all of it is, and the queries of these blocks."""

LARGE_BYTES = 2**28
"""Size of a mask or a bias of the model's own, queries × keys, that is said before it is made."""

Result = TypeVar("Result")
Added = TypeVar("Added", covariant=True)


class BlockReader(Protocol[Added]):
    """Reads the blocks of queries of one layer, one after the other."""

    def add(self, block: Trace, rows: slice) -> None:
        """Read a trace of some queries, and of the first keys, up to the last one that they see."""

    def finish(self) -> Added:
        """Return what all blocks come to."""


def map_blocks(
    model: Model,
    inputs: Inputs,
    request: Request,
    start: Callable[[Trace, Tokens], BlockReader[Result]],
    *,
    size: int | None = None,
) -> list[Result]:
    """Return for each layer what a reader makes of its blocks of queries; a block is freed before the next.

    `start` gets a trace of the layer without queries, which has its values and labels, and the tokens of all queries.
    `size` is the number of queries
    of a block, by default as many as a fixed amount of memory holds. The first tokens of an input of another kind are
    read in blocks and whole before, and must give the same.
    """
    if size is not None and size < 1:
        raise InputError(f"block must be at least 1, but got {size}.")
    trial = try_blocks(model, inputs, request)
    trial.check_size(model, inputs)
    stream = _LayerStream(model, inputs, request, start, trial.sites)
    blocks = Blocks(stream.begin, stream.see, size, whole_masks=trial.whole_masks)
    record(model, inputs.tensors, request.site, blocks=blocks)
    return stream.results


@dataclass
class _LayerStream:
    """Makes traces of blocks, and hands those of each layer to a reader."""

    model: Model
    inputs: Inputs
    request: Request
    start: Callable[[Trace, Tokens], BlockReader[Any]]
    sites: tuple[str, ...]
    results: list[Any] = field(default_factory=list)
    layer: Trace | None = None  # without queries
    queries: Tokens | None = None  # all of them
    reader: BlockReader[Any] | None = None

    def begin(self, call: AttentionCall, queries: int) -> None:
        """Begin a layer."""
        self.reader = self.layer = None  # free the last one first
        self.layer, self.queries = self._open(call, queries)
        self.reader = self.start(self.layer, self.queries)

    def see(self, call: AttentionCall, rows: slice) -> None:
        """Read a block; the last one of a layer ends it."""
        assert self.layer is not None
        assert self.queries is not None
        assert self.reader is not None
        self.reader.add(self._make_block(self.layer, call, rows), rows)
        if rows.stop == self.queries.real.shape[1]:
            self.results.append(self.reader.finish())
            self.reader = self.layer = None

    def _open(self, call: AttentionCall, count: int) -> tuple[Trace, Tokens]:
        """Return the trace of a layer without queries, and the tokens of all queries."""
        model, request = self.model, self.request
        batch, head_count, _, key_count = call.attention.shape
        sites = find_sites(model)
        label = sites.number(call.name, len(self.results))
        shape = (batch, count, key_count)
        examples, queries, keys = self.inputs.tokens_at(request.site, sites.sides_of(request.site), shape)
        heads = select_labels(range(head_count), request.heads, "head")
        lacks = bool(request.optional) and not has_projection(model, call.name)
        keep = request.keep - request.optional if lacks else request.keep
        selected = _select_heads(call, heads)
        trace = Trace(
            site=request.site,
            layers=(label,),
            heads=heads,
            attention=[selected.attention],
            visible=[torch.zeros(batch, 0, key_count, dtype=torch.bool, device=call.attention.device)],
            queries=queries.take(()),
            keys=keys,
            examples=examples,
            values=[self._hide_padding(selected.values, keys)] if "values" in keep else None,
            context=[selected.context] if "values" in keep else None,
            output=[output_slices(model, call.name, heads, head_count)] if "output" in keep else None,
            held=keep,
            sites=self.sites,
            modules=(find_module(call.name),),
            absent={"output": describe_lack(call.name)} if lacks else {},
            source=CapturedModel(model, name_modules(model.network)),
            pruned=frozenset((label, head) for head in call.missing if head in heads),
            group=call.group if heads == tuple(range(head_count)) else 1,
        )
        return trace, queries

    def _hide_padding(self, values: Tensor, keys: Tokens) -> Tensor:
        """Return values with zeros in place of padding, unless that is kept."""
        if "pads" in self.request.keep or bool(keys.real.all()):
            return values
        (real,) = copy_to_device(values.device, [keys.real])
        return values.masked_fill(~real[:, None, :, None], 0)

    def _make_block(self, layer: Trace, call: AttentionCall, rows: slice) -> Trace:
        """Return the trace of some queries."""
        assert self.queries is not None
        selected = _select_heads(call, layer.heads)
        attention, context = selected.attention, selected.context
        if "pads" in self.request.keep:  # lenses that take padding for keys need all of it
            attention = pad(attention, (0, layer.keys.real.shape[1] - attention.shape[-1]))
        end = attention.shape[-1]
        real = (self.queries.real[:, rows], layer.keys.real[:, :end])
        queries, keys = copy_to_device(attention.device, real)
        seen, visible = call.visible(), queries[:, :, None] & keys[:, None, :]
        visible = visible if seen is None else visible & pad(seen, (0, end - seen.shape[-1]))
        if not (bool(self.queries.real.all()) and bool(layer.keys.real.all())):
            blind = ~visible.any(-1)[:, None, :, None]
            attention, context = attention.masked_fill_(blind, 0), context.masked_fill(blind, 0)
            if not self.model.family.kinds:
                check_padding_is_hidden(call.name, attention, keys)
        return replace(
            layer,
            attention=[attention],
            visible=[visible],
            queries=self.queries.take(range(rows.start, rows.stop)),
            keys=layer.keys if end == layer.keys.real.shape[1] else layer.keys.take(range(end)),
            values=None if layer.values is None else [layer.values[0][:, :, :end]],
            context=None if layer.context is None else [context],
        )


def _select_heads(call: AttentionCall, heads: Sequence[int]) -> AttentionCall:
    """Return a call with some heads; its values are those of each head, or not used."""
    if tuple(heads) == tuple(range(call.attention.shape[1])):
        return call
    (index,) = copy_to_device(call.attention.device, [torch.tensor(heads)])
    values = call.values.index_select(1, index) if call.values.shape[1] == call.attention.shape[1] else call.values
    attention, context = (tensor.index_select(1, index) for tensor in (call.attention, call.context))
    return replace(call, attention=attention, context=context, values=values)


def capture_rows(model: Model, inputs: Inputs, request: Request, rows: Sequence[int] | int) -> Trace:
    """Return a trace of some queries, of all keys; the whole maps are in memory at no time."""
    labels = select_labels(try_blocks(model, inputs, request).layers, request.layers, "layer")

    def start(layer: Trace, queries: Tokens) -> _RowPicker:
        if layer.layers[0] not in labels:
            return _RowPicker(layer, queries, ())
        return _RowPicker(layer, queries, select_labels(range(queries.real.shape[1]), rows, "row"))

    layers = map_blocks(model, inputs, request, start)
    traces = {trace.layers[0]: trace for trace in layers if trace is not None}
    return _join_layers([traces[label] for label in labels])


@dataclass
class _RowPicker:
    """Keeps some queries of a layer."""

    layer: Trace
    queries: Tokens
    rows: Sequence[int]
    found: list[int] = field(default_factory=list)
    blocks: dict[str, list[Tensor]] = field(default_factory=dict)

    def add(self, block: Trace, rows: slice) -> None:
        """Keep those of a block's queries that are wanted."""
        chosen = [row for row in self.rows if rows.start <= row < rows.stop]
        if not chosen:
            return
        self.found += chosen
        index = torch.tensor(chosen, device=block.attention[0].device) - rows.start
        missing = (0, self.layer.attention[0].shape[-1] - block.attention[0].shape[-1])
        tables = {
            "attention": pad(block.attention[0].index_select(2, index), missing),
            "visible": pad(block.visible[0].index_select(1, index), missing),
        }
        tables |= {} if block.context is None else {"context": block.context[0].index_select(2, index)}
        for name, table in tables.items():
            self.blocks.setdefault(name, []).append(table)

    def finish(self) -> Trace | None:
        """Return the trace of the wanted queries, in the order in which they were asked for."""
        if not self.rows:
            return None
        order = torch.tensor([self.found.index(row) for row in self.rows])
        axes = {"attention": 2, "visible": 1, "context": 2}
        joined: dict[str, Any] = {
            name: [torch.cat(blocks, axes[name]).index_select(axes[name], order.to(blocks[0].device))]
            for name, blocks in self.blocks.items()
        }
        return replace(self.layer, queries=self.queries.take(self.rows), **joined)


def _join_layers(traces: Sequence[Trace]) -> Trace:
    """Return traces of single layers as one."""
    first = traces[0]
    tensors: dict[str, Any] = {
        name: None if getattr(first, name) is None else [getattr(trace, name)[0] for trace in traces]
        for name in ("attention", "visible", "values", "context", "output")
    }
    return replace(
        first,
        layers=tuple(trace.layers[0] for trace in traces),
        modules=tuple(trace.modules[0] for trace in traces),
        pruned=frozenset().union(*(trace.pruned for trace in traces)),
        group=first.group if len({trace.group for trace in traces}) == 1 else 1,
        **tensors,
    )


@dataclass(frozen=True)
class Trial:
    """What a beginning of an input showed, read in blocks and whole."""

    layers: tuple[int, ...]
    sites: tuple[str, ...]
    whole_masks: bool  # whether the model's code needs the masks that transformers builds
    cell_bytes: Mapping[str, float]  # of tensors that the model makes for each query and key, by what they are

    def check_size(self, model: Model, inputs: Inputs) -> None:
        """Say how large the masks and biases of the model's own will be; raise InputError where they do not fit."""
        widths = _count_tokens(inputs)
        size = sum(self.cell_bytes.values()) * max(widths) ** 2
        if size < LARGE_BYTES:
            return
        names, free = join_words(sorted(self.cell_bytes)), free_memory(model)
        text = (
            f"This model of type '{model.network.config.model_type}' makes tensors of queries × keys of its own "
            f"({names}): {format_bytes(int(size))} for {max(widths):,} tokens, of {format_bytes(free)} that are free."
        )
        if size > free:
            raise InputError(f"{text} Give shorter texts: max_length.")
        warnings.warn(text, DataWarning, stacklevel=2)


_trials: WeakKeyDictionary[Any, dict[Any, Trial]] = WeakKeyDictionary()


def try_blocks(model: Model, inputs: Inputs, request: Request) -> Trial:
    """Read the first tokens in blocks and whole, once for each network and kind of input; they must be the same."""
    if is_editing():
        raise InputError(
            "Edits change what all queries of a layer give together, so an edited model is not read in blocks of "
            "queries. Leave out the edit, rows or block."
        )
    dtype, device = model.network.dtype, str(model.network.device)
    setting = (request.site, dtype, device, frozenset(inputs.tensors), id(model.network.config))
    trials = _trials.setdefault(model.network, {})
    if setting not in trials:
        trials[setting] = _try(model, _cut_inputs(inputs), request.site)
    return trials[setting]


def _try(model: Model, tensors: Mapping[str, Any], site: str) -> Trial:
    whole = record(model, tensors, site)
    _check_follows_interface(model, whole)
    labels = tuple(number_calls(model, whole.calls))
    reasons = []
    for whole_masks in (False, True):
        collector = _Collector()
        blocks = Blocks(collector.begin, collector.see, TRIAL_BLOCK, whole_masks=whole_masks)
        try:
            in_blocks = record(model, tensors, site, blocks=blocks)
            difference = collector.compare(whole.calls)
        except Exception as error:
            reasons.append(f"{type(error).__name__}: {error}")
            continue
        difference = max(difference, relative_difference(whole.model_output, in_blocks.model_output))
        if difference <= (2e-1 if model.network.dtype in HALF else 1e-3):  # roundings; a wrong row is off by far more
            cells = max(call.attention.shape[-2] * call.attention.shape[-1] for call in whole.calls)
            sizes: dict[str, float] = {}
            for (name, _), size in blocks.largest.items():
                sizes[name] = sizes.get(name, 0.0) + size / cells
            return Trial(labels, tuple(whole.sites), whole_masks, sizes)
        reasons.append(f"they differ by {difference:.2g}")
    raise CaptureError(
        f"Blocks of queries of this model of type '{model.network.config.model_type}' are not what its whole maps "
        f"hold ({reasons[-1]}), so it is not read in blocks. Leave out rows and block, and give shorter texts."
    )


@dataclass
class _Collector:
    """Puts blocks together again."""

    calls: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def begin(self, call: AttentionCall, queries: int) -> None:
        """Begin a layer."""
        batch, heads, _, keys = call.attention.shape
        context = call.context.new_zeros(batch, heads, queries, call.context.shape[-1])
        self.calls.append((call.attention.new_zeros(batch, heads, queries, keys), context))

    def see(self, call: AttentionCall, rows: slice) -> None:
        """Put a block in its place."""
        attention, context = self.calls[-1]
        attention[:, :, rows, : call.attention.shape[-1]] = call.attention
        context[:, :, rows] = call.context

    def compare(self, calls: Sequence[AttentionCall]) -> float:
        """Return the largest difference from whole maps and contexts."""
        if len(calls) != len(self.calls):
            return torch.inf
        pairs = [(call.attention, call.context) for call in calls]
        return max(map(relative_difference, pairs, self.calls), default=0.0)


def _check_follows_interface(model: Model, recorder: Recorder) -> None:
    """Raise InputError if modules compute attention by themselves: whole maps."""
    if recorder.followed:
        names = join_words(dict.fromkeys(map(find_module, recorder.followed)), limit=2)
        raise InputError(
            f"This model of type '{model.network.config.model_type}' computes whole maps in {names}, without the "
            "library's attention interface, so its queries cannot be read in blocks. Leave out rows and block, and "
            "give shorter texts: max_length."
        )


def _count_tokens(inputs: Inputs) -> list[int]:
    """Return how many tokens the model is given, for its encoder and its decoder."""
    widths = [
        tensor.shape[1]
        for name, tensor in inputs.tensors.items()
        if name in ("input_ids", "decoder_input_ids") and isinstance(tensor, Tensor)
    ]
    if not widths or inputs.source is None:
        raise InputError(
            "Blocks of queries are read of texts, but this input is none. Leave out rows and block, or look at a "
            "smaller input."
        )
    return widths


def _cut_inputs(inputs: Inputs) -> dict[str, Any]:
    """Return the first tokens of an input, or the last ones where padding comes first."""
    widths = {width for width in _count_tokens(inputs) if width > TRIAL_TOKENS}
    mask = inputs.tensors.get("attention_mask")
    left = isinstance(mask, Tensor) and mask.ndim == 2 and not bool(mask[:, 0].all())
    part = slice(-TRIAL_TOKENS, None) if left else slice(TRIAL_TOKENS)

    def cut(tensor: Any) -> Any:
        if not isinstance(tensor, Tensor):
            return tensor
        return tensor[tuple(part if axis and size in widths else slice(None) for axis, size in enumerate(tensor.shape))]

    return {name: cut(tensor) for name, tensor in inputs.tensors.items()}
