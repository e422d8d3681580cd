"""Record and edit attention with forward hooks, for models that bypass the library's attention interface.

The value projection's output gives V, the weights that the attention module returns give A, and the input of the
output projection gives the heads' context. The hooks are removed after the capture or edit, and act in its context.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

from torch import Tensor, cat, einsum, nn
from torch.nn.functional import linear

from headscope.core.errors import CaptureError
from headscope.core.family import Hooks, split_heads
from headscope.engine.recording.interface import (
    Editor,
    calls_interface,
    is_active,
    is_recording,
    own_implementation,
    record_interface,
)
from headscope.engine.recording.recorder import AttentionCall, Recorder, start_graph

Take = Callable[[AttentionCall], Tensor | None]
"""Takes what an attention module computed, and returns the context to go on with, or None for the same."""


@contextmanager
def record_hooks(network: Any, hooks: Hooks, projection: str | None, recorder: Recorder) -> Iterator[None]:
    """Record every attention call of `network` made in this context, with the model in evaluation mode."""
    active = partial(is_recording, recorder)
    modules = hooked_modules(network, hooks)
    with record_interface(recorder), ExitStack() as stack:
        for handle in _register(
            network, modules, hooks, projection, active, recorder.record, keeps_graph=recorder.keeps_graph
        ):
            stack.enter_context(handle)
        yield


@contextmanager
def edit_hooks(network: Any, hooks: Hooks, projection: str | None, editor: Editor) -> Iterator[None]:
    """Edit every attention call of `network` made in this context, after the editors that are already active."""
    active = partial(is_active, editor)
    modules = hooked_modules(network, hooks)
    with ExitStack() as stack:
        for handle in _register(network, modules, hooks, projection, active, lambda call: editor.change(call, None)):
            stack.enter_context(handle)
        yield


def hooked_modules(network: Any, hooks: Hooks) -> dict[str, Any]:
    """Return the attention modules by name, if they compute weights: only eager attention does."""
    running = own_implementation(network.config) or "eager"
    candidates = network.named_modules() if running.startswith("eager") else ()
    modules = {name: module for name, module in candidates if type(module).__name__ == hooks.module}
    if not modules:
        raise CaptureError(
            f"This model of type '{network.config.model_type}' runs with '{running}' attention and without a "
            f"{hooks.module} that would give its weights. Load it with attn_implementation='eager'."
        )
    return modules


def _register(
    network: Any,
    modules: Mapping[str, Any],
    hooks: Hooks,
    projection: str | None,
    active: Callable[[], bool],
    take: Take,
    *,
    keeps_graph: bool = False,
) -> Iterator[Any]:
    """Register the hooks of all attention modules, and one that asks for their weights; yield the handles."""
    request_weights = _when(active, lambda _, args, kwargs: (args, {**kwargs, "output_attentions": True}))
    yield network.register_forward_pre_hook(request_weights, with_kwargs=True)
    for name, module in modules.items():
        yield from _HookedModule(name, module, hooks, projection, active, take, keeps_graph).register()


@contextmanager
def mark_forwards(recorder: Recorder) -> Iterator[None]:
    """Tell the recorder when an attention module is called: ALBERT calls one for each layer.

    Some modules compute attention several times in one call, which are no layers.
    """
    begin = _when(partial(is_recording, recorder), lambda *_: setattr(recorder, "running", ""))
    with ExitStack() as stack:
        for module in filter(calls_interface, recorder.names):
            stack.enter_context(module.register_forward_pre_hook(begin))
        yield


def _when(active: Callable[[], bool], hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return a hook that acts only on calls made in its own context, never on those of another thread."""
    return lambda *call: hook(*call) if active() else None


