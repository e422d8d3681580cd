"""Record and edit attention through the attention interface of transformers, and leave the model as it was.

At each call, transformers reads the name of an implementation in the model's config and asks
`AttentionInterface.get_interface` for its function, with the eager function of the model's own file as the default.
During a capture or an edit two attributes of classes of transformers are replaced: the config says "eager", so that
masks and all branches of the model are those of eager attention, and `get_interface` returns a function that calls
the eager one, records the result, and lets editors change the context. Both act only in the context of the capture or
edit, on the configs of its network. Another thread sees the config and the functions that it saw before.
"""

import inspect
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from types import FrameType, MethodType
from typing import Any, Protocol, TypeVar, runtime_checkable
from weakref import WeakSet

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.errors import CaptureError
from headscope.engine.model import name_modules
from headscope.engine.pruning.kept_heads import KeptHeads, find_kept_heads
from headscope.engine.recording.blocks import RowMask, attend_in_blocks
from headscope.engine.recording.follow import Follower, count_heads, is_followed, pause_following
from headscope.engine.recording.follow_tokens import TokenFollower
from headscope.engine.recording.layout import read_arguments
from headscope.engine.recording.recorder import (
    AttentionCall,
    Recorder,
    lowest_score,
    repeat_value_heads,
    restore_heads,
    start_graph,
)


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


OWN_NAME = "headscope"
"""The name under which older code finds eager attention."""

Value = TypeVar("Value")
_recorders: ContextVar[tuple[Recorder, ...]] = ContextVar("headscope_recorders", default=())
_editors: ContextVar[tuple[Editor, ...]] = ContextVar("headscope_editors", default=())
_active: set[int] = set()  # ids of the recorders and editors whose blocks have not ended, of all contexts
_lock = threading.RLock()  # a generator that ends an edit may be collected while its thread holds the lock
_implementations: dict[int, dict[int, str]] = {}  # of a recorder or editor: what configs say in its context, by id
_replaced: dict[tuple[int, str], _Replaced] = {}  # by id of the owner and name
_stance = _Replaced(None, users=0)  # of torch.compile
_ungrouped: WeakSet[Any] = WeakSet()  # blocks that were seen to attend among their tokens as they are given


@contextmanager
def record_interface(recorder: Recorder) -> Iterator[None]:
    """Record the attention calls of the recorder's modules made in this context, with the model in evaluation mode."""
    masks = _describe_masks() if recorder.blocks is not None and not recorder.blocks.whole_masks else nullcontext()
    with _activate(_recorders, recorder), _replace_implementation(recorder, recorder.names, evaluate=True), masks:
        yield


@contextmanager
def _describe_masks() -> Iterator[None]:
    """Let transformers describe eager masks in our contexts in place of building them."""
    from transformers.masking_utils import AttentionMaskInterface

    owner = next(base for base in AttentionMaskInterface.__mro__ if "__getitem__" in vars(base))
    stack = ExitStack()
    try:
        with _lock:
            stack.enter_context(_replace(owner, "__getitem__", _wrap_mask_lookup))
        yield
    finally:
        with _lock:
            stack.close()


def _wrap_mask_lookup(original: Any) -> Any:
    """Return the method that looks up functions by the name of an implementation, with ours for eager masks."""
    from transformers.masking_utils import AttentionMaskInterface

    def find(interface: Any, name: str) -> Any:
        function, recorder = original(interface, name), find_recorder()
        if not isinstance(interface, AttentionMaskInterface) or recorder is None or name not in ("eager", OWN_NAME):
            return function
        describes = recorder.blocks is not None and not recorder.blocks.whole_masks
        return partial(RowMask.describe, function) if describes else function

    return find


@contextmanager
def edit_interface(network: Any, editor: Editor, *, evaluate: bool = False) -> Iterator[None]:
    """Edit every attention call of `network` made in this context, after the editors that are already active.

    With `evaluate` the network is in evaluation mode, as in a capture.
    """
    modules = name_modules(network)
    with _activate(_editors, editor), _replace_implementation(editor, modules, evaluate=evaluate):
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


def find_recorder() -> Recorder | None:
    """Return the recorder of this context; of several, the last that began."""
    return next(reversed(_find_active(_recorders)), None)


def is_recording(recorder: Recorder) -> bool:
    """Return True if this context, which another thread does not share, records to `recorder`."""
    return recorder is find_recorder()


def find_editors(module: Any) -> list[Editor]:
    """Return the editors that are active in this context and edit the module, in order."""
    return [editor for editor in _find_active(_editors) if id(module) in editor.names]


