"""Sets of heads that are edited one after the other: every head, every layer, all heads of a layer but one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Shaped

from headscope.core.edit import Edit, LayerHeads
from headscope.core.errors import InputError
from headscope.core.heads import HeadSelection, check_heads_argument
from headscope.core.prose import join_words
from headscope.engine.edited import edited
from headscope.engine.model import Model

KINDS = ("heads", "layers", "all_but_one")


@dataclass(frozen=True)
class HeadSets:
    """Sets of heads, and where the result of each belongs in an array."""

    selections: tuple[tuple[str, ...], ...]
    dims: tuple[str, ...]
    coords: Mapping[str, Sequence[Any]]
    cells: tuple[tuple[int, ...], ...]  # of each set, in an array with these dims

    def arrange(self, values: Iterable[Any]) -> Shaped[np.ndarray, "..."]:
        """Return one value, or array, for each set as an array with the dims.

        Where a layer has fewer heads than others it is NaN, or empty for texts.
        """
        tables = list(map(np.asarray, values))
        first = tables[0]
        shape = tuple(len(self.coords[dim]) for dim in self.dims)
        if len(tables) == np.prod(shape):
            return np.stack(tables).reshape(*shape, *first.shape)
        is_text = first.dtype.kind in "OU"
        table = np.full((*shape, *first.shape), "" if is_text else np.nan, object if is_text else float)
        for cell, value in zip(self.cells, tables, strict=True):
            table[cell] = value
        return table


def make_head_sets(
    sets: Any, heads: Mapping[str, Mapping[int, int]], site: str, pruned: Sequence[str] = ()
) -> HeadSets:
    """Return the sets of a kind, or those of a list of selections, in which names without a site are at `site`.

    `heads` are the numbers of heads by site and layer; `pruned` names those of them that the model lost.
    """
    if site not in heads:
        raise InputError(f"This model has no attention site '{site}'. Its sites: {join_words(heads)}.")
    if isinstance(sets, str) and sets in KINDS:
        present, count = _list_present(heads, site, pruned), max(heads[site].values())
        return _list_sets(sets, present, count, f"{site}." if len(heads) > 1 else "")
    if isinstance(sets, str):
        raise InputError(
            f"sets={sets!r} is none of {join_words(KINDS, 'or')}. For sets of your own give a list, such as "
            "['L3H7+L0H1', 'L2'], in the shell one --sets for each."
        )
    if not isinstance(sets, Sequence) or not sets:
        raise InputError(f"sets must be {join_words(KINDS, 'or')}, or a list of selections of heads, but got {sets!r}.")
    names = ["+".join(selection) if isinstance(selection, list | tuple) else selection for selection in sets]
    selections = tuple(_add_site(selection, heads, site, pruned) for selection in sets)
    if len(set(names)) < len(names):
        raise InputError(
            f"sets names {next(name for name in names if names.count(name) > 1)} twice. Name each set once."
        )
    return HeadSets(selections, ("heads",), {"heads": names}, tuple((index,) for index in range(len(names))))


def _list_present(heads: Mapping[str, Mapping[int, int]], site: str, pruned: Sequence[str]) -> dict[int, list[int]]:
    """Return the heads of each layer at a site without those that were pruned."""
    gone = HeadSelection.parse(list(pruned)) if pruned else HeadSelection(())
    present = {layer: sorted(set(range(n)) - set(gone.select(site, layer, n))) for layer, n in heads[site].items()}
    if not any(present.values()):
        raise InputError(f"All heads at '{site}' were pruned, so there is none to ablate.")
    return present


def _list_sets(name: str, present: Mapping[int, Sequence[int]], count: int, prefix: str) -> HeadSets:
    """Return every head, every layer or all heads of a layer but one, without heads that were pruned."""
    layers = list(present)
    if name == "layers":
        left = [layer for layer in layers if present[layer]]
        names = tuple((f"{prefix}L{layer}",) for layer in left)
        return HeadSets(names, ("layer",), {"layer": layers}, tuple((layers.index(layer),) for layer in left))
    heads = [(layer, head) for layer in layers for head in present[layer]]
    cells = tuple((layers.index(layer), head) for layer, head in heads)
    if name == "all_but_one":
        names = tuple((f"{prefix}L{layer}-L{layer}H{head}",) for layer, head in heads)
    else:
        names = tuple((f"{prefix}L{layer}H{head}",) for layer, head in heads)
    return HeadSets(names, ("layer", "head"), {"layer": layers, "head": list(range(count))}, cells)


def _add_site(
    selection: Any, heads: Mapping[str, Mapping[int, int]], site: str, pruned: Sequence[str]
) -> tuple[str, ...]:
    """Return the parts of a selection with a site before those without; check that the model has these heads."""
    terms = HeadSelection.parse(check_heads_argument(selection)).terms
    named = tuple(term.text if term.site or len(heads) == 1 else f"{site}.{term.text}" for term in terms)
    with_sites = HeadSelection.parse(named)
    with_sites.find_sites(list(heads))
    with_sites.check(heads)
    for term in with_sites.terms:
        if term.base.head is not None and term.text in pruned:
            raise InputError(f"'{term.text}' was pruned, so it cannot be ablated. Leave it out.")
    return named


class _HeadCounter(Edit):
    """Counts the heads of each layer, and changes nothing."""

    counts: dict[str, dict[int, int]]

    def __call__(self, heads: LayerHeads) -> None:
        """Keep the number of heads of a layer."""
        self.counts.setdefault(heads.site, {})[heads.layer] = heads.context.shape[1]


def count_heads(model: Model, run: Callable[[], Any]) -> dict[str, dict[int, int]]:
    """Return the number of heads by site and layer, in the order of calls; `run` runs the model on any input."""
    counter = _HeadCounter()
    counter.counts = {}
    with edited(model, counter):
        run()
    return counter.counts
