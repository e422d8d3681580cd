"""What a layer writes with effective attention, A_eff·V, from A and V alone.

With G = VᵀV of full rank, A_eff is A·V·G⁻¹·Vᵀ, so that A_eff·V is A·V·(G⁻¹·G). While a model runs, layers come one at
a time and a GPU waits for its host: this order of products needs few kernel launches. The result is checked; where it
is not exact, and for every other layer, effective attention is computed as for a view.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.edit import LayerHeads
from headscope.core.maps.factored import Factored
from headscope.core.trace import at_least_float32
from headscope.effective.layers import Keys, compute_layer
from headscope.effective.visibility import Visibility, analyze_mask

GRAM_BYTES = 2**30
"""Memory that the Gram matrices of all rows of a layer may take."""

Attention = Float[Tensor, "batch head query key"]
Values = Float[Tensor, "batch value_head key value"]
Context = Float[Tensor, "batch head query value"]


def compute_output(heads: LayerHeads, keys: Keys) -> Context:
    """Return A_eff·V of a layer."""
    values, structure, output = heads.values[:, :: heads.group], analyze_mask(heads.visible), None
    if values.dtype != torch.float64 and keys != "paper":
        if structure.shared is not None:
            output = _project_values(heads.attention, values, *_shared_keys(structure, keys))
        elif structure.causal and _fits_gpu(values):
            output = _solve_rows(heads.attention, values)
    if output is not None:
        return output
    part = compute_layer(heads, keys)
    if isinstance(part, Factored):
        return part.left @ (part.right.mT @ at_least_float32(heads.values))
    return _multiply(part, at_least_float32(values))


def _shared_keys(structure: Visibility, keys: Keys) -> tuple[Bool[Tensor, "batch key"] | None, int]:
    """Return the keys that every query sees, None for all of them, and the least number of them in an example."""
    assert structure.shared is not None
    if keys == "padded" or structure.sees_all:
        return None, structure.shared.shape[-1]
    return structure.shared, structure.least_keys


def _multiply(attention: Attention, values: Values) -> Context:
    """Return attention times values that several heads may share."""
    batch, heads, queries, keys = attention.shape
    product = attention.reshape(batch, values.shape[1], -1, keys) @ values
    return product.view(batch, heads, queries, values.shape[-1])


def _project_values(attention: Attention, values: Values, shared: Tensor | None, least: int) -> Context | None:
    """Return A·V·(G⁻¹·G) where every query sees the same keys; None if G⁻¹·G is off by a rounding of V's dtype."""
    if least <= values.shape[-1]:
        return None
    wider = torch.float64 if values.dtype == torch.float32 else torch.float32
    wide = (values if shared is None else values * shared[:, None, :, None]).to(wider)
    gram = wide.mT @ wide
    identity = _solve(gram, gram)
    written = _multiply(attention, (wide @ identity).to(values.dtype))
    identity.diagonal(dim1=-2, dim2=-1).sub_(1)
    return written if torch.linalg.vector_norm(identity, torch.inf).item() < torch.finfo(values.dtype).eps else None


def _fits_gpu(values: Values) -> bool:
    """Whether a GPU has room for a Gram matrix a row, and there are rows that see more than d keys."""
    keys, value = values.shape[-2:]
    return values.is_cuda and keys > value and 8 * values.numel() * value <= GRAM_BYTES


def _solve_rows(attention: Attention, values: Values) -> Context | None:
    """Return A·V·(G⁻¹·G) under a causal mask, with one Gram matrix a row; None if off by a rounding of V's dtype.

    The first d rows keep A·V: for them A_eff is A, where the values of their keys are independent.
    """
    batch, groups, keys, value = values.shape
    wide = values.double()
    context = (attention.double().reshape(batch, groups, -1, keys) @ wide).view(batch, groups, -1, keys, value)
    target = context[..., value:, :].permute(0, 1, 3, 4, 2)  # batch value_head row value group
    gram = (wide[..., :, None] * wide[..., None, :]).cumsum(2)[:, :, value:]  # batch value_head row value value
    written = gram @ _solve(gram, target)
    error = torch.linalg.vector_norm(written - target, torch.inf) / torch.linalg.vector_norm(target, torch.inf)
    context[..., value:, :] = written.permute(0, 1, 4, 2, 3)
    output = context.view(*attention.shape[:3], value).to(values.dtype)
    return output if error.item() < torch.finfo(values.dtype).eps else None


def _solve(gram: Float[Tensor, "*shape value value"], right: Float[Tensor, "*shape value column"]) -> Tensor:
    """Return G⁻¹·right, something else where G has no Cholesky factor; without waiting for a GPU."""
    factor, _ = torch.linalg.cholesky_ex(gram)
    lower = torch.linalg.solve_triangular(factor, right, upper=False)
    solution: Tensor = torch.linalg.solve_triangular(factor.mT, lower, upper=True)
    return solution
