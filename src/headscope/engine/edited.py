"""Running a model with changed attention."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from headscope.core.catalog import edits as catalog
from headscope.core.edit import Edit, LayerHeads
from headscope.core.errors import CaptureError, InputError
from headscope.core.spec import to_spec
from headscope.core.trace import Visible
from headscope.effective.visibility import all_visible
from headscope.engine.main_input import forward_parameters
from headscope.engine.model import Model, check_model
from headscope.engine.recording.interface import (
    computes_attention,
    edit_interface,
    find_configs,
    is_active,
    own_implementation,
)
from headscope.engine.recording.layout import bind_arguments, expand_regions, read_regions
from headscope.engine.recording.recorder import AttentionCall, repeat_value_heads
from headscope.engine.recording.sites import Sites, find_sites
from headscope.results.hashes import hash_file


def edited(model: Model, *edits: str | Edit) -> AbstractContextManager[Model]:
    """The model with its attention changed, for as long as the `with` block lasts.

    Each edit applies to what the one before it left. Inside the block the network runs with eager attention.
    Calls from other threads, and all calls after the block, run as ever.

    Parameters
    ----------
    model
        A model, as `hs.load` returns it.
    edits
        Edits, in the order in which they apply: names, specs such as "effective_attention:layers=0+3", or objects.

    >>> import headscope as hs
    >>> with hs.edited(hs.load(), "effective_attention:layers=0+3") as changed:
    ...     trace = hs.capture(changed, "The cat sat down.")
    >>> changed.spec
    'sentence-transformers/all-MiniLM-L6-v2 with effective_attention:layers=0+3'
    """
    check_model(model)
    if not edits:
        raise InputError(f"hs.edited was given no edit. Name one: {', '.join(catalog.names())}.")
    return _EditedBlock(_running(model, make_edits(edits)))


def make_edit(what: Any) -> Edit:
    """An edit from its name, its spec, its class or itself."""
    edit = catalog.make(what)
    if not isinstance(edit, Edit):
        raise InputError(f"Expected an edit, its name or its spec, but got {edit!r}.")
    return edit


def make_edits(edits: Any) -> tuple[Edit, ...]:
    """Return a list of edits, a single edit or None as a tuple of edits."""
    return tuple(map(make_edit, [] if edits is None else edits if isinstance(edits, list | tuple) else [edits]))


def describe_edits(edits: Sequence[Edit]) -> dict[str, Any]:
    """Return the edits as results are stamped with them: their specs, and hashes of the files that they read."""
    files = [path for edit in edits for path in edit.files().values()]
    return {"edits": list(map(to_spec, edits)), **({"edit_files": list(map(hash_file, files))} if files else {})}


def edit_if_any(model: Model, edits: Any) -> AbstractContextManager[Model]:
    """The model with its attention changed, or as it is where there is no edit."""
    parsed_edits = make_edits(edits)
    return edited(model, *parsed_edits) if parsed_edits else nullcontext(model)


class _EditedBlock(AbstractContextManager[Model]):
    """The block of `hs.edited`. A generator's own block raises a bare AttributeError when it is entered again."""

    def __init__(self, block: AbstractContextManager[Model]) -> None:
        self.block, self.entered = block, False

    def __enter__(self) -> Model:
        if self.entered:
            raise InputError("This hs.edited(…) was entered before: a block lasts once. Call hs.edited(…) again.")
        self.entered = True
        return self.block.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        return self.block.__exit__(*error)


@contextmanager
def _running(model: Model, edits: Sequence[Edit]) -> Iterator[Model]:
    sites, modules = find_sites(model), find_attention_modules(model)
    for edit in edits:
        edit.check_sites(list(dict.fromkeys(sites.find(name) for name in modules.values())))
    numbers = _number_layers(model.network, sites.find, modules) | dict(sites.numbers)
    editor = _Editor(model.network, sites, edits, modules, numbers)
    with edit_interface(model.network, editor), ExitStack() as stack:
        for handle in editor.register_hooks():
            stack.enter_context(handle)
        yield replace(model, spec=f"{model.spec} with {', '.join(map(to_spec, edits))}")


