"""Attention and values of a model over texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import CaptureError, InputError
from headscope.core.trace import Trace, select_labels
from headscope.core.transfer import copy_to_device
from headscope.data.tokenizing.encode import to_examples
from headscope.engine.batch import Inputs, inputs_from_tensors, make_batches
from headscope.engine.images import process_images
from headscope.engine.model import Model, check_model
from headscope.engine.output_projection import output_slices
from headscope.engine.record import Call, Recorder, record

HOLDABLE = frozenset({"attention", "values", "output", "pads"})


@dataclass(frozen=True)
class Request:
    """What of a forward pass is to be held."""

    site: str
    layers: Sequence[int] | int | None
    heads: Sequence[int] | int | None
    keep: frozenset[str]


def capture(
    model: Model,
    text: Any,
    pair: Any = None,
    *,
    site: str | None = None,
    layers: Sequence[int] | int | None = None,
    heads: Sequence[int] | int | None = None,
    keep: Sequence[str] = (),
    max_length: int | None = None,
    pad_to: int | None = None,
) -> Trace:
    """Run the model on a text, a pair, a list of either, or a tokenised batch, and hold what it attended to.

    Parameters
    ----------
    text, pair
        A text or a list of texts, with a second text each where `pair` is given. For models that read and write
        (T5, BART) `pair` is what the decoder reads. A mapping with `input_ids` or `pixel_values` goes in as it is.
        For models that read pictures (ViT): a path, a PIL image, or a list of either.
    site
        "encoder", "decoder" or "cross" where the model has several; the encoder by default.
    layers, heads
        Which to hold, counted from 0; negative ones from the end. All by default.
    keep
        What to hold: "attention", "values", "output", "pads". By default all but the values of padding ("pads").
    max_length
        Cut texts to this many tokens; by default to what the model can read. Cutting is always said.
    pad_to
        Pad to this many tokens instead of to the longest text.
    """
    request = make_request(model, site, layers, heads, keep)
    return capture_batch(model, prepare_inputs(model, text, pair, max_length=max_length, pad_to=pad_to), request)


def stream(
    model: Model,
    data: Any,
    *,
    batch_size: int = 8,
    site: str | None = None,
    layers: Sequence[int] | int | None = None,
    heads: Sequence[int] | int | None = None,
    keep: Sequence[str] = (),
    max_length: int | None = None,
    pad_to: int | None = None,
) -> Iterator[Trace]:
    """Capture batch after batch, in order; only one batch is held at a time.

    `data` is a list of texts, of pairs or of examples; the rest is as for `capture`.
    """
    request = make_request(model, site, layers, heads, keep)
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, but got {batch_size}.")
    made = make_batches(model, to_examples(data), batch_size, max_length=max_length, pad_to=pad_to)
    return (capture_batch(model, inputs, request) for inputs in made)


def prepare_inputs(model: Model, text: Any, pair: Any, *, max_length: int | None, pad_to: int | None) -> Inputs:
    """One batch, from whatever a user gives to be captured."""
    plain = pair is None and max_length is None and pad_to is None
    if isinstance(text, Mapping):
        if not plain:
            raise InputError("A tokenised batch goes in as it is: leave out pair, max_length and pad_to.")
        return inputs_from_tensors(model, text)
    if model.network.main_input_name == "pixel_values":
        if not plain:
            raise InputError("A picture goes in whole and alone: leave out pair, max_length and pad_to.")
        return inputs_from_tensors(model, *process_images(model, text))
    examples = to_examples(text, pair)
    (inputs,) = make_batches(model, examples, len(examples), max_length=max_length, pad_to=pad_to)
    return inputs


def make_request(model: Any, site: str | None, layers: Any, heads: Any, keep: Sequence[str]) -> Request:
    """What is to be held, checked against what can be."""
    check_model(model)
    asked = frozenset([keep] if isinstance(keep, str) else keep)
    if unknown := asked - HOLDABLE:
        raise InputError(f"Cannot keep {', '.join(sorted(unknown))}. What can be kept: {', '.join(sorted(HOLDABLE))}.")
    if not asked:
        asked = HOLDABLE - {"pads"} - (set() if model.family.projection else {"output"})
    if "pads" in asked:
        asked |= {"values"}
    main = "encoder" if model.network.config.is_encoder_decoder else "self"
    return Request(site or main, layers, heads, asked | {"attention"})


def capture_batch(model: Model, inputs: Inputs, request: Request) -> Trace:
    """One forward pass, and what it showed at the site that was asked for."""
    recorder = record(model, inputs.tensors, request.site)
    return make_trace(model, inputs, request, recorder)


def make_trace(model: Model, inputs: Inputs, request: Request, recorder: Recorder) -> Trace:
    """Build a trace of what was requested from all that was recorded."""
    layers = select_labels(range(len(recorder.calls)), request.layers, "layer")
    calls = [recorder.calls[label] for label in layers]
    check_place(calls)
    every = calls[0].attention.shape[1]
    heads = select_labels(range(every), request.heads, "head")
    queries, keys = inputs.tokens_at(request.site, *calls[0].attention.shape[-2:])
    kept, visible = _cleaned(calls, (queries.real, keys.real), heads, keep_pads="pads" in request.keep)
    output = None
    if "output" in request.keep:
        output = [output_slices(model, call.module, heads, every) for call in calls]
    return Trace(
        site=request.site,
        layers=layers,
        heads=heads,
        attention=[call.attention for call in kept],
        visible=visible,
        queries=queries,
        keys=keys,
        examples=inputs.examples,
        values=[call.values for call in kept] if "values" in request.keep else None,
        context=[call.context for call in kept] if "values" in request.keep else None,
        output=output,
        held=request.keep,
        sites=tuple(sorted(recorder.sites)),
        group=calls[0].group if heads == tuple(range(every)) and len({call.group for call in calls}) == 1 else 1,
    )


def check_place(calls: Sequence[Call]) -> None:
    """Refuse layers that lie on several devices: what is computed over layers could not be computed anywhere."""
    places = sorted({str(call.attention.device) for call in calls})
    if len(places) > 1:
        raise CaptureError(
            f"The layers of this model are spread over {', '.join(places)}, and a trace lies on one device. Load it on "
            "one, or capture those of each device by themselves: layers=[…]."
        )


def _cleaned(
    calls: Sequence[Call], sides: tuple[Tensor, Tensor], heads: Sequence[int], *, keep_pads: bool
) -> tuple[list[Call], list[Tensor]]:
    """The calls with only the wanted heads and without what padding left in them, and who sees whom.

    Tokens lie with the host: `sides` says which queries and keys are real, and is sent where the maps are.
    """
    full, device = all(bool(each.all()) for each in sides), calls[0].attention.device
    queries, keys, index = copy_to_device(device, (*sides, torch.tensor(heads)))
    real = queries[:, :, None] & keys[:, None, :]
    masks: dict[int, tuple[Tensor, Tensor]] = {}  # layers often share one mask
    for call in calls:
        if id(call.mask) not in masks:
            seen = call.seen()
            mask = real if seen is None else real & seen
            masks[id(call.mask)] = mask, ~mask.any(-1)[:, None, :, None]
    visible, blank = map(list, zip(*(masks[id(call.mask)] for call in calls), strict=True))
    attention, values, context = (
        [getattr(call, name) for call in calls] for name in ("attention", "values", "context")
    )
    if list(heads) != list(range(calls[0].attention.shape[1])):
        attention, values, context = (
            [each.index_select(1, index) for each in some] for some in (attention, values, context)
        )
    if not full:  # the softmax of a row of padding is no attention, and its output none either
        for each, rows in zip(attention, blank, strict=True):
            each.masked_fill_(rows, 0)
        context = _blanked(context, blank)
        values = values if keep_pads else _blanked(values, [~keys[:, None, :, None]] * len(values))
    parts = zip(calls, attention, values, context, strict=True)
    return [Call(call.module, maps, thin, made, None) for call, maps, thin, made in parts], visible


def _blanked(layers: list[Tensor], blank: list[Tensor]) -> list[Tensor]:
    """Layers without some of their rows; on a GPU at once where they are alike, for launches cost more than copies."""
    alike = all(each.shape == layers[0].shape for each in layers) and len({id(each) for each in blank}) == 1
    if layers[0].is_cuda and alike and len(layers) > 1:
        return list(torch.stack(layers).masked_fill_(blank[0], 0))
    return [each.masked_fill(rows, 0) for each, rows in zip(layers, blank, strict=True)]
