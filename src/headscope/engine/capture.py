"""Capture the attention and values of a model over texts."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import torch

from headscope.core.errors import CaptureError, DataWarning, InputError
from headscope.core.options import takes_options
from headscope.core.target import parse_target
from headscope.core.trace import Trace
from headscope.core.trace.nan_attention import warn_about_nan
from headscope.data.reading.read import read_texts
from headscope.engine.batch import Inputs, inputs_from_tensors, make_batches, read_inputs
from headscope.engine.device import check_device
from headscope.engine.gradient import allow_gradients, compute_gradients, detach_output, read_stream
from headscope.engine.images import process_images, reads_images
from headscope.engine.loss import mask_inputs
from headscope.engine.main_input import check_is_text, forward_parameters
from headscope.engine.model import Model, check_model, name_modules
from headscope.engine.offloaded import is_spread
from headscope.engine.options import CaptureOptions, RecordOptions, StreamOptions
from headscope.engine.readout import find_readout
from headscope.engine.recording.blocks import Blocks
from headscope.engine.recording.interface import is_editing, mark_forwards, record_interface
from headscope.engine.recording.make_trace import Request, make_trace
from headscope.engine.recording.recorder import Recorder, check_recording
from headscope.engine.recording.sites import find_sites
from headscope.engine.recording.stream import Stream, follow_stream
from headscope.engine.recording.unembedding import read_unembedding
from headscope.engine.recording.verify import ATTENTIONS, run_recorded, verify_first
from headscope.engine.resuming.blocks import add_blocks, record_blocks_around
from headscope.engine.sound import is_sound, process_sounds, reads_sounds

CAPTURABLE = frozenset({"attention", "values", "output", "pads"})
"""What is known of each layer while the model runs."""

AROUND = frozenset({"residual", "readout", "unembedding"})
"""What is around the heads, for which the residual stream of the pass is followed."""

WHOLE = CAPTURABLE | AROUND | {"blocks"}
"""What a measurement can keep of a whole forward pass."""

KEEPABLE = WHOLE | {"model_output"}
"""What a capture of a whole forward pass can keep."""

Result = TypeVar("Result")


@takes_options(CaptureOptions)
def capture(options: CaptureOptions) -> Trace:
    """Run the model on a text, on anything that `hs.read` reads, or on a tokenized batch, and return its attention.

    All of it is one batch; `hs.stream` goes batch by batch. A mapping with `input_ids`, `pixel_values` or
    whatever the network's forward reads is passed to the model unchanged. In a model with several towers (CLIP, LLaVA),
    `site` is the module's name, such as "vision_tower"; by default the one that reads the text.

    `keep` names "attention", "values", "output" (W_O), "pads" (the values of padding) and "model_output" (what the
    network returned, such as logits; with `labels` in a tokenized batch also the loss). "residual" is what is around
    the heads of each layer, "readout", with a target, how the prediction reads what they write, "unembedding" how the
    logits of the text's own words read it, and "blocks" the layers themselves, which can then be run again.

    With a `target`, also a function from the model's output to one number for each example, the gradient of the
    prediction with respect to the attention weights is kept as `Trace.gradient`. Attention and predictions are the
    same as without.

    With `rows`, the trace holds some queries of each map, and all keys. The model reads the whole text, but no map of
    queries × keys is made, so that texts of tens of thousands of tokens can be looked at. Lenses that read one row at a
    time, such as raw and effective, apply.

    The first capture of a model, and of each precision, device and kind of input, runs the model once more without
    recording. It raises CaptureError if the outputs differ, and warns of attention that no trace of this model holds.

    >>> trace = hs.capture(model, ["The cat sat down.", "It rained."], layers=[0, -1], keep=("values",))
    >>> trace
    Trace(self attention of 2 examples, 2 layers × 12 heads, up to 7 tokens; holds attention, values)
    """
    request, sizes = _read_request(options.model, options)
    inputs = prepare_inputs(options.model, options.text, options.pair, **sizes)
    if options.rows is None:
        trace = capture_batch(options.model, inputs, request)
    else:
        trace = _capture_rows(options.model, inputs, request, options.rows)
    for part in (trace, *trace.other_layers):
        warn_about_nan(part, stacklevel=4)
    if trace.other_layers:
        warn_about_other_layers(trace, stacklevel=4)
    return trace


def _capture_rows(model: Model, inputs: Inputs, request: Request, rows: Sequence[int] | int) -> Trace:
    from headscope.engine.blocks import capture_rows

    if request.target is not None:
        raise InputError(
            "A gradient is known after all of a map, and with rows no map is whole. Leave out rows or target."
        )
    if "model_output" in request.keep and not request.optional:
        raise InputError("With rows, the model's output is not kept. Leave model_output out of keep.")
    return capture_rows(model, inputs, replace(request, keep=request.keep - {"model_output"}), rows)


def warn_about_other_layers(trace: Trace, *, stacklevel: int) -> None:
    """Say which layers a trace holds, and where the others are."""
    warnings.warn(
        f"The maps of these layers differ in shape, or in the tokens that they hold: this trace is of layers "
        f"{list(trace.layers)}, and trace.other_layers holds {trace.describe_other_layers()}, a trace each. "
        f"layers={list(trace.other_layers[0].layers)} captures one of them by itself.",
        DataWarning,
        stacklevel=stacklevel,
    )


@takes_options(StreamOptions)
def stream(options: StreamOptions) -> Iterator[Trace]:
    """Capture batch after batch, in order; only one batch is in memory at a time.

    >>> [len(trace.examples) for trace in hs.stream(model, ["One.", "Two.", "Three."], batch_size=2)]
    [2, 1]
    """
    model, batch_size = options.model, options.batch_size
    request, sizes = _read_request(model, options)
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, but got {batch_size}.")
    batches = make_batches(model, read_inputs(model, options.data), batch_size, **sizes)

    def traces() -> Iterator[Trace]:
        for inputs in batches:
            trace = capture_batch(model, inputs, request)
            warn_about_nan(trace)
            yield trace

    return traces()


def _read_request(model: Model, options: RecordOptions) -> tuple[Request, dict[str, Any]]:
    """Return what is recorded, and the sizes of the texts."""
    request = make_request(model, options.site, options.layers, options.heads, options.keep, KEEPABLE, options.target)
    if options.gather is not None:
        check_device(options.gather)
        request = replace(request, gather=torch.device(options.gather))
    return request, {name: getattr(options, name) for name in ("max_length", "pad_to", "pad_positions")}


def by_layer(
    model: Model,
    text: Any,
    pair: Any = None,
    *,
    see: Callable[[Trace], Result],
    site: str | None = None,
    heads: Sequence[int] | int | None = None,
    keep: Sequence[str] = (),
    max_length: int | None = None,
    pad_to: int | None = None,
) -> list[Result]:
    """Call `see` with the trace of each layer while the model runs, and return the results.

    For inputs whose maps do not fit in memory at once: a layer's attention is freed before the next layer begins. In a
    model on several devices each trace lies where its layer ran.
    There is no `target`: gradients are known after the last layer.

    Parameters
    ----------
    model
        A model, as `hs.load` returns it.
    text, pair
        A text, or anything that `hs.capture` takes, and the second text of each.
    see
        A function of the trace of one layer.
    site, heads, keep, max_length, pad_to
        As for `hs.capture`.

    >>> import headscope as hs
    >>> hs.by_layer(hs.load(), "The cat sat down.", see=lambda trace: trace.layers)
    [(0,), (1,), (2,), (3,), (4,), (5,)]
    """
    request = make_request(model, site, None, heads, keep, CAPTURABLE)
    warned = False

    def check_and_see(trace: Trace) -> Result:
        nonlocal warned
        warned = warned or warn_about_nan(trace, stacklevel=2)
        return see(trace)

    inputs = prepare_inputs(model, text, pair, max_length=max_length, pad_to=pad_to)
    return map_layers(model, inputs, request, check_and_see)


def prepare_inputs(
    model: Model, text: Any, pair: Any, *, max_length: int | None, pad_to: int | None, pad_positions: str = "model"
) -> Inputs:
    """Return one batch from the texts, the images or the tokenized batch that a user passes."""
    has_options = pair is not None or max_length is not None or pad_to is not None or pad_positions != "model"
    if isinstance(text, Mapping) and not (reads_sounds(model) and is_sound(text)):
        if has_options:
            raise InputError("A tokenized batch goes in as it is: leave out pair, max_length and pad_to.")
        return inputs_from_tensors(model, text)
    if reads_images(model):
        if has_options:
            raise InputError("A picture goes in whole and alone: leave out pair, max_length and pad_to.")
        return inputs_from_tensors(model, *process_images(model, text))
    if reads_sounds(model):
        if has_options:
            raise InputError(
                "A sound goes in whole and alone: leave out pair, max_length and pad_to. What a decoder reads goes in "
                "a processed batch: hs.capture(model, {'input_features': …, 'decoder_input_ids': …})."
            )
        return inputs_from_tensors(model, *process_sounds(model, text))
    check_is_text(model, text)
    examples = read_texts(text, pair)
    sizes: dict[str, Any] = {"max_length": max_length, "pad_to": pad_to, "pad_positions": pad_positions}
    (inputs,) = make_batches(model, examples, len(examples), **sizes)
    return inputs


def make_request(
    model: Any,
    site: str | None = None,
    layers: Any = None,
    heads: Any = None,
    keep: Sequence[str] = (),
    available: frozenset[str] = WHOLE,
    target: Any = None,
) -> Request:
    """Check the options of a capture and fill in the defaults; `available` is what can be kept."""
    check_model(model)
    names = frozenset([keep] if isinstance(keep, str) else keep)
    if target is not None:
        names -= {"gradient"}  # is kept
    if "gradient" in names:
        raise InputError(
            "The gradient is kept where a target is given, not with keep: hs.capture(model, text, target='predicted'). "
            "hs.by_layer and hs.generate have none, because a gradient is known only after the last layer."
        )
    if unknown := names - available:
        raise InputError(f"Cannot keep {', '.join(sorted(unknown))}. What can be kept: {', '.join(sorted(available))}.")
    optional: frozenset[str] = frozenset() if names else frozenset({"output"})
    names = names or available - {"pads", "blocks"} - AROUND
    if "pads" in names:
        names |= {"values"}
    if "readout" in names and target is None:
        raise InputError(
            "keep='readout' is how a prediction reads what the heads write, but no target was given. Say of which "
            "prediction: hs.capture(model, text, target='predicted', keep=…)."
        )
    parsed = None if target is None else parse_target(target)
    return Request(site or find_sites(model).main, layers, heads, names | {"attention"}, optional, parsed)


def capture_batch(model: Model, inputs: Inputs, request: Request) -> Trace:
    """Run one forward pass, and return the trace of the requested site."""
    if "blocks" not in request.keep:
        return _run_batch(model, inputs, request)[0]
    with record_blocks_around(model) as recorded:
        trace, recorder = _run_batch(model, inputs, request)
    return add_blocks(model, trace, recorder, recorded)


def _run_batch(model: Model, inputs: Inputs, request: Request) -> tuple[Trace, Recorder]:
    if request.target is None:
        recorder = record(model, inputs.tensors, request.site, follows=request.keep & AROUND)
    else:
        inputs = mask_inputs(model, inputs, request.target.seed) if request.target.kind == "loss" else inputs
        recorder = record_gradient(model, inputs, request)
    return make_trace(model, inputs, request, recorder), recorder


def map_layers(model: Model, inputs: Inputs, request: Request, function: Callable[[Trace], Result]) -> list[Result]:
    """Return `function(trace)` for each layer of one batch."""
    results: list[Result] = []

    def process_layer(recorder: Recorder) -> None:
        check_recording(model, recorder)
        trace = make_trace(model, inputs, request, recorder)
        recorder.calls.clear()
        label = find_sites(model).number(trace.modules[0], len(results))
        pruned = frozenset((label, head) for _, head in trace.pruned)
        results.append(function(replace(trace, layers=(label,), pruned=pruned)))

    if "output" in request.keep:  # a layer's projection is found after its attention
        verify_first(model, inputs.tensors, lambda: record(model, inputs.tensors, request.site))
    record(model, inputs.tensors, request.site, process_layer)
    return results


def record(
    model: Model,
    tensors: Mapping[str, Any],
    site: str,
    on_call: Callable[[Recorder], None] | None = None,
    blocks: Blocks | None = None,
    *,
    follows: frozenset[str] = frozenset(),
) -> Recorder:
    """Run one forward pass, and record the attention calls at one site, or hand their queries on in blocks.

    `follows` names what of `AROUND` is kept.

    BigBird replaces its attention modules while it reads its first short text, which is then read again.
    """
    if is_editing() or follows:  # output projections are found in a first pass
        verify_first(model, tensors, lambda: record(model, tensors, site))
    modules = name_modules(model.network).keys()
    try:
        return _record(model, tensors, site, on_call, blocks, follows=follows)
    except CaptureError:
        if name_modules(model.network).keys() == modules:
            raise
    return _record(model, tensors, site, on_call, blocks, follows=follows)


def _record(
    model: Model,
    tensors: Mapping[str, Any],
    site: str,
    on_call: Callable[[Recorder], None] | None,
    blocks: Blocks | None,
    *,
    follows: frozenset[str],
) -> Recorder:
    calls = record_calls(model, site, on_call, blocks=blocks)
    with torch.no_grad(), calls as recorder, _follow(model, recorder, follows) as stream:
        output = run_recorded(model, recorder, _add_choice_axis(model, tensors))
        if stream is not None and "unembedding" in follows:
            stream.unembedding = read_unembedding(model, tensors, output, stream)
    recorder.model_output = _drop_attentions(output)
    return recorder


def record_gradient(model: Model, inputs: Inputs, request: Request) -> Recorder:
    """Run one forward and one backward pass, and record attention and the gradient of the target."""
    assert request.target is not None
    follows = request.keep & AROUND
    if is_editing() or follows:
        verify_first(model, inputs.tensors, lambda: record(model, inputs.tensors, request.site))
    with (
        allow_gradients(inputs.tensors) as tensors,
        record_calls(model, request.site, keeps_graph=True) as recorder,
        _follow(model, recorder, follows) as stream,
    ):
        output = run_recorded(model, recorder, _add_choice_axis(model, tensors))
        readout = find_readout(model, inputs, output, request.target)
        if stream is not None and "readout" in request.keep:
            stream.prediction = read_stream(readout, output, stream)
        if stream is not None and "unembedding" in request.keep:
            stream.unembedding = read_unembedding(model, tensors, output, stream)
        recorder.gradients = compute_gradients(readout, output, recorder)
    recorder.model_output = detach_output(_drop_attentions(output))
    return recorder


@contextmanager
def _follow(model: Model, recorder: Recorder, follows: frozenset[str]) -> Iterator[Stream | None]:
    """Follow the residual stream in a block, or nothing."""
    if not follows or is_spread(model.network):
        yield None
        return
    with follow_stream(model, recorder, reads_path=not follows <= {"residual"}) as stream:
        recorder.stream = stream
        yield stream


def _add_choice_axis(model: Model, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return inputs with a choice axis of size 1 for a multiple-choice model, which expects that axis."""
    if not type(model.network).__name__.endswith("ForMultipleChoice"):
        return tensors
    return {name: tensor[:, None] if isinstance(tensor, torch.Tensor) else tensor for name, tensor in tensors.items()}


