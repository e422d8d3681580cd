"""Build a trace from recorded attention calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import CaptureError
from headscope.core.target import PredictionTarget
from headscope.core.trace import Trace, Visible, at_least_float32, select_labels
from headscope.core.trace.residual import DirectPath, Residual, Unembedding
from headscope.core.transfer import copy_to_device
from headscope.effective.visibility import all_visible
from headscope.engine.batch import Inputs
from headscope.engine.fingerprint import CapturedModel
from headscope.engine.model import Model
from headscope.engine.offloaded import is_spread
from headscope.engine.recording.around_heads import (
    NotFoundError,
    find_direct_path,
    find_layers,
    find_unembedding,
    make_residual,
)
from headscope.engine.recording.output_projection import describe_lack, has_projection, output_slices
from headscope.engine.recording.recorder import AttentionCall, Recorder, find_module
from headscope.engine.recording.sites import find_sites


@dataclass(frozen=True)
class Request:
    """What to capture, checked against what the model has."""

    site: str
    layers: Sequence[int] | int | None
    heads: Sequence[int] | int | None
    keep: frozenset[str]
    optional: frozenset[str] = frozenset()  # of these, what is left out where the model does not have it
    target: PredictionTarget | None = None  # whose gradient is computed
    gather: torch.device | None = None  # where the tensors of the trace shall lie


def make_trace(model: Model, inputs: Inputs, request: Request, recorder: Recorder) -> Trace:
    """Return the requested part of a recording as a trace.

    Layers whose maps differ in shape, or in the tokens that they hold, are traces of their own: the first has the
    others as `other_layers`.
    """
    places = number_calls(model, recorder.calls)
    layers = select_labels(list(places), request.layers, "layer")
    recorded = tuple(recorder.calls)  # where they were computed
    gather_layers(recorder, [places[label] for label in layers], request.gather, model.device)
    groups: dict[Any, dict[int, int]] = {}
    for label in layers:
        call = recorder.calls[places[label]]
        groups.setdefault((tuple(call.attention.shape), call.layout and call.layout.key), {})[label] = places[label]
    first, *others = (_trace_layers(model, inputs, request, recorder, recorded, group) for group in groups.values())
    return replace(first, other_layers=tuple(others)) if others else first


def number_calls(model: Model, calls: Sequence[AttentionCall]) -> dict[int, int]:
    """Return the place of each layer among the calls at a site, by its number."""
    sites = find_sites(model)
    places: dict[int, int] = {}
    for place, call in enumerate(calls):
        label = sites.number(call.name, place)
        if label in places:
            raise CaptureError(
                f"{call.name} computed attention twice in one pass, and layers of this site have the numbers of their "
                "modules: nothing says which of the two is layer "
                f"{label}. This site cannot be captured."
            )
        places[label] = place
    return places


def _trace_layers(
    model: Model,
    inputs: Inputs,
    request: Request,
    recorder: Recorder,
    recorded: Sequence[AttentionCall],
    places: Mapping[int, int],
) -> Trace:
    """Return the trace of layers whose maps have one shape and hold the same tokens."""
    layers, calls = tuple(places), [recorder.calls[place] for place in places.values()]
    batch, head_count, queries_count, keys_count = calls[0].attention.shape
    heads = select_labels(range(head_count), request.heads, "head")
    seen = calls[0].visible()
    seen = None if seen is None else seen.any(1)
    shape = batch, queries_count, keys_count
    sides = find_sites(model).sides_of(request.site)
    examples, queries, keys = inputs.tokens_at(request.site, sides, shape, seen, calls[0].layout)
    selected, visible = _select_and_mask(
        calls, (queries.real, keys.real), heads, keep_pads="pads" in request.keep, checks_padding=not model.family.kinds
    )
    has_values, has_gradient = "values" in request.keep, bool(recorder.gradients)
    output, keep, absent = None, request.keep, dict[str, str]()
    around = _find_around(model, request, recorder, recorded, places, heads, queries.real)
    if any(recorded[place] is not recorder.calls[place] for place in places.values()):
        around = _move(around, calls[0].attention.device)
    keep, absent = keep.difference(around.absent), dict(around.absent)
    lacking = [call.name for call in calls if not has_projection(model, call.name)] if request.optional else []
    if lacking:
        keep, absent = keep - request.optional, absent | {"output": describe_lack(lacking[0])}
    if "output" in keep:
        slices = (output_slices(model, call.name, heads, head_count) for call in calls)
        output = [part.to(call.attention.device) for part, call in zip(slices, calls, strict=True)]
    return Trace(
        site=request.site,
        layers=layers,
        heads=heads,
        attention=[call.attention for call in selected],
        visible=visible,
        queries=queries,
        keys=keys,
        examples=examples,
        values=[call.values for call in selected] if has_values else None,
        context=[call.context for call in selected] if has_values else None,
        output=output,
        gradient=_select_gradient([recorder.gradients[place] for place in places.values()], heads, visible)
        if has_gradient
        else None,
        residual=around.residual,
        readout=around.readout,
        unembedding=around.unembedding,
        model_output=recorder.model_output if "model_output" in request.keep else None,
        held=keep | ({"gradient"} if has_gradient else frozenset()),
        sites=tuple(recorder.sites),
        modules=tuple(find_module(call.name) for call in calls),
        absent=absent,
        source=CapturedModel(model, recorder.names, target=request.target.spec if request.target else None),
        pruned=frozenset(
            (label, head) for label, call in zip(layers, calls, strict=True) for head in call.missing if head in heads
        ),
        # heads share values in groups of consecutive heads, which a selection of heads would break up
        group=calls[0].group if heads == tuple(range(head_count)) and len({call.group for call in calls}) == 1 else 1,
    )


def gather_layers(
    recorder: Recorder, places: Sequence[int], wanted: torch.device | None, default: torch.device
) -> None:
    """Move the calls at these places to one device: that which is wanted, or the default if they lie on several."""
    devices = {recorder.calls[place].attention.device for place in places}
    device = wanted or (default if len(devices) > 1 else None)
    if device is None:
        return
    masks: list[Tensor] = []  # layers often share one mask, of which accelerate makes a copy for each device
    for place in places:
        call = recorder.calls[place]
        mask = None if call.mask is None else call.mask.to(device)
        if mask is not None:
            mask = next((known for known in masks if torch.equal(known, mask)), mask)
            masks.append(mask)
        attention, values, context = (tensor.to(device) for tensor in (call.attention, call.values, call.context))
        recorder.calls[place] = replace(call, attention=attention, values=values, context=context, mask=mask)
        if recorder.gradients:
            recorder.gradients[place] = recorder.gradients[place].to(device)


def _move(value: Any, device: torch.device) -> Any:
    """Return tensors, and what dataclasses, lists and mappings hold of them, on a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{entry.name: _move(getattr(value, entry.name), device) for entry in fields(value)})
    if isinstance(value, Mapping):
        return {name: _move(entry, device) for name, entry in value.items()}
    return [_move(entry, device) for entry in value] if isinstance(value, list | tuple) else value


