"""Listening with forward hooks, for kinds of model that bypass the library's attention interface.

The value projection's output gives V, the weights that the attention module returns give A, and what goes into the
output projection gives the heads' real output. Hooks stay for one capture, and hear only the calls made in its context.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from torch import Tensor, cat, einsum, nn

from headscope.core.errors import CaptureError
from headscope.core.family import Hooks, split_heads
from headscope.engine.interface import Listener, listening

_capture: ContextVar[Listener | None] = ContextVar("headscope_hooks", default=None)


@contextmanager
def hooked(network: Any, hooks: Hooks, projection: str | None, listener: Listener) -> Iterator[None]:
    """Let `listener` see every attention call of `network` made in this context, with the model in evaluation mode."""
    ears = [_Ear(name, each, hooks, projection, listener) for name, each in _attention_modules(network, hooks)]
    handles: list[Any] = []
    token = _capture.set(listener)
    try:
        with listening(network, listener):
            handles.append(network.register_forward_pre_hook(_heard_by(listener, _ask), with_kwargs=True))
            for ear in ears:
                handles.extend(ear.listen())
            yield
    finally:
        for handle in handles:
            handle.remove()
        _capture.reset(token)


def _attention_modules(network: Any, hooks: Hooks) -> list[tuple[str, Any]]:
    """The attention modules with their names, if they compute weights at all: only eager attention does."""
    running = network.config._attn_implementation or "eager"  # a name of ours: another capture runs, and has asked
    named = network.named_modules() if running.startswith(("eager", "headscope")) else ()
    found = [(name, each) for name, each in named if type(each).__name__ == hooks.module]
    if not found:
        raise CaptureError(
            f"This model of type '{network.config.model_type}' runs with '{running}' attention and without a "
            f"{hooks.module} that would give its weights. Load it with attn_implementation='eager'."
        )
    return found


def _ask(_: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same call, asking for attention weights too."""
    return given, {**named, "output_attentions": True}


def _heard_by(listener: Listener, act: Callable[..., Any]) -> Callable[..., Any]:
    """A hook that acts only on calls made by the capture it serves, never on those of another thread."""
    return lambda *call: act(*call) if _capture.get() is listener else None


@dataclass
class _Ear:
    """Hooks on one attention module, its value projection and its output projection."""

    name: str
    module: Any
    hooks: Hooks
    projection: str | None
    listener: Listener
    heard: dict[str, Tensor] = field(default_factory=dict)
    past: Tensor | None = None

    def listen(self) -> Iterator[Any]:
        """Put the hooks on; each handle takes one off."""
        yield self.module.register_forward_hook(_heard_by(self.listener, self._note), with_kwargs=True)
        values, output = attrgetter(self.hooks.values)(self.module), self._output()
        if isinstance(values, nn.Module):
            hear = _heard_by(self.listener, lambda _, __, made: self.heard.update(values=made))
            yield values.register_forward_hook(hear)
        if output is not None:
            hear = _heard_by(self.listener, lambda _, given: self.heard.update(context=given[0]))
            yield output.register_forward_pre_hook(hear)

    def _note(self, module: Any, given: tuple[Any, ...], named: dict[str, Any], returned: Any) -> None:
        arguments = self._arguments(given, named)
        weights = self.hooks.weights(returned)
        if weights is None or weights.ndim != 4:
            raise CaptureError(f"{self.name} was asked for its attention weights, but returned none.")
        heads, query, key = weights.shape[1:]
        values = self._values(next(iter(arguments.values())), heads, key)
        mask = self.hooks.visible(module, arguments[self.hooks.mask], query, key)
        self.listener.note(module, weights, values, self._context(returned, weights, values), mask)

    def _arguments(self, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """What the module was called with, by name; its mask must be among it, or all keys would seem visible."""
        signature = inspect.signature(type(self.module).forward)
        if self.hooks.mask not in signature.parameters:
            raise CaptureError(
                f"The forward of {self.hooks.module} takes no '{self.hooks.mask}', so the family cannot tell which "
                f"keys it hides. It takes: {', '.join(list(signature.parameters)[1:])}."
            )
        bound = signature.bind(self.module, *given, **named)
        bound.apply_defaults()
        return dict(list(bound.arguments.items())[1:])

    def _values(self, entering: Tensor, heads: int, key: int) -> Tensor:
        """The values of all keys: those projected in this call, after those of the calls before where a cache grows.

        A bare parameter is applied to the module's input, as the module itself does.
        """
        layer = attrgetter(self.hooks.values)(self.module)
        projected = (
            self._taken("values") if isinstance(layer, nn.Module) else einsum("...x,xhv->...hv", entering, layer)
        )
        values = self.hooks.split(projected, heads)
        if values.shape[-2] < key and self.past is not None:
            values = cat([self.past, values], dim=-2)
        if values.shape[-2] != key:
            raise CaptureError(
                f"{self.name} attends to {key} keys, but {values.shape[-2]} values were heard: the others come from a "
                "cache that was filled before. Run the model without it."
            )
        self.past = values
        return values

    def _context(self, returned: Any, weights: Tensor, values: Tensor) -> Tensor:
        """What the heads gave: what entered the output projection, or left the module where that stands outside."""
        if self._output() is not None:
            return split_heads(self._taken("context"), weights.shape[1])
        if (self.projection or "").startswith(".."):
            return split_heads(returned[0], weights.shape[1])
        return weights @ values  # a bare parameter is no layer that could be heard

    def _output(self) -> Any:
        """The output projection, where it is a layer inside the attention module."""
        way = self.projection
        found = attrgetter(way.replace("/", "."))(self.module) if way and not way.startswith("..") else None
        return found if isinstance(found, nn.Module) else None

    def _taken(self, what: str) -> Tensor:
        if what not in self.heard:
            raise CaptureError(f"In {self.name} the layer that gives its {what} was not called, so nothing was heard.")
        return self.heard.pop(what)
