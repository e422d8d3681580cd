"""Run a network from a layer on: the layers below return what they computed before, for several copies of a batch.

A block is a module that holds all of a layer, such as `encoder.layer.3`. The blocks of a pass are numbered in the order
of their calls, whatever stack they belong to, so that a decoder is resumed without running its encoder. In the first
block that runs, projections before the edited attention, such as those of queries, return what they did, too. Where an
edit changes one token of each row, what follows attention in that block runs for that token alone. In the last block it
runs only for the tokens that the model's head reads, where these are known.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from headscope.core.errors import CaptureError, HeadscopeError
from headscope.engine.edited import find_attention_modules
from headscope.engine.model import Model
from headscope.engine.recording.interface import find_editors
from headscope.engine.recording.output_projection import find_projection
from headscope.engine.recording.sites import find_sites
from headscope.engine.resuming.watch import BlockWatcher, WatchedBlocks, watch_blocks


class ResumeError(HeadscopeError):
    """A network that cannot be run from a layer on; says why."""


@dataclass
class RecordedPass:
    """What the blocks of one pass returned, and the attention calls inside each."""

    outputs: list[Any] = field(default_factory=list)
    calls: list[list[str]] = field(default_factory=list)  # the site of each attention call of a block
    projected: list[list[list[Tensor | None]]] = field(default_factory=list)  # by block, attention call, projection
    outside: int = 0  # attention calls that no block made
    read: Int[Tensor, " row"] | None = None  # the only token of each row that the head of the model reads, if any

    def find_block(self, site: str, layer: int) -> int:
        """Return the number of the block that computes the attention of a layer at a site."""
        for block in range(len(self.calls)):
            if layer < self.count_calls(block + 1)[site]:
                return block
        raise ResumeError(f"no block computes layer {layer} of '{site}'")

    def find_call(self, site: str, layer: int) -> int:
        """Return which of the attention calls of its block that of a layer at a site is."""
        block = self.find_block(site, layer)
        before = layer - self.count_calls(block)[site]
        return [call for call, name in enumerate(self.calls[block]) if name == site][before]

    def count_calls(self, block: int) -> Counter[str]:
        """Return the number of attention calls at each site in the blocks before one."""
        return Counter(site for calls in self.calls[:block] for site in calls)


def find_blocks(model: Model) -> WatchedBlocks:
    """Return the blocks of a model, the outermost numbered modules around attention; without any, raise ResumeError."""
    network, sites = model.network, find_sites(model)
    attention = {name: sites.find(name) for name in find_attention_modules(model).values()}
    if any(find_editors(network.get_submodule(name)) for name in attention):
        raise ResumeError("the model is being edited already")
    if any(module._compiled_call_impl or hasattr(module, "_orig_mod") for module in network.modules()):
        raise ResumeError("the model is compiled")
    blocks = dict.fromkeys(_find_block(network, name) for name in attention)
    try:
        projections = {id(find_projection(model, name)) for name in attention}
    except CaptureError:
        projections = set()
    modules = {name: network.get_submodule(name) for name in (*blocks, *attention)}
    return WatchedBlocks(
        blocks=[modules[name] for name in blocks],
        attention={site_name: (modules[site_name], site) for site_name, site in attention.items()},
        projections=projections,
    )


def _find_block(network: Any, name: str) -> str:
    """Return the name of the outermost numbered module with a forward around an attention module."""
    names = name.split(".")
    for end in range(1, len(names) + 1):
        module = network.get_submodule(".".join(names[:end]))
        if names[end - 1].isdigit() and not isinstance(module, nn.ModuleList | nn.ModuleDict):
            return ".".join(names[:end])
    raise ResumeError(f"the attention module '{name}' is in no numbered layer")


@contextmanager
def record_blocks(blocks: WatchedBlocks) -> Iterator[RecordedPass]:
    """Keep what the blocks, and the projections before attention, return in the next pass."""
    recorder = _Recorder()
    with watch_blocks(blocks, recorder):
        yield recorder.recorded


@contextmanager
def resume_at(
    blocks: WatchedBlocks,
    recorded: RecordedPass,
    block: int,
    copies: int,
    first_call: int = 0,
    changed: Int[Tensor, " row"] | None = None,
) -> Iterator[None]:
    """Let the blocks before one return what they did, repeated for several copies of the batch, in the next pass.

    In that block attention is changed from the call `first_call` on. If all that changes in a row is one token, as
    where one query attends otherwise, `changed` says which: all others keep what the block returned before.
    """
    with watch_blocks(blocks, _Resumed(recorded, block, copies, first_call, changed)):
        yield


@dataclass
class _Recorder(BlockWatcher):
    """Keeps outputs of blocks and of projections before attention."""

    recorded: RecordedPass = field(default_factory=RecordedPass)

    def run_block(self, forward: Any, args: Any, kwargs: Any) -> Any:
        self.recorded.calls.append([])
        self.recorded.projected.append([])
        output = forward(*args, **kwargs)
        self.recorded.outputs.append(output)
        return output

    def begin_attention(self, site: str) -> None:
        if self.running:
            self.recorded.calls[-1].append(site)
            self.recorded.projected[-1].append([])
        else:
            self.recorded.outside += 1

    def run_leaf(self, forward: Any, args: Any, kwargs: Any) -> Any:
        output = forward(*args, **kwargs)
        if self.before_output:
            self.recorded.projected[-1][-1].append(output)
        return output


@dataclass
class _Resumed(BlockWatcher):
    """Returns recorded outputs, repeated, and runs the rest."""

    recorded: RecordedPass
    block: int  # the first that runs
    copies: int
    first_call: int
    changed: Int[Tensor, " row"] | None = None  # the only token of each row that the block `block` changes
    number: int = -1  # of the running block
    call: int = -1  # of the running attention module, in its block
    leaf: int = 0  # projections of the running attention module so far

    def run_block(self, forward: Any, args: Any, kwargs: Any) -> Any:
        self.number, self.call = self.number + 1, -1
        recorded = self.recorded.outputs[self.number]
        if self.number < self.block:
            return self._repeat(recorded)
        output = forward(*args, **kwargs)
        if self.number == self.block and self.changed is not None:
            return self._keep_others(recorded, output, self.changed)
        if self.recorded.read is None or self.number < len(self.recorded.outputs) - 1:
            return output
        return _expand_tokens(output, get_hidden(recorded).shape[1])

    def begin_attention(self, site: str) -> None:  # noqa: ARG002  (for those who record)
        self.call, self.leaf = self.call + 1, 0

    def run_leaf(self, forward: Any, args: Any, kwargs: Any) -> Any:
        if self.before_output:
            projected = self.recorded.projected[self.block][self.call] if self._is_unchanged() else []
            self.leaf += 1
            if self.leaf <= len(projected) and is_batch(
                projected[self.leaf - 1], len(get_hidden(self.recorded.outputs[0]))
            ):
                return self._repeat(projected[self.leaf - 1])
        elif (tokens := self._find_tokens()) is not None and args and args[0].ndim == 3 and args[0].shape[1] > 1:
            rows = torch.arange(len(args[0]), device=args[0].device)
            few_tokens = args[0][rows, tokens][:, None]  # broadcasts against all tokens
            return forward(few_tokens, *args[1:], **kwargs)
        return forward(*args, **kwargs)

    def _is_unchanged(self) -> bool:
        """Whether the inputs of the running attention module are those that were recorded."""
        return self.number == self.block and self.call <= self.first_call

    def _find_tokens(self) -> Int[Tensor, " row"] | None:
        """Return the only token of each row that matters after the last attention of a block; None if several do."""
        if not self.running or self.call != len(self.recorded.calls[self.number]) - 1:
            return None
        if self.number == self.block and self.changed is not None:
            return self.changed
        if self.recorded.read is None or self.number < len(self.recorded.outputs) - 1:
            return None
        return self.recorded.read.repeat(self.copies)

    def _keep_others(self, recorded: Any, output: Any, changed: Int[Tensor, " row"]) -> Any:
        """Return what a block returned before, with one token of each row as it is now."""
        hidden, kept = get_hidden(output), self._repeat(get_hidden(recorded))
        rows = torch.arange(len(kept), device=kept.device)
        kept[rows, changed] = hidden[rows, changed if hidden.shape[1] > 1 else torch.zeros_like(changed)]
        return kept if isinstance(output, Tensor) else type(output)([kept, *output[1:]])

    def _repeat(self, output: Any) -> Any:
        return repeat_rows(output, len(get_hidden(self.recorded.outputs[0])), self.copies)


def keep_tokens(recorded: RecordedPass, tokens: Int[Tensor, " row"]) -> RecordedPass:
    """Return a recorded pass in which the last block returns NaN for all tokens of a row but one."""
    output = recorded.outputs[-1]
    hidden = torch.full_like(get_hidden(output), torch.nan)
    rows = torch.arange(len(hidden), device=hidden.device)
    hidden[rows, tokens] = get_hidden(output)[rows, tokens]
    changed = hidden if isinstance(output, Tensor) else type(output)([hidden, *output[1:]])
    return replace(recorded, outputs=[*recorded.outputs[:-1], changed])


def find_read_token(
    blocks: WatchedBlocks,
    recorded: RecordedPass,
    candidates: Iterable[Int[Tensor, " row"]],
    compute: Callable[[], Tensor],
    expected: Tensor,
) -> Int[Tensor, " row"] | None:
    """Return the first of the candidates, a token of each row, that is all that the head of the model reads.

    With NaN in place of what the last block returned for all others, `compute` still gives what is expected.
    """
    for tokens in candidates:
        if int(tokens.max()) >= get_hidden(recorded.outputs[-1]).shape[1]:
            continue
        with resume_at(blocks, keep_tokens(recorded, tokens), len(recorded.outputs), 1):
            if torch.equal(compute(), expected):
                return tokens
    return None


def get_hidden(output: Any) -> Tensor:
    """Return the hidden states, from what a block returned: these, or a tuple that begins with them."""
    hidden = output[0] if isinstance(output, tuple | list) and output else output
    if not isinstance(hidden, Tensor) or hidden.ndim != 3:
        raise ResumeError(f"a layer returns {_describe(hidden)}, where hidden states are expected")
    return hidden


def is_batch(output: Any, rows: int) -> bool:
    """Whether an output has hidden states, or something alike, for each row of a batch."""
    return isinstance(output, Tensor) and output.ndim >= 3 and len(output) == rows


def repeat_rows(output: Any, rows: int, copies: int) -> Any:
    """Return what a block returned with its rows repeated; what all rows share, such as biases of positions, stays."""
    if output is None or isinstance(output, int | float | str):
        return output
    if isinstance(output, tuple | list):
        return type(output)(repeat_rows(value, rows, copies) for value in output)
    if is_batch(output, rows):
        return output.repeat(copies, *(1,) * (output.ndim - 1))
    if isinstance(output, Tensor) and output.ndim >= 3 and len(output) == 1:
        return output
    raise ResumeError(f"a layer returns {_describe(output)}, which cannot be repeated for copies of a batch")


def _expand_tokens(output: Any, tokens: int) -> Any:
    """Return the hidden states of one token as those of all."""
    hidden = get_hidden(output)
    expanded = hidden.expand(-1, tokens, -1)
    return expanded if isinstance(output, Tensor) else type(output)([expanded, *output[1:]])


def _describe(output: Any) -> str:
    return f"a tensor of shape {list(output.shape)}" if isinstance(output, Tensor) else f"a {type(output).__name__}"
