"""Looking at one layer at a time while the model runs, so that no map outlives its layer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from headscope.core.trace import Trace
from headscope.engine.batch import Inputs
from headscope.engine.capture import Request, make_request, make_trace, prepare_inputs
from headscope.engine.model import Model
from headscope.engine.record import Recorder, check_heard, hearing, recorder_for

Found = TypeVar("Found")


def by_layer(
    model: Model,
    text: Any,
    pair: Any = None,
    *,
    see: Callable[[Trace], Found],
    site: str | None = None,
    heads: Sequence[int] | int | None = None,
    keep: Sequence[str] = (),
    max_length: int | None = None,
    pad_to: int | None = None,
) -> list[Found]:
    """Show every layer to `see` as a trace of its own, while the model runs, and keep only what `see` gives back.

    For inputs whose maps do not fit in memory all at once: a layer's attention is gone when the next one begins. The
    other arguments are those of `capture`.

    >>> import headscope as hs
    >>> hs.by_layer(hs.load(), "The cat sat down.", see=lambda trace: trace.layers)
    [(0,), (1,), (2,), (3,), (4,), (5,)]
    """
    request = make_request(model, site, None, heads, keep)
    return map_layers(model, prepare_inputs(model, text, pair, max_length=max_length, pad_to=pad_to), request, see)


def map_layers(model: Model, inputs: Inputs, request: Request, see: Callable[[Trace], Found]) -> list[Found]:
    """What `see` gives for each layer of one batch, or of those layers that were asked for."""
    teller = _Teller(model, inputs, request, see, recorder_for(model, request.site))
    with torch.no_grad(), hearing(model, teller):
        model.network(**inputs.tensors)
    check_heard(model, teller.recorder)
    return teller.found


@dataclass
class _Teller:
    """Hands each call on as a trace of one layer, and forgets it."""

    model: Model
    inputs: Inputs
    request: Request
    see: Callable[[Trace], Any]
    recorder: Recorder
    found: list[Any] = field(default_factory=list)

    def knows(self, module: Any) -> bool:
        """Whether the module belongs to the model that is being captured."""
        return self.recorder.knows(module)

    def note(self, module: Any, attention: Tensor, values: Tensor, context: Tensor, mask: Tensor | None) -> None:
        """Show one layer, if it is at the site that was asked for."""
        self.recorder.note(module, attention, values, context, mask)
        if self.recorder.calls:
            check_heard(self.model, self.recorder)
            trace = make_trace(self.model, self.inputs, self.request, self.recorder)
            self.recorder.calls.clear()
            self.found.append(self.see(replace(trace, layers=(len(self.found),))))