NOT_FOLLOWED = (
    "The residual stream is not followed where accelerate spreads a model over devices or offloads its weights. Load "
    "it on one device."
)


@dataclass(frozen=True)
class _Around:
    """What is around the heads, or why it is not known."""

    residual: Sequence[Residual] | None = None
    readout: DirectPath | None = None
    unembedding: Unembedding | None = None
    absent: Mapping[str, str] = field(default_factory=dict)


def _find_around(
    model: Model,
    request: Request,
    recorder: Recorder,
    recorded: Sequence[AttentionCall],
    places: Mapping[int, int],
    heads: Sequence[int],
    real: Tensor,
) -> _Around:
    """Return what is around the heads of the wanted layers."""
    wanted = sorted(request.keep & {"residual", "readout", "unembedding"})
    if wanted and is_spread(model.network):
        return _Around(absent=dict.fromkeys(wanted, NOT_FOLLOWED))
    if not wanted or recorder.stream is None:
        return _Around()
    if len(heads) < recorded[0].attention.shape[1]:
        return _Around(absent=dict.fromkeys(wanted, "It is known for all heads of a layer together: leave out heads=."))
    found: dict[str, Any] = {}
    absent: dict[str, str] = {}
    stream, calls = recorder.stream, dict(enumerate(recorded))
    for name in wanted:
        try:
            if name == "residual":
                layers = find_layers(model, stream, {place: calls[place] for place in places.values()}, real)
                last = len(calls) - 1
                found[name] = [make_residual(stream, part, real, last=part.write.place == last) for part in layers]
                continue
            layers, order = find_layers(model, stream, calls, real), [*places.values()]
            if name == "readout":
                found[name] = find_direct_path(stream, layers, order, stream.prediction)
            else:
                found[name] = find_unembedding(stream, layers, order, real)
        except NotFoundError as error:
            absent[name] = str(error)
    return _Around(**found, absent=absent)