def is_active(editor: Editor) -> bool:
    """Return True if the editor is active in this context; another thread is another context."""
    return editor in _find_active(_editors)


def is_editing() -> bool:
    """Return True if any editor is active in this context."""
    return bool(_find_active(_editors))


@contextmanager
def mark_forwards(recorder: Recorder, modules: Iterable[Any], *, follows_tokens: bool = False) -> Iterator[None]:
    """Tell the recorder when an attention module is called, and with what: ALBERT calls one for each layer.

    Some modules compute attention several times in one call, which are no layers. With `follows_tokens`, tokens are
    followed from the blocks around the modules, so that it is known which of them a window holds.
    """
    followers: list[tuple[Any, Any]] = []  # of the blocks that run, outermost first

    def begin(module: Any, args: Any, options: Any) -> None:
        if is_recording(recorder):  # never calls of another thread
            block, follower = followers[-1] if followers else (None, None)
            arguments = read_arguments(module, args, options, follower)
            if arguments.layout is not None and arguments.layout.grid is None and arguments.layout.as_given:
                _ungrouped.add(block)
            recorder.begin(arguments)

    def enter(block: Any, args: Any, options: Any) -> None:
        if is_recording(recorder) and not recorder.paused and block not in _ungrouped:
            follower: Any = TokenFollower(block, args, options)
            followers.append((block, follower))
            follower.__enter__()

    def leave(block: Any, *_: Any) -> None:
        if is_recording(recorder) and followers and followers[-1][0] is block:
            followers.pop()[1].__exit__(None, None, None)

    attention = list(modules)
    with ExitStack() as stack:
        for block in _find_blocks(recorder, attention) if follows_tokens else ():
            stack.enter_context(block.register_forward_pre_hook(enter, with_kwargs=True))
            stack.enter_context(block.register_forward_hook(leave, always_call=True))
        for module in attention:
            stack.enter_context(module.register_forward_pre_hook(begin, with_kwargs=True))
        try:
            yield
        finally:
            while followers:  # no hook runs after an interrupt from the keyboard
                followers.pop()[1].__exit__(None, None, None)


def _find_blocks(recorder: Recorder, attention: Iterable[Any]) -> list[Any]:
    """Return the innermost numbered module around each attention module of the recorder's site."""
    modules = {name: module for module, name in recorder.names.items()}
    names = (
        recorder.names[module] for module in attention if recorder.find_site(recorder.names[module]) == recorder.site
    )
    found = (re.match(r"(.*\.)?\d+(?=\.)", name) for name in names)
    return [modules[name] for name in dict.fromkeys(match[0] for match in found if match)]


def run_unedited(function: Callable[[], Value]) -> Value:
    """Call a function as if no recorder and no editor were active."""

    def run() -> Value:
        _recorders.set(())
        _editors.set(())
        return function()

    return copy_context().run(run)


def run_plainly(modules: Collection[Any], function: Callable[[], Value], *, eager: bool) -> Value:
    """Call a function with attention as the model computes it, or as it does with its own eager attention.

    For use while the modules are recorded: they stay in evaluation mode, and without compiled code.
    """
    observer = Recorder({}, str, "")  # has no modules, so that it records nothing

    def run() -> Value:
        with _activate(_recorders, observer):
            _implementations[id(observer)] = _name_implementations(modules, find_configs(modules)) if eager else {}
            try:
                return function()
            finally:
                del _implementations[id(observer)]

    return run_unedited(run)


def is_intercepted(network: Any) -> bool:
    """Return True if a capture or an edit of the network is active, in whatever context."""
    return any(id(network.config) in implementations for implementations in list(_implementations.values()))


def own_implementation(config: Any) -> str | None:
    """Return the name of the implementation that a config has, also where it says "eager" because of a capture."""
    name: str | None = config._attn_implementation_internal  # behind the property that we replace
    return name and str(name)


