"""Take part in a forward pass: around every block, attention module and linear layer of a network."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import nn


@dataclass(frozen=True)
class WatchedBlocks:
    """Blocks, each of which holds a layer, and what is inside them."""

    blocks: Sequence[Any]
    attention: Mapping[str, tuple[Any, str]]  # attention modules and their sites, by name
    projections: set[int]  # ids of the output projections of attention; empty if they are not known


class BlockWatcher(ABC):
    """What happens around blocks, attention modules and the linear layers in blocks."""

    running = False  # whether a block runs
    before_output = False  # whether an attention module runs and has not reached its output projection

    @abstractmethod
    def run_block(self, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a block, or return something else."""

    @abstractmethod
    def begin_attention(self, site: str) -> None:
        """Take notice of a call of an attention module."""

    @abstractmethod
    def run_leaf(self, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a linear layer in a block, or return something else."""


@contextmanager
def watch_blocks(watched: WatchedBlocks, watcher: BlockWatcher) -> Iterator[None]:
    """Let the watcher take part in calls that this thread makes."""
    leaves = {id(leaf): leaf for block in watched.blocks for leaf in block.modules() if _is_linear(leaf)}
    thread = threading.get_ident()
    with ExitStack() as stack:
        for module, site in watched.attention.values():
            has_projections = bool(watched.projections)
            begin = partial(_begin_attention, watcher, thread, site, has_projections=has_projections)
            stack.enter_context(module.register_forward_pre_hook(begin))
            stack.enter_context(module.register_forward_hook(partial(_end_attention, watcher, thread)))
        for block in watched.blocks:
            stack.enter_context(_replace_forward(block, partial(_run_block, watcher)))
        for leaf in leaves.values() if watched.projections else ():
            is_output = id(leaf) in watched.projections
            stack.enter_context(_replace_forward(leaf, partial(_run_leaf, watcher, is_output=is_output)))
        yield


def _is_linear(module: Any) -> bool:
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"  # of GPT-2


def _begin_attention(watcher: BlockWatcher, thread: int, site: str, *_: Any, has_projections: bool) -> None:
    if threading.get_ident() == thread:
        watcher.before_output = has_projections and watcher.running
        watcher.begin_attention(site)


def _end_attention(watcher: BlockWatcher, thread: int, *_: Any) -> None:
    if threading.get_ident() == thread:
        watcher.before_output = False


def _run_block(watcher: BlockWatcher, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    watcher.running = True
    try:
        return watcher.run_block(forward, args, kwargs)
    finally:
        watcher.running = False


def _run_leaf(watcher: BlockWatcher, forward: Callable[..., Any], args: Any, kwargs: Any, *, is_output: bool) -> Any:
    if is_output:
        watcher.before_output = False
    return watcher.run_leaf(forward, args, kwargs)


Run = Callable[[Callable[..., Any], Any, Any], Any]
"""Runs a forward with arguments and keyword arguments, or does something else."""


@dataclass
class _ReplacedForward:
    """The forward of a module before it was replaced, and what takes part in its calls, in each thread."""

    own: Callable[..., Any] | None  # None if the module has that of its class
    forward: Callable[..., Any]
    runs: list[tuple[int, Run]] = field(default_factory=list)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.forward
        for thread, run in tuple(self.runs):
            if thread == threading.get_ident():
                call = partial(_call, run, call)
        return call(*args, **kwargs)


def _call(run: Run, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return run(forward, args, kwargs)


_lock = threading.RLock()
_replaced: dict[int, _ReplacedForward] = {}  # by id of the module


@contextmanager
def _replace_forward(module: Any, run: Run) -> Iterator[None]:
    """Let calls of a module that this thread makes go through `run(forward, args, kwargs)`.

    Threads that share a network end in any order: the last one restores the forward.
    """
    entry = (threading.get_ident(), run)
    with _lock:
        replaced = _replaced.get(id(module))
        if replaced is None:
            replaced = _replaced[id(module)] = _ReplacedForward(module.__dict__.get("forward"), module.forward)
            module.forward = replaced
        replaced.runs.append(entry)
    try:
        yield
    finally:
        with _lock:
            replaced.runs.remove(entry)
            if not replaced.runs:
                _restore_forward(module)


def _restore_forward(module: Any) -> None:
    own = _replaced.pop(id(module)).own
    if own is None:
        del module.forward
    else:
        module.forward = own