def find_attention_modules(model: Model) -> dict[int, str]:
    """The names of the modules that compute attention, by identity."""
    network, model_type = model.network, model.network.config.model_type
    modules = {id(module): name for name, module in network.named_modules() if computes_attention(module)}
    if not modules:
        raise _bypassed(model_type)
    if getattr(network, "is_gradient_checkpointing", False):
        raise InputError(
            "With gradient checkpointing, layers run again in the backward pass, where nothing says which layer it is. "
            "Call network.gradient_checkpointing_disable() before hs.edited."
        )
    return modules


def _number_layers(network: Any, find_site: Callable[[str], str], modules: Mapping[int, str]) -> dict[str, int]:
    """Return the layer of each attention module by name, at sites with one module per layer.

    That is so where there are as many modules as a config says that there are layers. ALBERT has less.
    """
    names: dict[str, list[str]] = {}
    for name in modules.values():
        names.setdefault(find_site(name), []).append(name)
    counts = {
        value * getattr(config, "inner_group_num", 1)  # ALBERT: attention modules that each of its layers runs
        for config in find_configs(network.modules())
        for attribute, value in vars(config).items()
        if attribute.endswith(("layer", "layers", "depth")) and isinstance(value, int)
    }
    numbered = (site_names for site_names in names.values() if len(site_names) in counts)
    return {name: layer for site_names in numbered for layer, name in enumerate(site_names)}


def _bypassed(model_type: str) -> CaptureError:
    return CaptureError(
        f"No head was edited: no attention of this model of type '{model_type}' was seen. Models of convolutions or "
        "recurrences have none; some others compute it in a way that headscope cannot follow."
    )


class _Pass(threading.local):
    """Progress of the forward pass, in each thread."""

    def __init__(self) -> None:
        self.running: list[Any] = []  # modules around attention whose calls have begun, outermost first
        self.calls = Counter[str]()  # attention calls so far, at each site
        self.heads: dict[str, dict[int, int]] = {}  # the number of heads of each layer so far, at each site
        self.own: Visible | None = None  # which keys the queries of the last self-attention saw
        self.real: Mapping[str | None, Tensor] = {}  # which tokens of each side are not padding, where that was said
        self.regions: Visible | None = None  # what the mask of the last attention module leaves visible in windows
        self.began = True  # whether no attention was computed since a module was called
        # masks of this pass, kept alive so that no id is reused, what they let be seen, and by which rows, None for all
        self.masks: dict[Any, tuple[Any, Visible, Tensor | None]] = {}


