"""Norm of the vector that each key adds to the output."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.lens import Lens
from headscope.core.maps import Maps, make_maps
from headscope.core.trace import Trace

ROWS = 64
"""Number of queries whose heads are summed at a time."""


def head_norms(
    attention: Float[Tensor, "batch head query key"],
    values: Float[Tensor, "batch head key value"],
    output: Float[Tensor, "head value hidden"],
) -> Float[Tensor, "batch head query key"]:
    """Return ‖α·f(x)‖ of each head, where f(x) is the value times the head's slice of W_O.

    ‖α·f‖ = α·‖f‖, and with Wᵀ = Q·R, ‖v·W‖ = ‖v·Rᵀ‖, so no vector of the hidden size is computed.
    """
    triangle = torch.linalg.qr(output.mT, mode="r").R  # head value value
    norms: Tensor = torch.linalg.vector_norm(values @ triangle.mT, dim=-1)  # batch head key
    return attention * norms[:, :, None]


def summed_norms(
    attention: Float[Tensor, "batch head query key"],
    values: Float[Tensor, "batch head key value"],
    output: Float[Tensor, "head value hidden"],
) -> Float[Tensor, "batch 1 query key"]:
    """Return ‖Σ_h α_h·f_h(x)‖, the norm of the sum over heads.

    The squared norm is a quadratic form of the head weights in the Gram matrix of the vectors of a key, one
    head × head matrix per key, so memory grows with query · key and not with the hidden size.
    """
    batch, _, queries, keys = attention.shape
    between = torch.einsum("avx,bwx->avbw", output.double(), output.double())  # W_a · W_bᵀ for heads a, b
    gram = torch.stack([torch.einsum("akv,avbw,bkw->kab", example, between, example) for example in values.double()])
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
    """

    merge: bool = False

    scope = "layer"
    cites = ("kobayashi2020",)
    quantity = "norm of the weighted value"

    @property
    def needs(self) -> frozenset[str]:
        """Require the values and the output projection."""
        return frozenset({"attention", "values", "output"})

    def __call__(self, trace: Trace) -> Maps:
        """Return the norms of every layer, per head or merged."""
        assert trace.values is not None
        assert trace.output is not None
        dtype = torch.float64 if trace.attention[0].dtype == torch.float64 else torch.float32
        compute = summed_norms if self.merge else head_norms
        layers = zip(trace.attention, trace.values, trace.output, strict=True)
        norms = [compute(*(tensor.to(dtype) for tensor in layer)) for layer in layers]
        return make_maps(trace, norms, self, merged=self.merge)
