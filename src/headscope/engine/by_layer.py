"""Capture one layer at a time while the model runs, so that only one layer's maps are in memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from headscope.core.trace import Trace
from headscope.engine.batch import Inputs
from headscope.engine.capture import Request, make_request, make_trace, prepare_inputs, record
from headscope.engine.model import Model
from headscope.engine.recorder import Recorder, check_recording

Result = TypeVar("Result")


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

    For inputs whose maps do not fit in memory at once: a layer's attention is freed before the next layer begins. The
    other arguments are those of `capture`.

    >>> import headscope as hs
    >>> hs.by_layer(hs.load(), "The cat sat down.", see=lambda trace: trace.layers)
    [(0,), (1,), (2,), (3,), (4,), (5,)]
    """
    request = make_request(model, site, None, heads, keep)
    return map_layers(model, prepare_inputs(model, text, pair, max_length=max_length, pad_to=pad_to), request, see)


def map_layers(model: Model, inputs: Inputs, request: Request, function: Callable[[Trace], Result]) -> list[Result]:
    """Return `function(trace)` for each layer of one batch."""
    results: list[Result] = []

    def process_layer(recorder: Recorder) -> None:
        check_recording(model, recorder)
        trace = make_trace(model, inputs, request, recorder)
        recorder.calls.clear()
        results.append(function(replace(trace, layers=(len(results),))))

    record(model, inputs.tensors, request.site, process_layer)
    return results