@contextmanager
def _replace_implementation(user: Any, modules: Collection[Any], *, evaluate: bool) -> Iterator[None]:
    """Let configs say "eager" in the user's context, switch off compiled code, and evaluate if asked to."""
    from transformers import AttentionInterface

    stack = ExitStack()
    try:
        with _lock:
            configs = find_configs(modules)
            _implementations[id(user)] = _name_implementations(modules, configs)
            stack.callback(_implementations.pop, id(user))
            stack.enter_context(_skip_compiled_code())
            stack.enter_context(_replace(AttentionInterface, "get_interface", _wrap_lookup))
            for owner in {_find_owner(type(config)) for config in configs}:
                stack.enter_context(_replace(owner, "_attn_implementation", _wrap_property))
            module_classes: set[Any] = set(map(type, modules))
            for owner in {_find_forward_owner(kind) for kind in module_classes if is_followed(kind)}:
                stack.enter_context(_replace(owner, "forward", _wrap_forward))
            for module in modules:  # accelerate keeps the forward that a module had before its hooks
                if "_old_forward" in vars(module) and is_followed(module.__class__):
                    stack.enter_context(_replace(module, "_old_forward", partial(_rebind, module)))
            for config in configs:  # a copy that the model makes of its config keeps the mark of the original
                stack.enter_context(_replace(config, "_attn_implementation_internal", partial(_mark, config)))
            replaced = {owner for owner, _ in list(_replaced)}
            for module in modules:
                if not (module.training or module._compiled_call_impl or id(module) in replaced):
                    continue  # nothing to change, as in nearly all of a model's thousands of modules
                if evaluate and (module.training or (id(module), "training") in _replaced):
                    stack.enter_context(_replace(module, "training", lambda _: False))
                # what module.compile() set, which torch calls in place of the forward
                if module._compiled_call_impl or (id(module), "_compiled_call_impl") in _replaced:
                    stack.enter_context(_replace(module, "_compiled_call_impl", lambda _: None))
        yield
    finally:
        with _lock:
            stack.close()


@contextmanager
def _skip_compiled_code() -> Iterator[None]:
    """Let what torch.compile made run as it was written.

    Otherwise edits would depend on the guards of graphs that were traced without them, and torch cannot trace all of
    our code. This is for all threads, because torch knows no other way. The last of the captures that share it
    restores it.
    """
    if not _stance.users:
        _stance.original = _force_eager()
    _stance.users += 1
    yield
    _stance.users -= 1
    if not _stance.users:
        _stance.original.__exit__(None, None, None)


def _force_eager() -> Any:
    """Set the stance of torch.compile, and return what restores the one before."""
    refused = CaptureError(
        "A capture or an edit was asked for within a function that torch.compile compiled, where it cannot switch "
        "compiled code off. Call it outside, or mark the function that calls it with torch.compiler.disable."
    )
    if torch.compiler.is_compiling():  # which torch traces here
        raise refused
    try:
        return torch.compiler.set_stance("force_eager")
    except RuntimeError as error:
        raise refused from error


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


class _MarkedName(str):
    """The name of an implementation that also says whose it is: some models copy their config at each call."""

    __slots__ = ("owner",)
    owner: int  # id of the config

    def __deepcopy__(self, _: Any) -> "_MarkedName":
        return self

    def __reduce__(self) -> Any:  # a network that is saved meanwhile has the plain name
        return str, (str(self),)


def _mark(config: Any, name: str | None) -> str | None:
    """Return the name of a config's implementation with a mark; there may be no name."""
    if name is None:
        return None
    marked = _MarkedName(name)
    marked.owner = id(config)
    return marked


def _find_owner(config_class: type) -> type:
    """Return the class that defines the property `_attn_implementation` of a config."""
    return next(base for base in config_class.__mro__ if "_attn_implementation" in vars(base))


def _wrap_property(original: Any) -> property:
    """Return the property of configs that names the implementation, with what it says in our contexts."""

    def read(config: Any) -> str | None:
        name: str | None = _find_implementation(config) or original.fget(config)
        return str(name) if isinstance(name, _MarkedName) else name

    return property(read, original.fset, original.fdel, original.__doc__)


def _find_implementation(config: Any) -> str | None:
    """Return what a config, or that of which it is a copy, says in this context; None for its own name."""
    name = vars(config).get("_attn_implementation_internal")
    owner = name.owner if isinstance(name, _MarkedName) else id(config)
    users: list[Recorder | Editor] = [*_find_active(_recorders), *_find_active(_editors)]
    names = (_implementations.get(id(user), {}).get(owner) for user in users)
    return next((name for name in names if name is not None), None)


def _wrap_lookup(original: Any) -> Any:
    """Return the method that looks up attention functions, with ours in our contexts."""

    def get_interface(interface: Any, attn_implementation: str, default: Any) -> Any:
        function = original(interface, attn_implementation, default)
        active = bool(_find_active(_recorders)) or bool(_find_active(_editors))
        return partial(_attend, function) if active else function

    return get_interface