@dataclass
class _HookedModule:
    """Hooks on one attention module, its value projection and its output projection."""

    name: str
    module: Any
    hooks: Hooks
    projection: str | None
    active: Callable[[], bool]  # whether calls of this context are recorded or edited
    take: Take
    keeps_graph: bool
    outputs: dict[str, Tensor] = field(default_factory=dict)  # of the projections, until the module returns
    cached_values: Tensor | None = None

    def register(self) -> Iterator[Any]:
        """Register the hooks, and yield their handles."""
        yield self.module.register_forward_hook(_when(self.active, self._finish), with_kwargs=True)
        if self.keeps_graph:
            hook = _when(self.active, self._start_graph)
            yield self.module.register_forward_pre_hook(hook, with_kwargs=True)
        values, output = attrgetter(self.hooks.values)(self.module), self._output_layer()
        if isinstance(values, nn.Module):
            hook = _when(self.active, lambda _, __, projected: self.outputs.update(values=projected))
            yield values.register_forward_hook(hook)
        if output is not None:
            hook = _when(self.active, lambda _, args: self.outputs.update(context=args[0]))
            yield output.register_forward_pre_hook(hook)

    def _start_graph(self, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Return the arguments of the call, the first of which, the hidden states, requires a gradient."""
        if args:
            return (start_graph(args[0]), *args[1:]), kwargs
        name = list(inspect.signature(type(self.module).forward).parameters)[1]
        return args, {**kwargs, name: start_graph(kwargs[name])}

    def _finish(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], returned: Any) -> Any:
        """Hand on what the module computed; return its outputs if an editor changed them, else None."""
        arguments = self._bind(args, kwargs)
        weights = self.hooks.weights(returned)
        if weights is None or weights.ndim != 4:
            raise CaptureError(f"{self.name} was asked for its attention weights, but returned none.")
        heads, query, key = weights.shape[1:]
        values = self._values(next(iter(arguments.values())), heads, key)
        mask = self.hooks.visible(module, arguments[self.hooks.mask], query, key)
        context = self._context(returned, weights, values)
        changed = self.take(AttentionCall(self.name, weights, values, context, mask))
        if changed is None or changed is context:
            return None
        layer = self._output_layer()
        assert isinstance(layer, nn.Linear), "hooks.editable is for modules with a linear output projection"
        # the projection of the old context is in the output already, with the bias: add that of the difference
        difference = (changed - context).transpose(1, 2).flatten(2)
        return (returned[0] + linear(difference, layer.weight), *returned[1:])

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the call by name; without the mask, all keys would seem visible."""
        signature = inspect.signature(type(self.module).forward)
        if self.hooks.mask not in signature.parameters:
            raise CaptureError(
                f"The forward of {self.hooks.module} takes no '{self.hooks.mask}', so the family cannot tell which "
                f"keys it hides. It takes: {', '.join(list(signature.parameters)[1:])}."
            )
        bound = signature.bind(self.module, *args, **kwargs)
        bound.apply_defaults()
        return dict(list(bound.arguments.items())[1:])

    def _values(self, hidden: Tensor, heads: int, key: int) -> Tensor:
        """Return the values of all keys: those of earlier calls, where a cache grows, then those of this call.

        A bare parameter is applied to the module's input, as the module itself does.
        """
        layer = attrgetter(self.hooks.values)(self.module)
        is_layer = isinstance(layer, nn.Module)
        projected = self._take("values") if is_layer else einsum("...x,xhv->...hv", hidden, layer)
        values = self.hooks.split(projected, heads)
        if values.shape[-2] < key and self.cached_values is not None:
            values = cat([self.cached_values, values], dim=-2)
        if values.shape[-2] != key:
            raise CaptureError(
                f"{self.name} attends to {key} keys, but {values.shape[-2]} values were recorded: the others come from "
                "a cache that was filled before. Run the model without it."
            )
        self.cached_values = values
        return values

    def _context(self, returned: Any, weights: Tensor, values: Tensor) -> Tensor:
        """Return the heads' context: the output projection's input, or the module's output if that is outside."""
        if self._output_layer() is not None:
            return split_heads(self._take("context"), weights.shape[1])
        if (self.projection or "").startswith(".."):
            return split_heads(returned[0], weights.shape[1])
        return weights @ values  # no hook can be registered on a bare parameter

    def _output_layer(self) -> Any:
        """Return the output projection if it is a layer inside the attention module."""
        path = self.projection
        layer = attrgetter(path.replace("/", "."))(self.module) if path and not path.startswith("..") else None
        return layer if isinstance(layer, nn.Module) else None

    def _take(self, what: str) -> Tensor:
        if what not in self.outputs:
            raise CaptureError(f"In {self.name} the layer that gives its {what} was not called.")
        return self.outputs.pop(what)
