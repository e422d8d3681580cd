"""Listening at the library's attention interface, and leaving every model as it was.

transformers looks its attention function up by a name in the model's config, at each call. While a capture or an edit
runs, that name is one of ours. Our function computes attention with the model file's own eager function, lets a
listener note what it saw, and lets editors change what the heads write; called from elsewhere, by a thread that does
neither, it hands on to the implementation the model had before.
"""

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from headscope.core.errors import CaptureError
from headscope.engine.model import all_modules


@runtime_checkable
class Listener(Protocol):
    """Someone who wants to see attention while a model runs."""

    def knows(self, module: Any) -> bool:
        """Whether this attention module belongs to the model that is being captured."""

    def note(self, module: Any, attention: Tensor, values: Tensor, context: Tensor, mask: Tensor | None) -> None:
        """What one attention module computed."""


@runtime_checkable
class Editor(Protocol):
    """Someone who wants to change what heads write while a model runs."""

    def knows(self, module: Any) -> bool:
        """Whether this attention module belongs to the model that is being edited."""

    def change(
        self,
        module: Any,
        attention: Tensor,
        values: Tensor,
        context: Tensor,
        mask: Tensor | None,
        product: Tensor | None,
    ) -> Tensor:
        """The context, batch head query value, that the module goes on with; `product` is A·V where it was changed."""


_listener: ContextVar[Listener | None] = ContextVar("headscope_listener", default=None)
_editors: ContextVar[tuple[Editor, ...]] = ContextVar("headscope_editors", default=())
_lock = threading.Lock()
_names: dict[str, str] = {}  # the implementation a model had -> the name of ours that stands in for it
_borrowed: dict[tuple[int, str], "_Loan"] = {}


@contextmanager
def listening(network: Any, listener: Listener) -> Iterator[None]:
    """Let `listener` see every attention call of `network` made in this context, with the model in evaluation mode."""
    token = _listener.set(listener)
    try:
        with _standing_in(network, evaluating=True):
            yield
    finally:
        _listener.reset(token)


@contextmanager
def editing(network: Any, editor: Editor) -> Iterator[None]:
    """Let `editor` change every attention call of `network` made in this context, after the editors there already."""
    token = _editors.set((*_editors.get(), editor))
    try:
        with _standing_in(network, evaluating=False):
            yield
    finally:
        _editors.reset(token)


def edits_here(editor: Editor) -> bool:
    """Whether the editor is at work in this context; it may be in another thread's only."""
    return editor in _editors.get()


def heard_here(*, besides: Editor) -> bool:
    """Whether anyone else listens or edits in this context."""
    return _listener.get() is not None or any(each is not besides for each in _editors.get())


@contextmanager
def _standing_in(network: Any, *, evaluating: bool) -> Iterator[None]:
    """Our function in place of the network's own."""
    loans: list[_Loan] = []
    try:
        modules = all_modules(network)
        with _lock:
            for config in _configs(modules):
                loans.append(_borrow(config, "_attn_implementation_internal", _stand_in))
            lent = {owner for owner, _ in _borrowed}
            for module in modules:
                if not (module.training or module._compiled_call_impl or id(module) in lent):
                    continue
                if evaluating and (module.training or (id(module), "training") in _borrowed):
                    loans.append(_borrow(module, "training", lambda _: False))
                if module._compiled_call_impl or (id(module), "_compiled_call_impl") in _borrowed:
                    loans.append(_borrow(module, "_compiled_call_impl", lambda _: None))  # compiled code hears nobody
        yield
    finally:
        with _lock:
            for loan in reversed(loans):
                loan.give_back()


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
    heard = listener is not None and listener.knows(module)
    editors = [each for each in _editors.get() if each.knows(module)]
    if not heard and not editors:
        function = _call_site(module, "ALL_ATTENTION_FUNCTIONS").get_interface(before, eager(module))
        handed: tuple[Tensor, Tensor | None] = function(module, query, key, value, mask, **rest)
        return handed
    context, weights = eager(module)(module, query, key, value, mask, **rest)
    if listener is not None and heard:
        listener.note(module, weights, value, context.transpose(1, 2), mask)
    product = written = context.transpose(1, 2)
    for editor in editors:
        written = editor.change(module, weights, value, written, mask, None if written is product else product)
    return (written.transpose(1, 2).contiguous() if editors else context), weights


def _mask(before: str, *arguments: Any, **rest: Any) -> Any:
    """The mask for our function is the additive one of eager attention; registering none would mean no mask at all."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    wanted = "eager" if _listener.get() is not None or _editors.get() else before
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


def calls_interface(module: Any) -> bool:
    """Whether the module's forward, or one that it inherits, looks its attention function up by name."""
    forwards = (inspect.unwrap(kind.__dict__["forward"]) for kind in type(module).__mro__ if "forward" in vars(kind))
    codes = (getattr(forward, "__code__", None) for forward in forwards)
    return any("ALL_ATTENTION_FUNCTIONS" in code.co_names for code in codes if code is not None)


def _call_site(module: Any, name: str) -> Any:
    """A global of the code that called us: a subclass may live elsewhere than the forward it inherits."""
    return inspect.unwrap(type(module).forward).__globals__.get(name)


def _configs(modules: Iterable[Any]) -> list[Any]:
    """Every config that the modules or their configs hold, each once."""
    from transformers import PreTrainedConfig

    found: dict[int, Any] = {}
    held = (module.__dict__.get("config") for module in modules)
    waiting = list({id(each): each for each in held if each is not None}.values())
    while waiting:
        config = waiting.pop()
        if isinstance(config, PreTrainedConfig) and id(config) not in found:
            found[id(config)] = config
            waiting += [getattr(config, name, None) for name in config.sub_configs]
    return list(found.values())