def _name_implementations(modules: Collection[Any], configs: Iterable[Any]) -> dict[int, str]:
    """Return what the configs of a network say while it is recorded or edited, by id.

    Older code, such as that of models outside of the library, looks functions up only under names other than "eager".
    Configs of such modules say a name of ours.
    """
    names = dict.fromkeys(map(id, configs), "eager")
    module_classes: set[Any] = {type(module) for module in modules}
    if older := set(filter(_indexes_interface, module_classes)):
        own = find_configs(module for module in modules if type(module) in older)
        names |= dict.fromkeys(map(id, own), _register())
    return names


@cache
def _register() -> str:
    """Register eager attention under a name of ours, and return the name."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(OWN_NAME, _attend_eagerly)
    AttentionMaskInterface.register(OWN_NAME, eager_mask)
    return OWN_NAME


def _attend_eagerly(module: Any, *args: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
    return _attend(_eager_function(module), module, *args, **options)


def _attend(
    eager: Any,
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any = None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Compute attention with the eager function, record it and edit it.

    The arguments have the names that transformers gives them: some models pass them by name.
    """
    recorder, editors = _find_users(module)
    if recorder is not None and recorder.blocks is not None and not editors:
        finish = partial(_finish_block, module, recorder.names[module], options.get("s_aux") is not None)
        arguments = (finish, (query, key, value), attention_mask, options)
        return attend_in_blocks(partial(eager, module), recorder, *arguments), None
    if isinstance(attention_mask, RowMask):  # of a network other than the one whose queries come in blocks
        attention_mask = attention_mask.whole()
    if recorder is None and not editors:
        result: tuple[Tensor, Tensor | None] = eager(module, query, key, value, attention_mask, **options)
        return result
    if recorder is not None and recorder.keeps_graph:
        query = start_graph(query)
    if attention_mask is not None and attention_mask.dtype == torch.float64:
        lowest = lowest_score(torch.float64)  # in float32 less is -inf, and the softmax of a row of them NaN
        attention_mask = attention_mask.clamp(min=lowest)
    with pause_following():
        output, weights = eager(module, query, key, value, attention_mask, **options)
    if weights is None:
        raise CaptureError(f"The eager attention function of {type(module).__name__} returned no weights to capture.")
    name = recorder.names[module] if recorder is not None else ""
    context = output.transpose(1, 2)  # eager functions return it as `batch query head value`
    attention = weights if options.get("s_aux") is None else _give_to_sink(weights, value, context)
    if attention is not weights and recorder is not None and recorder.keeps_graph:
        context = attention @ repeat_value_heads(value, attention.shape[1])
        output = context.transpose(1, 2).contiguous()
    call = AttentionCall(name, attention, value, context, attention_mask, line=_find_line(module))
    if (kept_heads := find_kept_heads(module)) is not None:
        call = restore_heads(call, kept_heads, keeps_graph=recorder is not None and recorder.keeps_graph)
    context = _record_and_edit(module, recorder, editors, call)
    if kept_heads is not None:
        context = kept_heads.select(context)
    changed = kept_heads is not None or bool(editors)
    return (context.transpose(1, 2).contiguous() if changed else output), weights


def _finish_block(
    module: Any, name: str, has_sink: bool, weights: Tensor, values: Tensor, context: Tensor, mask: Tensor | None
) -> AttentionCall:
    """Return what a module computed for a block of queries, with all heads that it had before some were pruned."""
    attention = _give_to_sink(weights, values, context) if has_sink and weights.shape[2] else weights
    call = AttentionCall(name, attention, values, context, mask)
    kept_heads: KeptHeads | None = find_kept_heads(module)
    return call if kept_heads is None else restore_heads(call, kept_heads, keeps_graph=False)


def _give_to_sink(
    weights: Float[Tensor, "batch head query key"],
    values: Float[Tensor, "batch _ key value"],
    context: Float[Tensor, "batch head query value"],
) -> Float[Tensor, "batch head query key"]:
    """Return what a head's context is the sum of, where the model takes the share of a sink from the context.

    Most models with sinks take it from the weights (gpt-oss), whose rows then sum to less than 1; some return weights
    without a sink, and scale what these add up to (GraniteSWA).
    """
    if bool((weights.sum(-1) - 1).abs().max() > 1e-2):
        return weights
    product = weights @ repeat_value_heads(values, weights.shape[1])
    scale = (product * context).sum(-1, keepdim=True) / product.square().sum(-1, keepdim=True).clamp_min(1e-30)
    return weights * scale.to(weights.dtype)


def _find_users(module: Any) -> tuple[Recorder | None, list[Editor]]:
    """Return the recorder of this context, if the module is of its network, and the editors of the module."""
    recorder = find_recorder()
    return recorder if recorder is not None and module in recorder.names else None, find_editors(module)


