"""Remove heads from a model: a smaller network that computes what the larger one does without them."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from headscope.core.errors import InputError
from headscope.core.family import Family, HeadWeights
from headscope.core.heads import HeadSelection, HeadTerm, check_heads_argument
from headscope.core.prose import count_noun, join_words
from headscope.engine.model import Model, check_model, name_modules
from headscope.engine.pruning.cut_heads import cut_heads, find_rows, list_layers, read_example, restore_cuts
from headscope.engine.pruning.kept_heads import KeptHeads, find_kept_heads
from headscope.engine.pruning.pruned_config import CUTS, list_pruned, restore_config, update_config
from headscope.engine.pruning.remove_heads import count_heads, remove_heads
from headscope.engine.recording.interface import calls_interface, is_intercepted
from headscope.engine.recording.sites import find_sites

Heads = Mapping[str, Mapping[int, KeptHeads]]
"""The heads that are left, by site and layer."""


def prune(model: Model, heads: str | Sequence[str], *, example: Any = None) -> Model:
    """Return a smaller model without some heads; its outputs equal those of the model with `zero_heads`.

    A layer may lose all its heads; it then writes the bias of its output projection.

    Heads keep their names: after `L3H1` is pruned, `L3H2` is still `L3H2` in edits, captures and another `hs.prune`,
    and `L3H1` is NaN in captures. `hs.save(model, folder)` writes the model, and `hs.load(folder)` reads it. The
    library's own `from_pretrained` refuses it, because its layers have different numbers of heads; it reads a Llama
    whose layers keep equally many, with equally many for each key-value head and a number that divides its width.

    Kinds that a family describes become as small as a model with fewer heads. Of every other kind the weights that only
    these heads need are found by data flow, and removed from the linear layers around attention, which itself computes
    zeros in their place. The result is compared with `zero_heads` on the example; if they differ, it is refused.

    Where query heads share keys and values (GQA), a key-value head is removed with the last of its query heads. Where
    the query heads that are left are not equally many for each key-value head, key-value heads are repeated after they
    are computed: the weights are as small as they can be, but the cache of `generate` is not.

    Parameters
    ----------
    model
        A model, as `hs.load` returns it. It is not changed.
    heads
        The heads to remove: `["L3H7", "L0H1"]`, `"L3"` for a layer, `"all-L3H7"` for all but one, `"cross.L3H7"` at
        one of several sites.
    example
        A text, or anything that `hs.capture` takes, for models of kinds that no family describes: it is run to find
        the weights of each head. By default a few tokens; models of pictures and sounds need one.

    >>> smaller = hs.prune(model, ["L3H7", "L0H1"])
    >>> smaller.network.num_parameters() < model.network.num_parameters()
    True
    """
    check_model(model)
    names = list(check_heads_argument(heads))
    _check_network(model)
    smaller = replace(model, network=deepcopy(model.network), source=None)
    removed = prune_network(smaller, names) if has_facts(model) else _cut(model, smaller, names, example)
    return replace(smaller, spec=f"{model.spec} without {_describe(removed)}")


def _cut(model: Model, smaller: Model, names: Sequence[str], example: Any) -> list[str]:
    """Remove heads of a model that no family describes from its copy, and return their names."""
    inputs = read_example(model, example)
    rows = find_rows(model, inputs)
    heads = list_layers(model, rows)
    selected = _select(HeadSelection.parse(names), heads)
    gone = {
        (site, layer, head)
        for site, layers in heads.items()
        for layer, present in layers.items()
        for head in selected[site][layer]
        if head in present.heads
    }
    cut_heads(model, smaller, rows, gone, "+".join(names), inputs)
    removed = [name_head(*head, sites=len(find_sites(model).table)) for head in sorted(gone)]
    list_pruned(smaller.network.config, removed)
    return removed


def prune_network(model: Model, names: Sequence[str]) -> list[str]:
    """Remove heads of a model's network in place, note them in its config, and return their names."""
    facts, modules = _find_facts(model), list_heads(model)
    heads = {site: _number_layers(model, layers) for site, layers in modules.items()}
    selected = _select(HeadSelection.parse(names), heads)
    removed = []
    for site, layers in modules.items():
        for (name, present), layer in zip(layers.items(), heads[site], strict=True):
            gone = [head for head in selected[site][layer] if head in present.heads]
            if gone:
                remove_heads(model, name, facts, gone)
                removed += [name_head(site, layer, head, sites=len(heads)) for head in gone]
    left = [module for layers in list_heads(model).values() for module in layers.values()]
    update_config(model.network.config, removed, left, facts)
    return removed


