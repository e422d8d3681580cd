"""Listening at the library's attention interface, and leaving every model as it was.

transformers looks its attention function up by a name in the model's config, at each call. While a capture runs, that
name is one of ours. Our function computes attention with the model file's own eager function and notes what it saw;
called from elsewhere, by a thread that captures nothing, it hands on to the implementation the model had before.
"""

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from headscope.core.errors import CaptureError


@runtime_checkable
class Listener(Protocol):
    """Someone who wants to see attention while a model runs."""

    def knows(self, module: Any) -> bool:
        """Whether this attention module belongs to the model that is being captured."""

    def note(self, module: Any, attention: Tensor, values: Tensor, context: Tensor, mask: Tensor | None) -> None:
        """What one attention module computed."""


_listener: ContextVar[Listener | None] = ContextVar("headscope_listener", default=None)
_lock = threading.Lock()
_names: dict[str, str] = {}  # the implementation a model had -> the name of ours that stands in for it
_borrowed: dict[tuple[int, str], "_Loan"] = {}


@contextmanager
def listening(network: Any, listener: Listener) -> Iterator[None]:
    """Let `listener` see every attention call of `network` made in this context, with the model in evaluation mode."""
    token = _listener.set(listener)
    loans: list[_Loan] = []
    try:
        with _lock:
            for config in _configs(network):
                loans.append(_borrow(config, "_attn_implementation_internal", _stand_in))
            for module in network.modules():
                if module.training or (id(module), "training") in _borrowed:
                    loans.append(_borrow(module, "training", lambda _: False))
        yield
    finally:
        with _lock:
            for loan in reversed(loans):
                loan.give_back()
        _listener.reset(token)


class _Loan:
    """An attribute changed for as long as any capture needs it; the last one to give it back restores it."""

    def __init__(self, owner: Any, attribute: str) -> None:
        self.owner, self.attribute, self.count = owner, attribute, 0
        self.before = getattr(owner, attribute)

    def give_back(self) -> None:
        self.count -= 1
        if self.count == 0:
            del _borrowed[id(self.owner), self.attribute]
            setattr(self.owner, self.attribute, self.before)


def _borrow(owner: Any, attribute: str, change: Callable[[Any], Any]) -> _Loan:
    key = (id(owner), attribute)
    if key not in _borrowed:
        _borrowed[key] = _Loan(owner, attribute)
        setattr(owner, attribute, change(_borrowed[key].before))
    _borrowed[key].count += 1
    return _borrowed[key]


def _stand_in(implementation: str | None) -> str:
    """The name of ours for a model that runs with `implementation`, registered at its first use.

    The name tells nothing of the old one: the library looks for "flash" or "paged" inside such names.
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    before = implementation or "eager"
    if before not in _names:
        _names[before] = f"headscope_{len(_names)}"
        AttentionInterface.register(_names[before], partial(_attend, before))
        AttentionMaskInterface.register(_names[before], partial(_mask, before))
    return _names[before]


def _attend(
    before: str, module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **rest: Any
) -> tuple[Tensor, Tensor | None]:
    listener = _listener.get()
    if listener is None or not listener.knows(module):
        function = _call_site(module, "ALL_ATTENTION_FUNCTIONS").get_interface(before, eager(module))
        handed: tuple[Tensor, Tensor | None] = function(module, query, key, value, mask, **rest)
        return handed
    context, weights = eager(module)(module, query, key, value, mask, **rest)
    listener.note(module, weights, value, context.transpose(1, 2), mask)
    return context, weights


def _mask(before: str, *arguments: Any, **rest: Any) -> Any:
    """The mask for our function is the additive one of eager attention; registering none would mean no mask at all."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    wanted = "eager" if _listener.get() is not None else before
    if wanted not in ALL_MASK_ATTENTION_FUNCTIONS:
        return None  # what the library itself does for an implementation that registered no mask
    return ALL_MASK_ATTENTION_FUNCTIONS[wanted](*arguments, **rest)


def eager(module: Any) -> Any:
    """The eager attention function of the file that this module's class comes from."""
    function = _call_site(module, "eager_attention_forward")
    if function is None:
        raise CaptureError(
            f"{type(module).__name__} calls the attention interface, but {inspect.getmodule(type(module))} has no "
            "eager_attention_forward to compute the weights with. Add a family file that says how to capture it."
        )
    return function


def _call_site(module: Any, name: str) -> Any:
    """A global of the code that called us: a subclass may live elsewhere than the forward it inherits."""
    return inspect.unwrap(type(module).forward).__globals__.get(name)


def _configs(network: Any) -> list[Any]:
    """Every config that the network's modules or their configs hold, each once."""
    from transformers import PreTrainedConfig

    found: dict[int, Any] = {}
    waiting = [getattr(module, "config", None) for module in network.modules()]
    while waiting:
        config = waiting.pop()
        if isinstance(config, PreTrainedConfig) and id(config) not in found:
            found[id(config)] = config
            waiting += [getattr(config, name, None) for name in config.sub_configs]
    return list(found.values())