def _record_and_edit(module: Any, recorder: Recorder | None, editors: list[Editor], call: AttentionCall) -> Tensor:
    """Record what a module computed, and return the context that the editors make of it."""
    context = product = call.context
    if recorder is not None:
        recorder.record(call)
    for editor in editors:
        edited = replace(call, name=editor.names[id(module)], context=context)
        context = editor.change(edited, None if context is product else product)
    return context


def _take_followed(module: Any, recorder: Recorder | None, editors: list[Editor], call: AttentionCall) -> Tensor:
    """Record and edit what a module computed without the interface."""
    if recorder is not None:
        recorder.followed[call.name] += 1
        call = replace(call, line=_find_line(module))
    if (kept_heads := find_kept_heads(module)) is not None:
        call = restore_heads(call, kept_heads, keeps_graph=recorder is not None and recorder.keeps_graph)
    return _record_and_edit(module, recorder, editors, call)


def _find_line(module: Any) -> int:
    """Return which line of its forward a module has come to."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "forward" and frame.f_locals.get("self") is module:
            return frame.f_lineno
        frame = frame.f_back
    return 0


def _rebind(module: Any, method: Any) -> Any:
    """Return a bound forward that is followed in our contexts, from one that was bound before."""
    return MethodType(_wrap_forward(getattr(method, "__func__", type(module).forward)), module)


def _find_forward_owner(module_class: type) -> type:
    """Return the class whose forward the modules of a class run."""
    return next(base for base in module_class.__mro__ if "forward" in vars(base))


def _wrap_forward(original: Any) -> Any:
    """Return a forward that is followed, in our contexts, to the attention that it computes without the interface."""

    @wraps(original)
    def forward(module: Any, *args: Any, **options: Any) -> Any:
        recorder, editors = _find_users(module)
        if recorder is None and not editors:
            return original(module, *args, **options)
        name = recorder.names[module] if recorder is not None else ""
        keeps_graph = recorder is not None and recorder.keeps_graph
        take = partial(_take_followed, module, recorder, editors)
        with Follower(name, count_heads(module), take, keeps_graph=keeps_graph):
            return original(module, *args, **options)

    return forward


def _eager_function(module: Any) -> Any:
    """Return the eager attention function of the file that defines the module's forward."""
    module_class: Any = type(module)
    functions = (variables.get("eager_attention_forward") for variables in _forward_globals(module_class))
    function = next((function for function in functions if function is not None), None)
    if function is None:
        raise CaptureError(
            f"{module_class.__name__} calls the attention interface, but {inspect.getmodule(module_class)} has no "
            "eager_attention_forward to compute the weights with. Add a family file that says how to capture it."
        )
    return function


def computes_attention(module: Any) -> bool:
    """Return True if the module's code computes attention, with the interface or without it."""
    module_class: Any = type(module)
    return _class_calls_interface(module_class) or is_followed(module_class)


def calls_interface(module: Any) -> bool:
    """Return True if the module's forward, or one that it inherits, looks up its attention function by name."""
    module_class: Any = type(module)
    return _class_calls_interface(module_class)


@cache
def _indexes_interface(module_class: Any) -> bool:
    """Return True if a class's forward looks up its attention function without `get_interface`."""
    return "get_interface" not in next(_names_of_lookups(module_class), ("get_interface",))


@cache
def _class_calls_interface(module_class: Any) -> bool:
    return any(_names_of_lookups(module_class))


def _names_of_lookups(module_class: Any) -> Iterator[tuple[str, ...]]:
    """Yield the names that a class's forward, and those it inherits, use, if they look up attention functions."""
    forwards = (inspect.unwrap(base.__dict__["forward"]) for base in module_class.__mro__ if "forward" in vars(base))
    # compiled code lists the global names that it reads, and needs no source file
    codes = (getattr(forward, "__code__", None) for forward in forwards)
    names = (code.co_names for code in codes if code is not None)
    return (forward_names for forward_names in names if "ALL_ATTENTION_FUNCTIONS" in forward_names)


@cache
def _forward_globals(module_class: Any) -> list[dict[str, Any]]:
    """Return the global variables that the forward of a class, and those it inherits, can see."""
    forwards = (base.__dict__["forward"] for base in module_class.__mro__ if "forward" in vars(base))
    return [getattr(inspect.unwrap(forward), "__globals__", {}) for forward in forwards]


def find_configs(modules: Iterable[Any]) -> list[Any]:
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
