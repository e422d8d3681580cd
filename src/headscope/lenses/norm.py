"""Norm of the vector that each key adds to the output."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.contribution.vectors import mixing_ratios, read_contributions, require_own_tokens
from headscope.core.lens import Lens
from headscope.core.maps import Maps, make_maps
from headscope.core.spec import to_spec
from headscope.core.trace import Trace, at_least_float32

ROWS = 64
"""Number of queries whose heads are summed at a time."""


def value_norms(
    values: Float[Tensor, "batch head key value"], output: Float[Tensor, "head value hidden"]
) -> Float[Tensor, "batch head key"]:
    """Return ‖f(x)‖ of each head, where f(x) is the value times the head's slice of W_O.

    With Wᵀ = Q·R, ‖v·W‖ = ‖v·Rᵀ‖, so no vector of the hidden size is computed.
    """
    triangle = torch.linalg.qr(output.mT, mode="r").R  # head value value
    norms: Tensor = torch.linalg.vector_norm(values @ triangle.mT, dim=-1)
    return norms


def head_norms(
    attention: Float[Tensor, "batch head query key"], norms: Float[Tensor, "batch head key"]
) -> Float[Tensor, "batch head query key"]:
    """Return ‖α·f(x)‖ = α·‖f(x)‖ of each head."""
    return attention * norms[:, :, None]


def value_grams(
    values: Float[Tensor, "batch head key value"], output: Float[Tensor, "head value hidden"]
) -> Float[Tensor, "batch key head head"]:
    """Return the Gram matrix of the vectors f(x) of all heads, for each key."""
    between = torch.einsum("avx,bwx->avbw", output.double(), output.double())  # W_a · W_bᵀ for heads a, b
    return torch.stack([torch.einsum("akv,avbw,bkw->kab", example, between, example) for example in values.double()])


def summed_norms(
    attention: Float[Tensor, "batch head query key"], gram: Float[Tensor, "batch key head head"]
) -> Float[Tensor, "batch 1 query key"]:
    """Return ‖Σ_h α_h·f_h(x)‖, the norm of the sum over heads.

    The squared norm is a quadratic form of the head weights in the Gram matrix of the vectors of a key, so memory grows
    with query · key and not with the hidden size.
    """
    batch, _, queries, keys = attention.shape
    norms = attention.new_empty(batch, 1, queries, keys)
    for start in range(0, queries, ROWS):
        rows = attention[:, :, start : start + ROWS].double().permute(0, 3, 2, 1)  # batch key row head
        squares = ((rows @ gram) * rows).sum(-1).clamp(min=0)
        norms[:, 0, start : start + ROWS] = squares.sqrt().mT.to(norms)
    return norms


@dataclass(frozen=True)
class Norm(Lens):
    """Norm-based attention (Kobayashi et al., 2020): the norm of the vector that each key adds, ‖α·f(x)‖.

    f(x) is the value, with its bias, times the head's slice of the output projection; the bias of the projection is
    left out. `merge` sums the vectors of all heads first, which gives one map per layer. Rows do not sum to 1.

    `residual` adds to the sum over heads what the residual connection carries from a token to itself, and the
    normalization after both (Kobayashi et al., 2021): ‖g_i(F_ij + [i = j]·x_i)‖, one map per layer, with biases left
    out. Its diagnostic `mixing_ratio` is ‖Σ_{j≠i}‖ / (‖Σ_{j≠i}‖ + ‖j = i‖), of vectors, the mean over queries: how much
    of a layer's output comes from other tokens.
    """

    merge: bool = False
    residual: bool = False

    scope = "layer"
    row_wise = True
    cites = ("kobayashi2020", "kobayashi2021")
    quantity = "norm of the weighted value"

    def __post_init__(self) -> None:
        """Say that what is around the heads is known when the pass is over."""
        super().__post_init__()
        if self.residual:
            object.__setattr__(self, "scope", "stack")
            object.__setattr__(self, "row_wise", False)

    @property
    def needs(self) -> frozenset[str]:
        """Require the values and the output projection."""
        around = {"residual"} if self.residual else set[str]()
        return frozenset({"attention", "values", "output"} | around)

    @property
    def has_residual(self) -> bool:
        """What the residual connection carries is part of a token's weight on itself."""
        return self.residual

    @property
    def breaks(self) -> frozenset[str]:
        """In cross-attention no key is the token that the residual connection carries."""
        return frozenset({"cross"}) if self.residual else frozenset()

    def __call__(self, trace: Trace) -> Maps:
        """Return the norms of every layer, per head or merged."""
        assert trace.values is not None
        assert trace.output is not None
        if self.residual:
            return self._view_with_residual(trace)
        layers = zip(trace.attention, trace.values, trace.output, strict=True)
        norms = [self._weight(attention, self._measure_values(*others)) for attention, *others in layers]
        return make_maps(trace, norms, self, merged=self.merge)

    def _view_with_residual(self, trace: Trace) -> Maps:
        """Return the norms of what tokens add through all heads and the residual connection."""
        require_own_tokens(trace, to_spec(self))
        layers, ratios = [], []
        for index, visible in enumerate(trace.visible):
            found = read_contributions(trace, index)
            norms = (
                summed_norms(found.attention, value_grams(found.values, found.output)) / found.scale[:, None, :, None]
            )
            norms.diagonal(dim1=-2, dim2=-1).copy_(torch.linalg.vector_norm(found.own, dim=-1)[:, None])
            layers.append(norms.masked_fill_(~visible[:, None], 0))
            ratios.append(mixing_ratios(found).sum(-1) / found.tokens.sum(-1))
        mixing = torch.stack(ratios, dim=1)[..., None]
        return make_maps(trace, layers, self, merged=True, diagnostics={"mixing_ratio": mixing})

    def start_rows(self, layer: Trace) -> Callable[[Trace], Maps]:
        """Return the lens for some queries at a time; all share the norms of the values."""
        assert layer.values is not None
        assert layer.output is not None
        of_keys = self._measure_values(layer.values[0], layer.output[0])

        def compute(block: Trace) -> Maps:
            (attention,) = block.attention
            own = of_keys[:, : attention.shape[-1]] if self.merge else of_keys[..., : attention.shape[-1]]
            return make_maps(block, [self._weight(attention, own)], self, merged=self.merge)

        return compute

    def _measure_values(self, values: Tensor, output: Tensor) -> Tensor:
        dtype = torch.float64 if values.dtype == torch.float64 else torch.float32
        return (value_grams if self.merge else value_norms)(values.to(dtype), output.to(dtype))

    def _weight(self, attention: Tensor, of_keys: Tensor) -> Tensor:
        return (summed_norms if self.merge else head_norms)(at_least_float32(attention), of_keys)