def _select_and_mask(
    calls: Sequence[AttentionCall],
    real: tuple[Tensor, Tensor],
    heads: Sequence[int],
    *,
    keep_pads: bool,
    checks_padding: bool,
) -> tuple[list[AttentionCall], list[Tensor]]:
    """Return the calls with only the wanted heads and zeros in place of padding, and which keys each query sees.

    `real` marks the queries and the keys that are not padding; both are on the host. `checks_padding` is for kinds of
    models that no test has checked.
    """
    padded, device = not all(bool(mask.all()) for mask in real), calls[0].attention.device
    if padded:
        queries, keys = copy_to_device(device, real)
        both = queries[:, :, None] & keys[:, None, :]
    else:
        both = all_visible((len(real[0]), real[0].shape[-1], real[1].shape[-1]), device)
    masks: dict[int, Tensor] = {}  # layers often share one mask
    for call in calls:
        if id(call.mask) not in masks:
            seen = call.visible()
            masks[id(call.mask)] = both if seen is None else both & seen
    visible = [masks[id(call.mask)] for call in calls]
    attention, values, context = (
        [getattr(call, name) for call in calls] for name in ("attention", "values", "context")
    )
    if list(heads) != list(range(calls[0].attention.shape[1])):
        (index,) = copy_to_device(device, [torch.tensor(heads)])
        attention, values, context = (
            [layer.index_select(1, index) for layer in layers] for layers in (attention, values, context)
        )
    if padded:  # the softmax of a row of padding is no attention
        rows_of = {id(mask): ~mask.any(-1)[:, None, :, None] for mask in masks.values()}
        blind = [rows_of[id(mask)] for mask in visible]
        for layer, rows in zip(attention, blind, strict=True):
            _clear_rows(layer, rows)
        if checks_padding:
            for call, layer in zip(calls, attention, strict=True):
                check_padding_is_hidden(call.name, layer, keys)
        context = _fill_zeros(context, blind)
        values = values if keep_pads else _fill_zeros(values, [~keys[:, None, :, None]] * len(values))
    tensors = zip(calls, attention, values, context, strict=True)
    return [replace(call, attention=a, values=v, context=c, mask=None) for call, a, v, c in tensors], visible


def check_padding_is_hidden(
    name: str, attention: Float[Tensor, "batch head query key"], keys: Bool[Tensor, "batch key"]
) -> None:
    """Raise CaptureError if tokens attend to padding: what their heads wrote would depend on the batch."""
    padding = (~keys)[:, None, :, None].to(attention)
    if bool((attention.nan_to_num() @ padding).any()):
        raise CaptureError(
            f"In {name} tokens attend to padding, so what the model computes of a text depends on the longest one of "
            "its batch. Capture the texts one by one, or those of one length together."
        )


def _select_gradient(gradients: Sequence[Tensor], heads: Sequence[int], visible: Sequence[Visible]) -> list[Tensor]:
    """Return the gradients of the wanted heads; that of a key which a query cannot see means nothing, and is 0."""
    (index,) = copy_to_device(gradients[0].device, [torch.tensor(heads)])
    return [
        at_least_float32(layer.index_select(1, index)).masked_fill_(~mask[:, None], 0)
        for layer, mask in zip(gradients, visible, strict=True)
    ]


def _clear_rows(layer: Tensor, rows: Tensor) -> None:
    """Set masked rows to zero, in place; on a CPU padding at an end is cut off, and nothing else is read."""
    if layer.device.type != "cpu" or layer.requires_grad:
        layer.masked_fill_(rows, 0)
        return
    for example, masked in zip(layer, rows[:, 0, :, 0], strict=True):
        count = int(masked.sum())
        if count == int(masked[len(masked) - count :].sum()):
            example[:, len(masked) - count :] = 0
        elif count == int(masked[:count].sum()):
            example[:, :count] = 0
        else:
            example.masked_fill_(masked[:, None], 0)


def _fill_zeros(layers: list[Tensor], masks: list[Tensor]) -> list[Tensor]:
    """Set masked rows to zero; on a GPU in one stacked tensor if layers are alike: a launch costs more than a copy."""
    alike = all(layer.shape == layers[0].shape for layer in layers) and len({id(mask) for mask in masks}) == 1
    if layers[0].is_cuda and alike and len(layers) > 1:
        return list(torch.stack(layers).masked_fill_(masks[0], 0))
    return [layer.masked_fill(mask, 0) for layer, mask in zip(layers, masks, strict=True)]