@dataclass(eq=False)
class _Editor:
    """Applies edits at the layers they are for.

    As in a capture, `Sites.number` numbers the layers. A pass begins when a module is called from
    outside the network: the whole network, or only its encoder, as `generate` does. No hook runs after an interrupt
    from the keyboard, so a call that is not made by the innermost running module begins a new pass. In a pass through
    some of the layers only, as in a loop over layers of one's own, a layer has the number of its attention module.
    """

    network: Any
    sites: Sites
    edits: Sequence[Edit]
    names: dict[int, str]  # attention modules, by identity
    layer_numbers: dict[str, int]  # layers of attention modules that have one each, by name
    inside: dict[int, set[int]] = field(default_factory=dict)  # the modules inside each module with hooks
    whole_sites: dict[int, set[str]] = field(default_factory=dict)  # where a module with hooks runs all layers
    current: _Pass = field(default_factory=_Pass)

    def change(self, call: AttentionCall, product: Tensor | None) -> Tensor:
        """Return what the heads of the next layer at this module's site write."""
        site = self.sites.find(call.name)
        layer = self._find_layer(call, site)
        self.current.heads.setdefault(site, {})[layer] = call.attention.shape[1]
        edits = [edit for edit in self.edits if edit.layers is None or layer in edit.layers]
        if not edits:
            return call.context
        values = repeat_value_heads(call.values, call.attention.shape[1])
        group = values.shape[1] // call.values.shape[1]
        visible, seeing = self._visible(call, site)
        own = self._own_visible(visible, site)
        heads = LayerHeads(site, layer, call.attention, values, call.context, visible, product, group, own)
        for edit in edits:
            heads = _apply(edit, heads, seeing)
        return heads.context

    def _find_layer(self, call: AttentionCall, site: str) -> int:
        """Return the layer of an attention module that is running."""
        current, name = self.current, call.name
        current.calls[site] += current.began  # a module may compute attention several times in one call
        current.began = False
        if current.running and site in self.whole_sites[id(current.running[0])]:
            return self.sites.number(name, current.calls[site] - 1)
        if name not in self.layer_numbers:
            count = sum(self.sites.find(other) == site for other in self.names.values())
            raise InputError(
                f"{name} was called from outside its network, where nothing says which of the layers of '{site}' it "
                f"is: the number of its modules ({count}) is not that of layers. Within hs.edited run all layers in "
                "one call, of the network or of its encoder or decoder."
            )
        self._check_mask(call)
        return self.layer_numbers[name]

    def _check_mask(self, call: AttentionCall) -> None:
        """Raise InputError if eager attention would read the mask of a layer that is called alone differently."""
        own = own_implementation(self.network.config) or "eager"
        causal = getattr(self.network.get_submodule(call.name), "is_causal", True) and call.attention.shape[2] > 1
        if own == "eager" or not (causal if call.mask is None else call.mask.dtype == torch.bool):
            return
        raise InputError(
            f"{call.name} was called from outside its network with {'no' if call.mask is None else 'a boolean'} mask, "
            f"which '{own}' attention reads otherwise than eager attention, with which edits are made. Give layers the "
            "mask that transformers.masking_utils.create_causal_mask returns within hs.edited."
        )

    def _visible(self, call: AttentionCall, site: str) -> tuple[Visible, Bool[Tensor, "batch 1 query 1"] | None]:
        """Return which keys each query sees, and which queries see any; layers with the same mask share the tensors."""
        regions = self.current.regions
        key = site, id(call.mask), id(regions), call.attention.shape, call.attention.device
        if key not in self.current.masks:
            visible = _visible(call, site, self.current.real.get(self.sites.sides_of(site)[0]))
            shown = None if regions is None else expand_regions(regions, call.attention)
            visible = visible if shown is None else visible & shown
            seeing = None if call.mask is None else visible.any(-1)[:, None, :, None]
            self.current.masks[key] = (call.mask, regions), visible, seeing
        return self.current.masks[key][1:]

    def _own_visible(self, visible: Visible, site: str) -> Bool[Tensor, "batch query _"] | None:
        """Return what the queries of cross-attention saw in the self-attention before: there padding sees nothing."""
        if not site.endswith("cross"):
            self.current.own = visible
            return None
        own = self.current.own
        return own if own is not None and own.shape[:2] == visible.shape[:2] else None

    def register_hooks(self) -> Iterator[Any]:
        """Register hooks on all modules around attention, to know where a pass begins and ends."""
        parents = {name[:end] for name in self.names.values() for end, letter in enumerate(name) if letter == "."}
        for name in {"", *parents, *self.names.values()}:  # lambdas, so that copying the network does not copy us
            module = self.network.get_submodule(name)
            self.inside[id(module)] = {id(submodule) for submodule in module.modules()} - {id(module)}
            self.whole_sites[id(module)] = self._find_whole_sites(name, module)
            yield module.register_forward_pre_hook(
                lambda module, args, options: self._begin(module, args, options), with_kwargs=True
            )
            yield module.register_forward_hook(
                lambda module, _, output: self._end(module, output),
                always_call=True,  # after an exception, too
            )

    def _find_whole_sites(self, name: str, module: Any) -> set[str]:
        """Return the sites all of whose layers a call of the module runs; a numbered module is one layer."""
        sites = set(map(self.sites.find, self.names.values()))
        if any(segment.isdigit() for segment in name.split(".")):
            return set()
        outside = self.names.keys() - set(map(id, module.modules()))
        return sites - {self.sites.find(self.names[other]) for other in outside}

    def _begin(self, module: Any, args: Sequence[Any], options: Mapping[str, Any]) -> None:
        running = self.current.running
        if id(module) not in self.inside:  # of a copy of the network
            return
        if not (running and id(module) in self.inside[id(running[-1])]):
            running.clear()
            self.current.calls.clear()
            self.current.masks.clear()
            self.current.own = None
            self.current.real = _find_real(module, options)
        running.append(module)
        self.current.began = True
        if id(module) in self.names:
            self.current.regions = read_regions(bind_arguments(module, args, options).get("attention_mask"))

    def _end(self, module: Any, output: Any) -> None:
        running = self.current.running
        if id(module) not in self.inside or not running or running.pop() is not module or running:
            return
        self.current.masks.clear()
        self.current.own = None
        if output is None or not is_active(self):  # None: an exception passes
            return
        if module is self.network or self._saw_all_layers():
            self._check()

    def _saw_all_layers(self) -> bool:
        """Return True if all layers were run, one by one or together."""
        heads, modules = self.current.heads, Counter(map(self.sites.find, self.names.values()))
        return all(len(heads.get(site, {})) >= count for site, count in modules.items())

    def _check(self) -> None:
        """Raise an error after a pass in which nothing was changed, or for a layer or head that does not exist."""
        if not self.current.heads:
            if any(computes_attention(part) and id(part) not in self.names for part in self.network.modules()):
                raise CaptureError(
                    f"No head was edited: this model of type '{self.network.config.model_type}' replaced its attention "
                    "modules while it ran, as BigBird does for short texts. Enter hs.edited again; they stay replaced."
                )
            raise _bypassed(self.network.config.model_type)
        heads = {site: dict(sorted(layers.items())) for site, layers in self.current.heads.items()}
        for edit in self.edits:
            edit.check_heads(heads)


