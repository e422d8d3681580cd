"""Run the block around a layer's heads again, with other contexts in place of what the heads wrote."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils._pytree import tree_map

from headscope.core.errors import CaptureError, HeadscopeError
from headscope.core.trace import Trace
from headscope.engine.edited import find_attention_modules
from headscope.engine.model import Model
from headscope.engine.recording.interface import edit_interface, find_recorder
from headscope.engine.recording.make_trace import number_calls
from headscope.engine.recording.recorder import AttentionCall, Recorder
from headscope.engine.resuming.resume import ResumeError, find_blocks, get_hidden
from headscope.engine.resuming.watch import BlockWatcher, watch_blocks

SAME, SAME_IN_HALF = 1e-5, 2e-2
"""By how much of its largest output a block may differ when it is run again."""


@dataclass(frozen=True)
class BlockCall:
    """A call of a block, and which of the attention calls at the recorded site it made."""

    forward: Any
    arguments: Sequence[Any]
    keywords: Mapping[str, Any]
    output: Any
    attention: range


@dataclass
class RecordedBlocks(BlockWatcher):
    """Keeps the calls of blocks in the last pass that was recorded; or why there are none."""

    calls: list[BlockCall] = field(default_factory=list)
    recorder: Recorder | None = None
    reason: str = ""

    def run_block(self, forward: Any, args: Any, kwargs: Any) -> Any:
        """Run a block, and keep its call if it computes attention at the recorded site."""
        recorder = find_recorder()
        if recorder is None or not recorder.names:  # a pass that is only compared
            return forward(*args, **kwargs)
        if recorder is not self.recorder:
            self.recorder, self.calls = recorder, []
        start = len(recorder.calls)
        output = forward(*args, **kwargs)
        made = range(start, len(recorder.calls))
        if made:
            with _pause_following(recorder):  # what is detached here is no part of the residual stream
                self.calls.append(BlockCall(forward, _detach(args), _detach(kwargs), _detach(output), made))
        return output

    def begin_attention(self, site: str) -> None:
        """Do nothing: the recorder counts."""

    def run_leaf(self, forward: Any, args: Any, kwargs: Any) -> Any:
        """Run a linear layer as ever."""
        return forward(*args, **kwargs)


@contextmanager
def _pause_following(recorder: Recorder) -> Iterator[None]:
    """Let nobody follow the residual stream in this block."""
    stream = recorder.stream
    if stream is None:
        yield
        return
    before, stream.paused = stream.paused, True
    yield
    stream.paused = before


@contextmanager
def record_blocks_around(model: Model) -> Iterator[RecordedBlocks]:
    """Keep the calls of the blocks around attention while the model runs in this `with` block."""
    recorded = RecordedBlocks()
    try:
        blocks = replace(find_blocks(model), projections=set())  # which are run as ever
    except ResumeError as error:
        recorded.reason = str(error)
        yield recorded
        return
    with watch_blocks(blocks, recorded):
        yield recorded


@dataclass(frozen=True, eq=False)
class RunBlock:
    """A `Block` of a model: the call of a module as it was recorded."""

    network: Any
    call: BlockCall
    output: Float[Tensor, "batch query hidden"]
    attention: str  # the module whose context is replaced
    place: int  # which of its calls in the block that is
    names: Mapping[int, str]

    def __call__(self, contexts: Float[Tensor, "row head query value"]) -> Float[Tensor, "row query hidden"]:
        """Return what the block returns if its heads write `contexts`, for copies of the batch."""
        editor = _WriteContexts(self.names, self.attention, self.place, contexts)
        batch, rows = len(self.output), len(contexts)
        arguments, keywords = (
            _repeat(part, batch, rows // batch) for part in (self.call.arguments, self.call.keywords)
        )
        with torch.no_grad(), edit_interface(self.network, editor, evaluate=True):
            output = get_hidden(self.call.forward(*arguments, **keywords))
        if editor.calls <= self.place:
            raise CaptureError(f"{self.attention} was not called when the layer around it was run again.")
        return output


@dataclass(eq=False)
class _WriteContexts:
    """Lets the heads of one attention call write other contexts; an `Editor`."""

    names: Mapping[int, str]
    name: str
    place: int
    contexts: Tensor
    calls: int = 0

    def change(self, call: AttentionCall, product: Tensor | None) -> Tensor:  # noqa: ARG002
        """Return the contexts for the call that is meant, and those of the model for all others."""
        if call.name != self.name:
            return call.context
        self.calls += 1
        return self.contexts.to(call.context.dtype) if self.calls == self.place + 1 else call.context


def add_blocks(model: Model, trace: Trace, recorder: Recorder, recorded: RecordedBlocks) -> Trace:
    """Return a trace with the blocks around its layers; without them, and why, if they cannot be run again."""
    try:
        if recorded.reason:
            raise ResumeError(recorded.reason)
        if trace.other_layers or any(example.part_of is not None for example in trace.examples):
            raise ResumeError("its maps are of windows, or differ from layer to layer")
        places = number_calls(model, recorder.calls)
        blocks = [_find_block(model, recorder, recorded.calls, places[label]) for label in trace.layers]
        for block, label in zip(blocks, trace.layers, strict=True):
            _check_block(block, recorder.calls[places[label]].context)
    except ResumeError as error:
        return _without_blocks(trace, f"The layers of this model cannot be run again by themselves: {error}.")
    return replace(trace, blocks=blocks)


def _without_blocks(trace: Trace, reason: str) -> Trace:
    others = tuple(_without_blocks(other, reason) for other in trace.other_layers)
    absent = {**trace.absent, "blocks": reason}
    return replace(trace, held=trace.held - {"blocks"}, absent=absent, other_layers=others)


def _find_block(model: Model, recorder: Recorder, calls: Sequence[BlockCall], place: int) -> RunBlock:
    """Return the block around one of the recorded attention calls."""
    name = recorder.calls[place].name
    call = next((call for call in calls if place in call.attention), None)
    if call is None:
        raise ResumeError(f"{name} was called outside of them")
    if "#" in name:
        raise ResumeError(f"{name} is one of several computations of attention in one module")
    before = [other for other in call.attention if other < place and recorder.calls[other].name == name]
    names = find_attention_modules(model)
    return RunBlock(model.network, call, get_hidden(call.output), name, len(before), names)


def _check_block(block: RunBlock, context: Float[Tensor, "batch head query value"]) -> None:
    """Raise ResumeError unless two copies of a block with its own context both give what it gave."""
    try:
        output = block(torch.cat([context, context]))
    except (HeadscopeError, RuntimeError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise ResumeError(f"{block.attention} is in one that fails with {type(error).__name__}: {error}") from error
    expected = torch.cat([block.output, block.output])
    if output.shape != expected.shape:
        raise ResumeError(f"for two copies, that around {block.attention} returns shape {list(output.shape)}")
    difference = float((output - expected).abs().max() / expected.abs().max().clamp_min(1e-30))
    if not difference <= (SAME if output.dtype in (torch.float32, torch.float64) else SAME_IN_HALF):
        raise ResumeError(f"that around {block.attention} gives outputs that differ by {difference:.2g} of the largest")


def _repeat(value: Any, batch: int, copies: int) -> Any:
    """Return arguments for several copies of a batch: tensors with a row for each example are repeated."""
    if isinstance(value, tuple | list):
        return type(value)(_repeat(part, batch, copies) for part in value)
    if isinstance(value, dict):
        return {name: _repeat(part, batch, copies) for name, part in value.items()}
    if not isinstance(value, Tensor) or value.ndim < 2 or len(value) != batch:
        return value
    return value.repeat(copies, *(1,) * (value.ndim - 1))


def _detach(value: Any) -> Any:
    return tree_map(lambda part: part.detach() if isinstance(part, Tensor) else part, value)
