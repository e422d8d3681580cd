"""Record and edit attention through the attention interface of transformers, and restore the model afterwards.

transformers looks up its attention function by a name in the model's config, at each call. During a capture or an edit
that name is one of ours. Our function calls the eager attention function of the model's own file, records the result,
and lets editors change the context. Called from another context, such as another thread, it calls the implementation
that the model had before.
"""

import inspect
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from headscope.core.errors import CaptureError
from headscope.engine.model import name_modules
from headscope.engine.pruning.kept_heads import find_kept_heads
from headscope.engine.recording.recorder import AttentionCall, Recorder, lowest_score, restore_heads, start_graph


@runtime_checkable
class Editor(Protocol):
    """Changes the context of attention calls while a model runs."""

    @property
    def names(self) -> Mapping[int, str]:
        """Names of the attention modules to edit, by id."""

    def change(self, call: AttentionCall, product: Tensor | None) -> Tensor:
        """Return the context to go on with; `product` is A·V if an editor before this one changed the context."""


@dataclass
class _Replaced:
    """An attribute that is replaced for a while."""

    original: Any
    users: int = 1  # captures and edits that need it replaced


Value = TypeVar("Value")
_recorders: ContextVar[tuple[Recorder, ...]] = ContextVar("headscope_recorders", default=())
_editors: ContextVar[tuple[Editor, ...]] = ContextVar("headscope_editors", default=())
_active: set[int] = set()  # ids of the recorders and editors whose blocks have not ended, of all contexts
_lock = threading.RLock()  # a generator that ends an edit may be collected while its thread holds the lock
_names: dict[str, str] = {}  # our name for each implementation that we replace
_replaced: dict[tuple[int, str], _Replaced] = {}  # by id of the owner and name


@contextmanager
def record_interface(recorder: Recorder) -> Iterator[None]:
    """Record the attention calls of the recorder's modules made in this context, with the model in evaluation mode."""
    with _activate(_recorders, recorder), _replace_implementation(recorder.names, evaluate=True):
        yield


@contextmanager
def edit_interface(network: Any, editor: Editor) -> Iterator[None]:
    """Edit every attention call of `network` made in this context, after the editors that are already active."""
    modules = name_modules(network)
    with _activate(_editors, editor), _replace_implementation(modules, evaluate=False):
        yield


@contextmanager
def _activate(variable: ContextVar[tuple[Value, ...]], value: Value) -> Iterator[None]:
    """Activate a recorder or an editor in this context, after the others, until the block ends.

    Blocks need not end in the reverse of the order in which they began, and a generator's block ends in the context
    that closes the generator. A token of the variable fits neither.
    """
    try:
        _active.add(id(value))
        variable.set((*_find_active(variable), value))
        yield
    finally:
        _active.discard(id(value))  # in every context
        variable.set(_find_active(variable))


def _find_active(variable: ContextVar[tuple[Value, ...]]) -> tuple[Value, ...]:
    """Return what is active in this context, in order."""
    return tuple(value for value in variable.get() if id(value) in _active)


def _find_recorder() -> Recorder | None:
    """Return the recorder of this context; of several, the last that began."""
    return next(reversed(_find_active(_recorders)), None)


def is_recording(recorder: Recorder) -> bool:
    """Return True if this context, which another thread does not share, records to `recorder`."""
    return recorder is _find_recorder()


def find_editors(module: Any) -> list[Editor]:
    """Return the editors that are active in this context and edit the module, in order."""
    return [editor for editor in _find_active(_editors) if id(module) in editor.names]


def is_active(editor: Editor) -> bool:
    """Return True if the editor is active in this context; another thread is another context."""
    return editor in _find_active(_editors)


@contextmanager
def _replace_implementation(modules: Collection[Any], *, evaluate: bool) -> Iterator[None]:
    """Replace the attention function of a network, switch off compiled code, and evaluate if asked to."""
    stack = ExitStack()
    try:
        with _lock:
            for config in _find_configs(modules):
                stack.enter_context(_replace(config, "_attn_implementation_internal", _register))
            replaced = {owner for owner, _ in list(_replaced)}
            for module in modules:
                if not (module.training or module._compiled_call_impl or id(module) in replaced):
                    continue
                if evaluate and (module.training or (id(module), "training") in _replaced):
                    stack.enter_context(_replace(module, "training", lambda _: False))
                if module._compiled_call_impl or (id(module), "_compiled_call_impl") in _replaced:
                    stack.enter_context(_replace(module, "_compiled_call_impl", lambda _: None))
        yield
    finally:
        with _lock:
            stack.close()


@contextmanager
def _replace(owner: Any, attribute: str, change: Callable[[Any], Any]) -> Iterator[None]:
    """Replace an attribute; the last of the captures that share it restores the original."""
    key = (id(owner), attribute)
    replaced = _replaced.get(key)
    if replaced is None:
        original = getattr(owner, attribute)
        setattr(owner, attribute, change(original))
        replaced = _replaced[key] = _Replaced(original)
    else:
        replaced.users += 1
    yield
    replaced.users -= 1
    if not replaced.users:
        del _replaced[key]
        setattr(owner, attribute, replaced.original)


