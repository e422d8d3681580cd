"""Running a model with changed attention."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from headscope.core.catalog import edits as catalog
from headscope.core.edit import Edit, Heads
from headscope.core.errors import CaptureError, InputError
from headscope.core.family import Family
from headscope.core.spec import to_spec
from headscope.core.trace import Visible, select_labels
from headscope.effective.memory import Memory
from headscope.effective.visibility import Sight
from headscope.engine.interface import calls_interface, editing, edits_here, heard_here
from headscope.engine.model import Model, all_modules, check_model
from headscope.engine.record import Call, repeated
from headscope.engine.repeatable import repeatable


def edited(model: Model, *edits: str | Edit) -> AbstractContextManager[Model]:
    """The model with its attention changed, for as long as the `with` block lasts.

    Each edit is a name, a spec such as "effective_attention:layers=0+3", or an edit; they apply in order, each to what
    the one before it left. Inside the block the network runs with eager attention. Calls from other threads, and all
    calls after the block, run as ever.

    >>> import headscope as hs
    >>> with hs.edited(hs.load(), "effective_attention:layers=0+3") as changed:
    ...     trace = hs.capture(changed, "The cat sat down.")
    >>> changed.spec
    'sentence-transformers/all-MiniLM-L6-v2 with effective_attention:layers=0+3'
    """
    check_model(model)
    if not edits:
        raise InputError(f"hs.edited was given no edit. Name one: {', '.join(catalog.names())}.")
    return _running(model, [make_edit(each) for each in edits])


def make_edit(what: Any) -> Edit:
    """An edit from its name, its spec, its class or itself."""
    made = catalog.make(what)
    if not isinstance(made, Edit):
        raise InputError(f"Expected an edit, its name or its spec, but got {made!r}.")
    return made


@contextmanager
def _running(model: Model, edits: Sequence[Edit]) -> Iterator[Model]:
    editor = _Editor(model.network, model.family, edits, _attention_modules(model))
    handles: list[Any] = []
    try:
        with editing(model.network, editor):
            handles.extend(editor.watch())
            yield replace(model, spec=f"{model.spec} with {', '.join(map(to_spec, edits))}")
    finally:
        editor.here.call = None  # after an interrupt it holds what the pass held
        for handle in handles:
            handle.remove()


def _attention_modules(model: Model) -> dict[int, str]:
    """The names of the modules that compute attention, by identity."""
    network, kind = model.network, model.network.config.model_type
    found = {id(module): name for name, module in network.named_modules() if calls_interface(module)}
    if not found:
        raise _bypassed(kind)
    if getattr(network, "is_gradient_checkpointing", False):
        raise InputError(
            "With gradient checkpointing, layers run again in the backward pass, where nothing says which layer it is. "
            "Call network.gradient_checkpointing_disable() before hs.edited."
        )
    return found


def _bypassed(kind: str) -> CaptureError:
    return CaptureError(
        f"Models of type '{kind}' compute attention without the library's attention interface, so their heads cannot "
        "be edited. Kinds that go through it can, such as bert, gpt2, llama or t5."
    )


class _Pass(threading.local):
    """How far a forward pass has come, in each thread."""

    def __init__(self) -> None:
        self.outermost: Any = None  # the module whose call the pass is
        self.call: FrameType | None = None  # where that call is made
        self.calls = Counter[str]()  # at each site
        self.layers = Counter[str]()  # the most calls that any pass made, at each site
        self.memory = Memory()
        self.again = False  # it runs for the second time
        self.sights: dict[Any, tuple[Any, Sight]] = {}  # masks of this pass, held so that none is taken for another


@dataclass(eq=False)
class _Editor:
    """Applies edits at the layers they are for.

    As in a capture, the order of calls at a site numbers the layers. A pass begins where a module is called from
    outside the network: the whole of it, or only its encoder, as `generate` does. Nobody says when a pass is broken
    off by an interrupt from the keyboard; so whether one still runs is seen from the calls under way.
    """

    network: Any
    family: Family
    edits: Sequence[Edit]
    names: dict[int, str]  # attention modules, by identity
    modules: list[Any] = field(default_factory=list)  # all of the network
    here: _Pass = field(default_factory=_Pass)

    def knows(self, module: Any) -> bool:
        """Whether the module belongs to the model that is being edited."""
        return id(module) in self.names

    def change(
        self,
        module: Any,
        attention: Tensor,
        values: Tensor,
        context: Tensor,
        mask: Tensor | None,
        product: Tensor | None,
    ) -> Tensor:
        """What the heads of the next layer at this module's site write."""
        name = self.names[id(module)]
        site = self.family.site(name)
        layer = self.here.calls[site]
        self.here.calls[site] += 1
        self.here.layers[site] = max(self.here.layers[site], layer + 1)
        chosen = [edit for edit in self.edits if edit.layers is None or layer in edit.layers]
        if not chosen:
            return context
        call = Call(name, attention, repeated(values, attention.shape[1]), context, mask)
        sight = self._sight(call, site)
        heads = Heads(site, layer, attention, call.values, context, sight, self.here.memory, product)
        for edit in chosen:
            heads = _applied(edit, heads)
        return heads.context

    def _sight(self, call: Call, site: str) -> Sight:
        """Who sees whom; layers that were given the same mask share one."""
        known, what = self.here.sights, (site, id(call.mask), call.attention.shape, call.attention.device)
        if what not in known:
            known[what] = call.mask, Sight(_visible(call, site))
        return known[what][1]

    def watch(self) -> Iterator[Any]:
        """Put hooks on all modules around attention, to know where a pass begins and ends."""
        self.modules.extend(all_modules(self.network))
        around = {name[:end] for name in self.names.values() for end, letter in enumerate(name) if letter == "."}
        for name in {"", *around, *self.names.values()}:  # lambdas, so that copying the network does not copy us
            module = self.network.get_submodule(name)
            yield module.register_forward_pre_hook(
                lambda module, given, named: self._begin(module, given, named, sys._getframe(1)), with_kwargs=True
            )
            yield module.register_forward_hook(
                lambda *call: self._end(*call),
                with_kwargs=True,
                always_call=True,  # on an Exception, too
            )

    def _begin(self, module: Any, given: tuple[Any, ...], named: dict[str, Any], call: FrameType) -> None:
        if not _under_way(self.here.call, call):
            self.here.outermost, self.here.call = module, call
            self.here.calls.clear()
            self.here.sights.clear()
            assumptions = self.here.memory.assumptions
            assumptions.forget()
            alone = len(self.edits) == 1 and edits_here(self) and not heard_here(besides=self)
            assumptions.allowed = alone and not self.here.again and repeatable(self.modules, call, given, named)

    def _end(self, module: Any, given: tuple[Any, ...], named: dict[str, Any], made: Any) -> Any:
        """What the pass gives: None for what it made, or what it makes with more care."""
        if self.here.outermost is not module:
            return None
        self.here.outermost = self.here.call = None
        self.here.sights.clear()
        if made is None:  # an exception passes
            return None
        if module is self.network and edits_here(self):
            self._check()
        return self._repeated(module, given, named) if self.here.memory.assumptions.broken() else None

    def _repeated(self, module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The same pass once more, every layer asked."""
        self.here.again = True
        try:
            return module(*given, **named)
        finally:
            self.here.again = False

    def _check(self) -> None:
        """Refuse a pass in which nothing was changed, or a layer that was not there."""
        if not self.here.layers:
            raise _bypassed(self.network.config.model_type)
        most = max(self.here.layers.values())
        for edit in self.edits:
            select_labels(range(most), edit.layers, "layer")


def _under_way(call: FrameType | None, now: FrameType | None) -> bool:
    """Whether a call has led to what runs now."""
    if call is None:
        return False
    while now is not None and now is not call:
        now = now.f_back
    return now is call


def _applied(edit: Edit, heads: Heads) -> Heads:
    """The heads with what an edit lets them write; rows of padding keep what they had."""
    context = edit(heads)
    if context is None:
        return heads
    if context.shape != heads.context.shape:
        raise InputError(
            f"The edit '{to_spec(edit)}' must give a context of shape {list(heads.context.shape)} (batch head query "
            f"value), but gave {list(context.shape)}."
        )
    real = heads.sight.real[:, None, :, None]
    product = heads.context if heads.product is None else heads.product
    return replace(heads, context=torch.where(real, context.to(heads.context.dtype), heads.context), product=product)


def _visible(call: Call, site: str) -> Visible:
    """Who sees whom; a token that nobody sees, not even itself, is padding and sees nothing."""
    batch, _, queries, keys = call.attention.shape
    seen = call.seen()
    if seen is None:
        return torch.ones((), dtype=torch.bool, device=call.attention.device).expand(batch, queries, keys)
    seen = seen.expand(batch, queries, keys)
    same = site != "cross" and queries == keys  # the tokens that ask are those that are asked
    return seen & seen.any(1)[:, :, None] if same else seen