def _number_layers(model: Model, modules: Mapping[str, KeptHeads]) -> dict[int, KeptHeads]:
    """Return the heads of a site's attention modules by the numbers of their layers."""
    sites = find_sites(model)
    return {sites.number(name, place): modules[name] for place, name in enumerate(modules)}


def name_head(site: str, layer: int, head: int, *, sites: int) -> str:
    """Return the name of a head, with its site where the model has several."""
    return f"{site}.L{layer}H{head}" if sites > 1 else f"L{layer}H{head}"


def make_pruned_class(architecture: Any, family: Family, heads: Sequence[str]) -> Any:
    """Return a class of networks that lose heads when they are built, so that saved weights fit into them."""

    class Pruned(architecture):  # type: ignore[misc]  # its class is known at run time
        def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
            restore_config(config)
            super().__init__(config, *args, **kwargs)
            if (cuts := getattr(config, CUTS, None)) is not None:
                restore_cuts(self, cuts)
                _check_names(Model(self, None, family, architecture.__name__), heads)
            else:
                prune_network(Model(self, None, family, architecture.__name__), heads)
            self.__class__ = architecture

    return Pruned


def _check_names(model: Model, names: Sequence[str]) -> None:
    """Raise InputError if the names of pruned heads count layers otherwise than their modules do now."""
    sites = find_sites(model)
    kept = {name: find_kept_heads(model.network.get_submodule(name)) for name in sites.numbers}
    gone = {
        name_head(sites.find(module), sites.numbers[module], head, sites=len(sites.table))
        for module, left in kept.items()
        for head in (left.missing if left else ())
    }
    numbered = {sites.find(module) for module in sites.numbers}
    only = next(iter(numbered), None) if len(sites.table) == 1 else None
    listed = {term.text for term in map(HeadTerm.parse, names) if (term.site or only) in numbered}
    if listed != gone:
        raise InputError(
            f"This model lists {join_words(sorted(listed), limit=4)} as pruned, but its modules lack "
            f"{join_words(sorted(gone), limit=4)}: it was saved when the layers of hybrids were counted by their "
            "attention. Prune the whole model again."
        )


def list_heads(model: Model) -> dict[str, dict[str, KeptHeads]]:
    """Return the heads that each attention module has, by site and name of the module, in the order of the layers."""
    facts, sites = _find_facts(model), find_sites(model)
    heads: dict[str, dict[str, KeptHeads]] = {}
    for module, name in name_modules(model.network).items():
        if calls_interface(module):
            heads.setdefault(sites.find(name), {})[name] = count_heads(model, name, facts)
    return heads


def _select(selection: HeadSelection, heads: Heads) -> dict[str, dict[int, list[int]]]:
    """Return the chosen heads of each layer at each site; raise InputError for those that there are not."""
    selection.find_sites(list(heads))
    selection.check({site: {layer: left.total for layer, left in layers.items()} for site, layers in heads.items()})
    selected = {
        site: {layer: selection.select(site, layer, left.total) for layer, left in layers.items()}
        for site, layers in heads.items()
    }
    for term in selection.terms:
        for site in heads if term.site is None else [term.site]:
            layer, head = term.base.layer, term.base.head
            if layer is not None and head is not None and head not in heads[site][layer].heads:
                raise InputError(f"'{term.text}' is pruned already.")
    return selected


def has_facts(model: Model) -> bool:
    """Return True if a family says where the weights of the heads of a model are."""
    return model.network.config.model_type in prunable_kinds(model.family)


def _find_facts(model: Model) -> HeadWeights:
    facts = model.family.head_weights
    assert facts is not None
    return facts


def prunable_kinds(family: Any) -> tuple[str, ...]:
    """Return the kinds of a family whose heads can be removed."""
    facts = family.head_weights
    return () if facts is None else facts.kinds or family.kinds


def _check_network(model: Model) -> None:
    """Raise InputError for a network that cannot be pruned."""
    network = model.network
    if is_intercepted(network):
        raise InputError("A model cannot be pruned while it is edited. Call hs.prune outside of hs.edited.")
    if any(weight.is_meta for weight in network.parameters()):
        raise InputError(
            "Heads cannot be removed from a model whose weights are offloaded. Load all of it to one device."
        )


def _describe(names: Sequence[str]) -> str:
    return "+".join(names) if len(names) <= 4 else count_noun(len(names), "head")