def _drop_attentions(output: Any) -> Any:
    """Return a model's output without attention: the trace holds what was asked for, and the rest can be freed."""
    if not isinstance(output, Mapping) or not ATTENTIONS & output.keys():
        return output
    output_class: Any = type(output)
    return output_class(**{name: value for name, value in output.items() if name not in ATTENTIONS})


@contextmanager
def record_calls(
    model: Model,
    site: str,
    on_call: Callable[[Recorder], None] | None = None,
    *,
    keeps_graph: bool = False,
    blocks: Blocks | None = None,
) -> Iterator[Recorder]:
    """Record the attention calls of a block at one site."""
    sites = find_sites(model)
    tested = bool(model.family.kinds) and not sites.bypasses  # known to compute attention once in each call
    recorder = Recorder(
        name_modules(model.network),
        sites.find,
        site,
        on_call,
        marks_forwards=not tested,
        keeps_graph=keeps_graph,
        reads_pictures="pixel_values" in forward_parameters(model.network),
        blocks=blocks,
    )
    modules = [] if tested else map(model.network.get_submodule, sites.modules)
    pictures = sites.sides_of(site) == (None, None) or model.network.main_input_name == "pixel_values"
    with record_interface(recorder), mark_forwards(recorder, modules, follows_tokens=pictures):
        yield recorder
