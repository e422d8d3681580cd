"""What a layer writes with effective attention, A_eff·V, from A and V alone.

With G = VᵀV of full rank, A_eff is A·V·G⁻¹·Vᵀ, so that A_eff·V is A·V·(G⁻¹·G). While a model runs, layers come one at
a time and a GPU waits for its host: this order of products needs few kernel launches, and with Triton, on a GPU, hardly
more than the one or two of `kernels`. The result is checked; where it is not exact, and for every other layer,
effective attention is computed as for a view.
"""

import importlib
import warnings
from functools import cache
from types import ModuleType

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.edit import LayerHeads
from headscope.core.maps.factored import Factored
from headscope.core.trace import at_least_float32
from headscope.effective.layers import Keys, compute_layer
from headscope.effective.projection import rank_tolerance
from headscope.effective.visibility import Visibility, analyze_mask

SPARE_BYTES = 2**31
"""Memory that the Gram matrices of a layer and what is made of them may take on a GPU."""

Attention = Float[Tensor, "batch head query key"]
Values = Float[Tensor, "batch value_head key value"]
Context = Float[Tensor, "batch head query value"]


def compute_output(heads: LayerHeads, keys: Keys) -> Context:
    """Return A_eff·V of a layer."""
    values, structure, output = heads.values[:, :: heads.group], analyze_mask(heads.visible), None
    if values.dtype != torch.float64 and keys != "paper":
        if structure.shared is not None:
            output = _project_values(heads.attention, values, *_shared_keys(structure, keys))
        elif structure.causal:
            output = _project_rows(heads.attention, values)
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
    values = values if shared is None else values * shared[:, None, :, None]
    kernels = _find_kernels(values)
    if kernels is not None:
        projected, failed = kernels.project_values(values, _tolerance(*values.shape[-2:]))
        written = _multiply(attention, projected)
        return None if failed.item() else written
    wider = torch.float64 if values.dtype == torch.float32 else torch.float32
    wide = values.to(wider)
    gram = wide.mT @ wide
    factor, _ = torch.linalg.cholesky_ex(gram)
    lower = torch.linalg.solve_triangular(factor, gram, upper=False)
    identity = torch.linalg.solve_triangular(factor.mT, lower, upper=True)
    written = _multiply(attention, (wide @ identity).to(values.dtype))
    identity.diagonal(dim1=-2, dim2=-1).sub_(1)
    return written if torch.linalg.vector_norm(identity, torch.inf).item() < torch.finfo(values.dtype).eps else None


def _project_rows(attention: Attention, values: Values) -> Context | None:
    """Return A·V·(G⁻¹·G) under a causal mask, with G of each row; None if not proved, and without kernels.

    The first d rows keep A·V: for them A_eff is A, where the values of their keys are independent.
    """
    keys, value = values.shape[-2:]
    kernels = _find_kernels(values, copies=-(-keys // 16)) if keys > value else None
    if kernels is None:
        return None
    written, failed = kernels.project_rows(_multiply(attention, values), values, _tolerance(keys, value))
    return None if failed.item() else written


@cache
def _tolerance(keys: int, value: int) -> float:
    """Return the rank rule's tolerance for so many keys, which is never less than for those that a query sees."""
    return float(rank_tolerance(torch.tensor(keys), value))


def _find_kernels(values: Values, copies: int = 1) -> ModuleType | None:
    """Return the module `kernels` where it runs and has room for so many Gram matrices a head."""
    kernels = _load_kernels(values.device) if values.is_cuda else None
    batch, heads, _, value = values.shape
    if kernels is None or value > kernels.MAX_VALUE or 120 * batch * heads * copies * value**2 > SPARE_BYTES:
        return None
    return kernels


@cache
def _load_kernels(device: torch.device) -> ModuleType | None:
    """Return the module `kernels`, None without Triton; if Triton cannot compile here, say so once."""
    try:
        kernels = importlib.import_module("headscope.effective.kernels")
    except ImportError:
        return None
    try:
        kernels.check(device)
    except Exception as error:  # whatever a compiler may lack
        warnings.warn(
            f"Triton cannot run the kernels of the edit effective_attention on {device}, so that it takes more time; "
            f"its results are the same. {type(error).__name__}: {error}",
            stacklevel=2,
        )
        return None
    return kernels