def _apply(edit: Edit, heads: LayerHeads, seeing: Bool[Tensor, "batch 1 query 1"] | None) -> LayerHeads:
    """Return the heads with the edited context; rows of padding, which see nothing, keep theirs."""
    context = edit(heads)
    if context is None:
        return heads
    if context.shape != heads.context.shape:
        raise InputError(
            f"The edit '{to_spec(edit)}' must give a context of shape {list(heads.context.shape)} (batch head query "
            f"value), but gave {list(context.shape)}."
        )
    context = context.to(heads.context.dtype)
    if seeing is not None:
        context = torch.where(seeing, context, heads.context)
    return replace(heads, context=context, product=heads.context if heads.product is None else heads.product)


def _find_real(module: Any, arguments: Mapping[str, Any]) -> dict[str | None, Tensor]:
    """Return which tokens of source and target are not padding, where the call of a module says it.

    Of a module that has no mask for a decoder, such as a decoder called by itself, `attention_mask` is its own.
    """
    target = "decoder_attention_mask" if "decoder_attention_mask" in forward_parameters(module) else "attention_mask"
    masks = {"source": arguments.get("attention_mask"), "target": arguments.get(target)}
    return {side: mask.bool() for side, mask in masks.items() if isinstance(mask, Tensor) and mask.ndim == 2}


def _visible(call: AttentionCall, site: str, real: Tensor | None = None) -> Visible:
    """Return which keys each query sees; padding sees nothing.

    Which tokens are `real` is what the model was told. Otherwise a token that no query sees, not even itself, is
    padding; but sparse attention may leave out a token in all rows, and XLNet's padding sees itself.
    """
    batch, _, queries, keys = call.attention.shape
    seen = call.visible()
    if seen is None:
        return all_visible((batch, queries, keys), call.attention.device)
    seen = seen.expand(batch, queries, keys)
    same = not site.endswith("cross") and queries == keys  # the tokens that ask are those that are asked
    if not same:
        return seen
    told = real is not None and real.shape == seen.shape[:2]
    used = real.to(seen.device) if real is not None and told else seen.any(1)
    return seen & used[:, :, None]
