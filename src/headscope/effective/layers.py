"""Effective attention of the layers of a trace, with diagnostics."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import torch
from jaxtyping import Float, Num
from torch import Tensor

from headscope.core.edit import LayerHeads
from headscope.core.errors import InputError
from headscope.core.maps.factored import Factored
from headscope.core.prose import join_words
from headscope.core.trace import Trace, Visible, at_least_float32
from headscope.core.transfer import copy_to_device
from headscope.effective.causal import NestedKeys, project_rows
from headscope.effective.diagnostics import (
    EffectiveLayer,
    dense_residual,
    describe,
    divide,
    effective_share,
    factored_residual,
    frobenius_norm,
)
from headscope.effective.projection import Basis, column_bases, project_left
from headscope.effective.published import find_published_basis
from headscope.effective.visibility import Visibility, analyze_mask

Keys = Literal["visible", "padded", "paper"]

NEEDS: dict[Keys, frozenset[str]] = {
    "visible": frozenset({"attention", "values"}),
    "padded": frozenset({"attention", "values", "pads"}),
    "paper": frozenset({"attention", "values", "pads"}),
}

TOGETHER_BYTES = 2**27
"""Size of the attention of all layers up to which a GPU multiplies it at once: launches cost more than a copy."""

STACK_BYTES = 2**30
"""Memory that the float64 copies of the values of layers computed together may take on a GPU."""


@dataclass(frozen=True)
class _Layer:
    """What the projection of one layer needs."""

    label: int
    attention: Float[Tensor, "batch head query key"]
    values: Float[Tensor, "batch value_head key value"]
    visible: Visible
    context: Float[Tensor, "batch head query value"] | None

    def stacks_with(self, other: "_Layer") -> bool:
        """Whether both layers have one mask and one shape, so that their values can be stacked."""
        shapes = self.attention.shape == other.attention.shape and self.values.shape == other.values.shape
        return shapes and self.visible is other.visible and self.values.dtype == other.values.dtype


def compute_layers(trace: Trace, keys: Keys) -> Iterator[EffectiveLayer]:
    """Compute effective attention of every layer of a trace.

    `visible`: each row within the keys it can see, exact. `padded`: rows of padding take part as if they were keys,
    still exact. `paper`: the same, then the columns of padding are removed, as the published code does; not exact.
    """
    assert trace.values is not None, "hs.view checks what the trace holds"
    contexts = trace.context if trace.context is not None else [None] * len(trace.layers)
    # traces repeat values that heads share: one head of each group is enough
    values = [layer_values[:, :: trace.group] for layer_values in trace.values]
    layer_fields = zip(trace.layers, trace.attention, values, trace.visible, contexts, strict=True)
    for layers in _stack_layers([_Layer(*fields) for fields in layer_fields]):
        try:
            yield from _compute(layers, keys)
        except InputError as error:
            raise (_locate_nan(layers, trace) or error) from None


class LayerBlocks:
    """Effective attention of some queries of a layer at a time, whose bases are computed once.

    Queries that see all keys share a basis, and those that see the first ones share Gram matrices; all others are
    problems of their own in each block.
    """

    def __init__(self, layer: Trace, keys: Keys) -> None:
        """Take the layer without its queries."""
        assert layer.values is not None, "hs.view checks what the trace holds"
        self._layer, self._keys = layer, keys
        self._values = layer.values[0][:, :: layer.group]
        (self._real,) = copy_to_device(self._values.device, [layer.keys.real])

    def __call__(self, block: Trace) -> EffectiveLayer:
        """Compute effective attention of a block of queries, which sees the first keys of the layer."""
        (attention,), (visible,) = block.attention, block.visible
        context = None if block.context is None else block.context[0]
        layer = _Layer(block.layers[0], attention, self._values[:, :, : visible.shape[-1]], visible, context)
        try:
            return self._compute(layer)
        except InputError as error:
            raise (_locate_nan([replace(layer, values=self._values)], block) or error) from None

    def _compute(self, layer: _Layer) -> EffectiveLayer:
        seen, width = layer.visible.any(-1, keepdim=True), layer.visible.shape[-1]
        real = self._real[:, None, :width]
        if torch.equal(layer.visible, seen & real) and not bool(self._real[:, width:].any()):
            return self._apply_shared(layer)
        last = width - layer.visible.flip(-1).to(torch.uint8).argmax(
            -1, keepdim=True
        )  # keys up to the last visible one
        first_keys = (torch.arange(width, device=real.device) < last) & real & seen
        if self._keys == "visible" and torch.equal(layer.visible, first_keys) and layer.values.dtype != torch.float64:
            structure = Visibility(layer.visible.sum(-1).cpu(), order=self._nested_order, sorted=self._nested.sorted)
            return next(_compute_rows([layer], structure, self._nested))
        return next(_compute([layer], self._keys))

    def _apply_shared(self, layer: _Layer) -> EffectiveLayer:
        if self._keys == "paper":
            return _compute_as_published(layer, self._real[:, : layer.visible.shape[-1]], self._shared_basis)
        counts, basis = self._real.sum(-1), self._shared_basis
        counts = torch.full_like(counts, self._real.shape[-1]) if self._keys == "padded" else counts
        if basis.right is not None:
            basis = replace(basis, right=basis.right[:, : layer.attention.shape[-1]])
        return _apply_basis(layer, basis, counts[:, None].expand(-1, layer.attention.shape[1]), None)

    @cached_property
    def _shared_basis(self) -> Basis:
        if self._keys == "paper":
            return find_published_basis(at_least_float32(self._values).flatten(0, 1))
        structure = Visibility(self._real.sum(-1, keepdim=True).cpu(), shared=self._real)
        (basis,) = _find_bases([self._whole], structure, padded=self._keys == "padded")
        return basis

    @property
    def _whole(self) -> _Layer:
        (attention,), (visible,) = self._layer.attention, self._layer.visible
        return _Layer(self._layer.layers[0], attention, self._values, visible, None)

    @cached_property
    def _nested_order(self) -> Tensor:
        return (~self._real).to(torch.uint8).argsort(dim=-1, stable=True)

    @cached_property
    def _nested(self) -> NestedKeys:
        is_sorted = torch.equal(
            self._nested_order, torch.arange(self._real.shape[-1]).to(self._real.device).expand_as(self._real)
        )
        return NestedKeys(at_least_float32(self._values)[None], self._real, None if is_sorted else self._nested_order)


def _locate_nan(layers: Sequence[_Layer], trace: Trace) -> InputError | None:
    """Return an error that names the layer, the heads and the examples whose values are NaN or infinite, if any are."""
    for layer in layers:
        wrong = ~layer.values.isfinite().flatten(2).all(-1)  # batch value_head
        if bool(wrong.any()):
            heads = [trace.heads[trace.group * index] for index in wrong.any(0).nonzero()[:, 0].tolist()]
            examples = [trace.examples[row].id for row in wrong.any(1).nonzero()[:, 0].tolist()]
            return InputError(
                f"In layer {layer.label} the values of {_name('head', heads)} are NaN or infinite for "
                f"{_name('example', examples)}, so no projection is defined. Leave these examples out, or look for "
                "such weights in the model; half precision overflows on some inputs: load it with dtype='float32'."
            )
    return None


def _name(noun: str, labels: Sequence[object]) -> str:
    return f"{noun if len(labels) == 1 else noun + 's'} {join_words(labels, limit=8)}"


def _stack_layers(layers: Sequence[_Layer]) -> Iterator[list[_Layer]]:
    """Group layers: on a GPU those that can be computed together, for fewer launches; on a CPU one by one."""
    largest = max(8 * layer.attention.shape[1] * layer.values[:, 0].numel() for layer in layers)
    most = max(1, STACK_BYTES // largest)
    group: list[_Layer] = []
    for layer in layers:
        if group and not (layer.attention.is_cuda and len(group) < most and layer.stacks_with(group[0])):
            yield group
            group = []
        group.append(layer)
    yield group


def compute_layer(heads: LayerHeads, keys: Keys) -> Float[Tensor, "batch head query key"] | Factored:
    """Compute effective attention of one layer while a model runs."""
    values = at_least_float32(heads.values[:, :: heads.group]).contiguous()
    layer = _Layer(heads.layer, at_least_float32(heads.attention), values, heads.visible, None)
    (effective,) = _compute([layer], keys)
    return effective.maps


def _compute(layers: Sequence[_Layer], keys: Keys) -> Iterator[EffectiveLayer]:
    visible, label = layers[0].visible, layers[0].label
    structure = analyze_mask(visible)
    if structure.shared is None:
        if keys != "visible":
            raise InputError(
                f"keys='{keys}' treats padding as keys that every query sees, but in layer {label} queries differ in "
                "the keys they see (a causal or sliding mask). Use keys='visible'."
            )
        yield from _compute_rows(layers, structure)
    elif keys == "paper":
        for layer in layers:
            basis = find_published_basis(at_least_float32(layer.values).flatten(0, 1))
            yield _compute_as_published(layer, structure.shared, basis)
    else:
        yield from _compute_shared(layers, structure, padded=keys == "padded")


def _compute_shared(layers: Sequence[_Layer], structure: Visibility, *, padded: bool) -> Iterator[EffectiveLayer]:
    """Project where every query sees the same keys: factored, or attention itself where nothing is lost."""
    counts = structure.key_counts.to(layers[0].attention.device, non_blocking=True)
    counts = torch.full_like(counts, layers[0].attention.shape[-1]) if padded else counts
    count = counts[:, None].expand(-1, layers[0].attention.shape[1])
    bases = _find_bases(layers, structure, padded=padded)
    for layer, basis, left in zip(layers, bases, _project_together(layers, bases), strict=True):
        yield _apply_basis(layer, basis, count, left)


def _project_together(layers: Sequence[_Layer], bases: Sequence[Basis]) -> list[Tensor] | list[None]:
    """Return A·Q of each layer from one stacked product; None on a CPU, and where one layer keeps a GPU busy."""
    rights, first = [basis.right for basis in bases if basis.right is not None], layers[0].attention
    size = 4 * len(layers) * first.numel()
    if len(layers) == 1 or not first.is_cuda or size > TOGETHER_BYTES or len(rights) < len(layers):
        return [None] * len(layers)
    weights = torch.stack([layer.attention for layer in layers]).view(len(layers), len(rights[0]), -1, first.shape[-1])
    product = weights.to(rights[0].dtype) @ torch.stack(rights)
    return list(product.view(len(layers), *first.shape[:3], -1))


def _find_bases(layers: Sequence[_Layer], structure: Visibility, *, padded: bool) -> list[Basis]:
    """Return the bases of each layer; a problem is one value head of one example."""
    shared, counts = structure.shared, structure.key_counts
    assert shared is not None
    if padded:
        shared, counts = torch.ones_like(shared), torch.full_like(counts, shared.shape[-1])
    heads, all_visible = layers[0].values.shape[1], bool((counts == shared.shape[-1]).all())
    keys = shared[:1].expand(heads * len(shared), -1) if all_visible else shared.repeat_interleave(heads, 0)
    return column_bases(_stack_values(layers).flatten(1, 2), keys, counts.repeat_interleave(heads))


def _stack_values(layers: Sequence[_Layer]) -> Float[Tensor, "layer batch value_head key value"]:
    return torch.stack([layer.values for layer in layers]) if len(layers) > 1 else layers[0].values[None]


def _apply_basis(layer: _Layer, basis: Basis, count: Tensor, left: Tensor | None) -> EffectiveLayer:
    if basis.right is None:
        ones = torch.ones(count.shape, device=count.device)
        return EffectiveLayer(at_least_float32(layer.attention), describe(count, count, lambda: 0 * ones, lambda: ones))
    factored, rank = _project_heads(layer, basis, left), _repeat(basis.rank.view(len(count), -1), count.shape[1])
    return _describe_factored(layer, factored, rank, count, factored.left)  # ‖B·Qᵀ‖ = ‖B‖: Q is orthonormal


def _project_heads(layer: _Layer, basis: Basis, left: Tensor | None = None) -> Factored:
    """Return the attention of every head on the basis of its values; `left` is A·Q if known."""
    assert basis.right is not None
    batch, heads, queries, keys = layer.attention.shape
    groups, columns = layer.values.shape[1], basis.right.shape[-1]
    if left is None:
        weights, context = layer.attention.reshape(batch * groups, -1, keys), layer.context
        if context is not None and not context.is_cuda:
            context = context.reshape(batch * groups, -1, layer.values.shape[-1])
        left = project_left(weights, basis.inverse, basis.right, context).view(batch, heads, queries, columns)
    return Factored(left, _repeat(basis.right.view(batch, groups, keys, columns), heads))


def _compute_rows(
    layers: Sequence[_Layer], structure: Visibility, nested: NestedKeys | None = None
) -> Iterator[EffectiveLayer]:
    """Project where queries differ in the keys they see; n and rank are those of the query that sees most."""
    visible, heads = layers[0].visible, layers[0].attention.shape[1]
    values = at_least_float32(_stack_values(layers))
    rows = project_rows([layer.attention for layer in layers], values, visible, structure, nested)
    widest = structure.counts.argmax(-1).to(visible.device)
    count = structure.key_counts.to(visible.device)[:, None].expand(-1, heads)
    for layer, effective, ranks in zip(layers, rows.effective, rows.rank, strict=True):
        groups = ranks.shape[1]
        rank = _repeat(ranks.gather(-1, widest[:, None, None].expand(-1, groups, 1))[..., 0], heads)
        residual = partial(_row_residual, effective, layer)
        share = partial(_dense_share, effective, layer.attention)
        yield EffectiveLayer(effective, describe(count, rank, residual, share))


def _row_residual(effective: Tensor, layer: _Layer) -> Tensor:
    return dense_residual(effective, _repeat(layer.values, layer.attention.shape[1]), layer.attention)


def _repeat(tensor: Num[Tensor, "batch value_head *shape"], heads: int) -> Num[Tensor, "batch head *shape"]:
    """Repeat what belongs to a value head for each head that shares it."""
    group = heads // tensor.shape[1]
    return tensor if group == 1 else tensor.repeat_interleave(group, 1)


def _dense_share(effective: Tensor, attention: Tensor) -> Tensor:
    return divide(frobenius_norm(effective), frobenius_norm(attention))


def _compute_as_published(layer: _Layer, shared: Tensor, basis: Basis) -> EffectiveLayer:
    """Use one rank for the whole batch, an absolute cutoff, and padding among the keys; then remove its columns."""
    factored = _project_heads(layer, basis)
    factored = Factored(factored.left, factored.right * shared[:, None, :, None])
    rank = _repeat(basis.rank.view(len(shared), -1), layer.attention.shape[1])
    return _describe_factored(layer, factored, rank, torch.full_like(rank, layer.attention.shape[-1]), None)


def _describe_factored(
    layer: _Layer, factored: Factored, rank: Tensor, count: Tensor, norm_of: Tensor | None
) -> EffectiveLayer:
    """Add diagnostics to factors; `norm_of` is a tensor of the norm of the maps, or None for the maps themselves."""

    def share() -> Tensor:
        return effective_share(factored.weights if norm_of is None else norm_of, layer.attention, count, rank)

    def residual() -> Tensor:
        values = at_least_float32(_repeat(layer.values, layer.attention.shape[1]))
        has_context = layer.context is not None and layer.context.dtype == values.dtype
        target = layer.context if has_context else at_least_float32(layer.attention) @ values
        assert target is not None
        return factored_residual(factored.left, factored.right, values, target)

    return EffectiveLayer(factored, describe(count, rank, residual, share))
