"""Run a network from a layer on: the layers below return what they computed before, for several copies of a batch.

A block is a module that holds all of a layer, such as `encoder.layer.3`. The blocks of a pass are numbered in the order
of their calls, whatever stack they belong to, so that a decoder is resumed without running its encoder.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from headscope.core.errors import HeadscopeError
from headscope.engine.edited import find_attention_modules
from headscope.engine.interface import find_editors
from headscope.engine.model import Model
from headscope.engine.sites import find_sites


class ResumeError(HeadscopeError):
    """A network that cannot be run from a layer on; says why."""


@dataclass(frozen=True)
class Blocks:
    """The blocks of a network, and the attention modules inside them."""

    network: Any
    modules: Mapping[str, Any]  # blocks, by name
    attention: Mapping[str, str]  # the site of each attention module, by name


@dataclass
class RecordedPass:
    """What the blocks returned in one pass, and the attention calls inside each, by site."""

    outputs: list[Any] = field(default_factory=list)
    calls: list[Counter[str]] = field(default_factory=list)
    outside: Counter[str] = field(default_factory=Counter)  # attention calls that no block made

    def find_block(self, site: str, layer: int) -> int:
        """Return the number of the block that computes the attention of a layer at a site."""
        for block in range(len(self.calls)):
            if layer < self.count_calls(block + 1)[site]:
                return block
        raise ResumeError(f"no block computes layer {layer} of '{site}'")

    def count_calls(self, block: int) -> Counter[str]:
        """Return the number of attention calls at each site in the blocks before one."""
        return sum(self.calls[:block], Counter[str]())


def find_blocks(model: Model) -> Blocks:
    """Return the blocks of a model: the outermost numbered modules around attention."""
    network, sites = model.network, find_sites(model)
    attention = {name: sites.find(name) for name in find_attention_modules(model).values()}
    if any(find_editors(network.get_submodule(name)) for name in attention):
        raise ResumeError("the model is being edited already")
    blocks = {name: network.get_submodule(name) for name in map(_find_block, [network] * len(attention), attention)}
    if any(module._compiled_call_impl for module in network.modules()):
        raise ResumeError("the model is compiled")
    return Blocks(network, blocks, attention)


def _find_block(network: Any, name: str) -> str:
    """Return the name of the outermost numbered module with a forward around an attention module."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        module = network.get_submodule(".".join(parts[:end]))
        if parts[end - 1].isdigit() and not isinstance(module, nn.ModuleList | nn.ModuleDict):
            return ".".join(parts[:end])
    raise ResumeError(f"the attention module '{name}' is in no numbered layer")


@contextmanager
def record_blocks(blocks: Blocks) -> Iterator[RecordedPass]:
    """Keep what the blocks return in the next pass."""
    recorded, running, thread = RecordedPass(), [False], threading.get_ident()

    def run(forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if running[0]:
            raise ResumeError("layers are inside one another")
        running[0] = True
        recorded.calls.append(Counter())
        output = forward(*args, **kwargs)
        recorded.outputs.append(output)
        running[0] = False
        return output

    def count(site: str) -> None:
        if threading.get_ident() == thread:
            (recorded.calls[-1] if running[0] else recorded.outside)[site] += 1

    with ExitStack() as stack:
        for name, site in blocks.attention.items():
            module = blocks.network.get_submodule(name)
            stack.enter_context(module.register_forward_pre_hook(lambda *_, site=site: count(site)))
        for module in blocks.modules.values():
            stack.enter_context(_replace_forward(module, run))
        yield recorded


@contextmanager
def resume_at(blocks: Blocks, recorded: RecordedPass, block: int, copies: int) -> Iterator[None]:
    """Let the blocks before one return what they did, repeated for several copies of the batch, in the next pass."""
    rows, number = find_rows(recorded.outputs[0]), [0]

    def run(forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        number[0] += 1
        if number[0] <= block:
            return repeat_rows(recorded.outputs[number[0] - 1], rows, copies)
        return forward(*args, **kwargs)

    with ExitStack() as stack:
        for module in blocks.modules.values():
            stack.enter_context(_replace_forward(module, run))
        yield


@contextmanager
def _replace_forward(module: Any, run: Callable[..., Any]) -> Iterator[None]:
    """Let calls of a module that this thread makes go through `run(forward, args, kwargs)`."""
    own, forward, thread = module.__dict__.get("forward"), module.forward, threading.get_ident()

    def replacement(*args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != thread:
            return forward(*args, **kwargs)
        return run(forward, args, kwargs)

    module.forward = replacement
    try:
        yield
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


def find_rows(output: Any) -> int:
    """Return the number of rows of a batch, from what a block returned: hidden states, maybe first in a tuple."""
    hidden = output[0] if isinstance(output, tuple | list) and output else output
    if not isinstance(hidden, Tensor) or hidden.ndim != 3:
        raise ResumeError(f"a layer returns {_describe(hidden)}, where hidden states are expected")
    return len(hidden)


def repeat_rows(output: Any, rows: int, copies: int) -> Any:
    """Return what a block returned with its rows repeated; what all rows share, such as biases of positions, stays."""
    if output is None or isinstance(output, int | float | str):
        return output
    if isinstance(output, tuple | list):
        return type(output)(repeat_rows(part, rows, copies) for part in output)
    if isinstance(output, Tensor) and output.ndim >= 3 and len(output) in (1, rows):
        return output.repeat(copies, *(1,) * (output.ndim - 1)) if len(output) == rows else output
    raise ResumeError(f"a layer returns {_describe(output)}, which cannot be repeated for copies of a batch")


def _describe(output: Any) -> str:
    return f"a tensor of shape {list(output.shape)}" if isinstance(output, Tensor) else f"a {type(output).__name__}"
