"""Remove heads from attention modules: their rows of the query, key and value projections, their columns of the output.

A head is removed as transformers once did it with `prune_heads`, so that the rest computes what it did before.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import gcd
from typing import Any

import torch
from torch import Tensor, nn

from headscope.core.errors import InputError
from headscope.core.family import HeadWeights
from headscope.engine.model import Model
from headscope.engine.pruning.attention import EmptyAttention, RepeatedHeads, SharedBias, derive_class
from headscope.engine.pruning.cut_layers import is_linear, is_transposed, select_weights
from headscope.engine.pruning.kept_heads import KeptHeads, find_kept_heads
from headscope.engine.recording.output_projection import find_projection


def count_heads(model: Model, name: str, facts: HeadWeights) -> KeptHeads:
    """Return the heads of an attention module, as they are now."""
    module = model.network.get_submodule(name)
    if (pruned := find_kept_heads(module)) is not None:
        return pruned
    size = getattr(module, facts.size)
    heads = _input_width(find_projection(model, name)) // size
    widths = [_output_width(layer) for layer in _find_projections(module, facts)]
    return KeptHeads(tuple(range(heads)), heads, size, max(1, heads * size // min(widths)))


def remove_heads(model: Model, name: str, facts: HeadWeights, heads: Sequence[int]) -> None:
    """Remove heads of one attention module in place."""
    module, before = model.network.get_submodule(name), count_heads(model, name, facts)
    after = replace(before, heads=tuple(head for head in before.heads if head not in heads))
    size, width = before.size, len(before.heads) * before.size
    positions = [before.heads.index(head) for head in after.heads]
    output = find_projection(model, name)
    shares = before.group > 1
    for layer in _find_projections(module, facts):
        if shares and layer is not module.get_submodule(facts.projections[0]):
            _cut_shared(layer, before, after, size)
        else:
            projections = _output_width(layer) // width
            rows = [
                projection * len(before.heads) + position for projection in range(projections) for position in positions
            ]
            _cut(layer, _expand_rows(rows, size), inputs=False)
    _cut(output, _expand_rows(positions, size), inputs=True)
    for attribute in facts.counts:
        setattr(module, attribute, len(positions))
    for attribute in facts.widths:
        setattr(module, attribute, len(positions) * size)
    if facts.group is not None:
        setattr(module, facts.group, _group_size(after))
    _change_class(module, model.family.projection, facts, after)


def _change_class(module: Any, projection: str | None, facts: HeadWeights, heads: KeptHeads) -> None:
    """Give a module its kept heads, and another class where its own forward needs all heads, or at least one."""
    original: Any = getattr(module, "original", type(module))
    if not heads.heads or facts.bias is not None:
        mixin = SharedBias if heads.heads else EmptyAttention
        module.__class__ = derive_class(mixin, original, facts, projection)
    module.kept_heads = heads


def _cut_shared(layer: Any, before: KeptHeads, after: KeptHeads, size: int) -> None:
    """Remove key-value heads that no query head uses; repeat the others where the groups differ in size."""
    old, counts = sorted({head // after.group for head in before.heads}), after.count_users()
    _cut(layer, _expand_rows([old.index(head) for head in counts], size), inputs=False)
    group = _group_size(after)
    repeats = [index for index, users in enumerate(counts.values()) for _ in range(users // max(1, group))]
    uneven = len(repeats) > len(counts)
    layer.__class__ = RepeatedHeads if uneven else nn.Linear
    if uneven:
        layer.repeats, layer.head_size = repeats, size


def _group_size(heads: KeptHeads) -> int:
    """Return the number of query heads for each key-value head, after those of larger groups are repeated."""
    return gcd(*heads.count_users().values())


def _find_projections(module: Any, facts: HeadWeights) -> list[Any]:
    return [getattr(module, name) for name in facts.projections if hasattr(module, name)]


def _expand_rows(heads: Sequence[int], size: int) -> Tensor:
    """Return the numbers of the rows of heads."""
    return (torch.tensor(heads, dtype=torch.long)[:, None] * size + torch.arange(size)).flatten()


def _cut(layer: Any, index: Tensor, *, inputs: bool) -> None:
    """Keep some inputs or outputs of a linear layer, in place."""
    check_layer(layer)
    transposed = is_transposed(layer)
    weight = layer.weight
    dim = int(inputs != transposed)
    layer.weight = select_weights(weight, dim, index)
    if layer.bias is not None and not inputs:
        layer.bias = select_weights(layer.bias, 0, index)
    names = ("nx", "nf") if transposed else ("in_features", "out_features")
    setattr(layer, names[0] if inputs else names[1], len(index))


def check_layer(layer: Any) -> None:
    """Raise InputError for a layer that is more than a linear one, or whose weight is quantised."""
    weight = getattr(layer, "weight", None)
    if (
        not is_linear(layer)
        or hasattr(layer, "base_layer")
        or not isinstance(weight, nn.Parameter)
        or weight.element_size() < 2
    ):
        raise InputError(
            f"Heads cannot be removed from a {type(layer).__name__} of {getattr(weight, 'dtype', 'unknown type')}: it "
            "is quantised or has an adapter. Load the model unquantised, or merge the adapter first."
        )


def _input_width(layer: Any) -> int:
    check_layer(layer)
    return int(layer.in_features if isinstance(layer, nn.Linear) else layer.weight.shape[0])


def _output_width(layer: Any) -> int:
    check_layer(layer)
    return int(layer.out_features if isinstance(layer, nn.Linear) else layer.nf)