def _register(implementation: str | None) -> str:
    """Return our name in place of `implementation`; it is registered on first use.

    The name does not contain the old one: transformers looks for "flash" or "paged" in such names.
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    original = implementation or "eager"
    if original not in _names:
        _names[original] = f"headscope_{len(_names)}"
        AttentionInterface.register(_names[original], partial(_attend, original))
        AttentionMaskInterface.register(_names[original], partial(_make_mask, original))
    return _names[original]


def _attend(
    original: str,
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Compute attention with the eager function, record it and edit it.

    The arguments have the names that transformers gives them: some models pass them by name.
    """
    recorder = _find_recorder()
    if recorder is not None and module not in recorder.names:
        recorder = None
    editors = find_editors(module)
    if recorder is None and not editors:
        function = _caller_global(module, "ALL_ATTENTION_FUNCTIONS").get_interface(original, _eager_function(module))
        result: tuple[Tensor, Tensor | None] = function(module, query, key, value, attention_mask, **options)
        return result
    if recorder is not None and recorder.keeps_graph:
        query = start_graph(query)
    output, weights = _eager_function(module)(module, query, key, value, attention_mask, **options)
    name = recorder.names[module] if recorder is not None else ""
    call = AttentionCall(name, weights, value, output.transpose(1, 2), attention_mask)
    if (kept := find_kept_heads(module)) is not None:
        call = restore_heads(call, kept, keeps_graph=recorder is not None and recorder.keeps_graph)
    context = product = call.context
    if recorder is not None:
        recorder.record(call)
    for editor in editors:
        edited = replace(call, name=editor.names[id(module)], context=context)
        context = editor.change(edited, None if context is product else product)
    if kept is not None:
        context = kept.select(context)
    changed = kept is not None or bool(editors)
    return (context.transpose(1, 2).contiguous() if changed else output), weights


def _make_mask(original: str, *arguments: Any, **options: Any) -> Any:
    """Make the additive mask of eager attention; an implementation that registers no mask function gets no mask."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    name = "eager" if _find_recorder() is not None or _find_active(_editors) else original
    if name not in ALL_MASK_ATTENTION_FUNCTIONS:
        return None  # as transformers does
    mask = ALL_MASK_ATTENTION_FUNCTIONS[name](*arguments, **options)
    if name == "eager" and mask is not None and mask.dtype == torch.float64:
        return mask.clamp(min=lowest_score(mask.dtype))  # in float32 less is -inf, and a row of them NaN
    return mask


def _eager_function(module: Any) -> Any:
    """Return the eager attention function of the file that defines the module's forward."""
    function = _caller_global(module, "eager_attention_forward")
    if function is None:
        raise CaptureError(
            f"{type(module).__name__} calls the attention interface, but {inspect.getmodule(type(module))} has no "
            "eager_attention_forward to compute the weights with. Add a family file that says how to capture it."
        )
    return function


def calls_interface(module: Any) -> bool:
    """Return True if the module's forward, or one that it inherits, looks up its attention function by name."""
    kind: Any = type(module)
    return _class_calls_interface(kind)


@cache
def _class_calls_interface(kind: Any) -> bool:
    forwards = (inspect.unwrap(base.__dict__["forward"]) for base in kind.__mro__ if "forward" in vars(base))
    codes = (getattr(forward, "__code__", None) for forward in forwards)
    return any("ALL_ATTENTION_FUNCTIONS" in code.co_names for code in codes if code is not None)


def _caller_global(module: Any, name: str) -> Any:
    """Return a global of the code that called us: a subclass may be defined elsewhere than the forward it inherits."""
    kind: Any = type(module)
    values = (variables.get(name) for variables in _forward_globals(kind))
    return next((value for value in values if value is not None), None)


@cache
def _forward_globals(kind: Any) -> list[dict[str, Any]]:
    """Return the global variables that the forward of a class, and those it inherits, can see."""
    forwards = (base.__dict__["forward"] for base in kind.__mro__ if "forward" in vars(base))
    return [getattr(inspect.unwrap(forward), "__globals__", {}) for forward in forwards]


def _find_configs(modules: Iterable[Any]) -> list[Any]:
    """Return every config of the modules, and the configs inside those, each once."""
    from transformers import PreTrainedConfig

    configs: dict[int, Any] = {}
    own = (module.__dict__.get("config") for module in modules)
    stack = list({id(config): config for config in own if config is not None}.values())
    while stack:
        config = stack.pop()
        if id(config) not in configs and isinstance(config, PreTrainedConfig):
            configs[id(config)] = config
            stack += [getattr(config, name, None) for name in config.sub_configs]
    return list(configs.values())
