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
from headscope.effective.visibility import Visibility, analyze_mask

SPARE_BYTES = 2**31
"""Memory that the Gram matrices of a layer, their inverses and the products of both may take on a GPU."""

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
    weights = compute_layer(heads, keys)
    if isinstance(weights, Factored):
        return weights.left @ (weights.right.mT @ at_least_float32(heads.values))
    return _multiply(weights, at_least_float32(values))


def _shared_keys(structure: Visibility, keys: Keys) -> tuple[Bool[Tensor, "batch key"] | None, int]:
    """Return the keys that every query sees (None for all), and the smallest number of them in an example."""
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
    projected = _run_kernels("project_values", values)
    if projected is not None:
        written = _multiply(attention, projected[0])  # launched before the host waits
        return None if _proof_unit(values) and projected[1].item() else written
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
    if values.shape[-2] <= values.shape[-1] or _find_kernels(values, "project_rows") is None:
        return None
    written = _run_kernels("project_rows", values, _multiply(attention, values))
    return None if written is None or written[1].item() else written[0]


def _run_kernels(name: str, values: Values, *inputs: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return what a function of `kernels` returns; None on a CPU, without Triton, and if it cannot be compiled here."""
    kernels, problem = _find_kernels(values, name), (name, values.device, values.shape[-1], values.dtype)
    if kernels is None or problem in _BROKEN:
        return None
    try:
        result: tuple[Tensor, Tensor] = getattr(kernels, name)(*inputs, values, _proof_unit(values))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # whatever Triton and its compilers may raise
        _BROKEN.add(problem)
        warnings.warn(
            "Triton cannot run a kernel of the edit effective_attention here, so that the edit takes more time; its "
            f"results are the same. {type(error).__name__}: {str(error)[:200]}",
            stacklevel=2,
        )
        return None
    return result


_BROKEN: set[tuple[str, torch.device, int, torch.dtype]] = set()


def _proof_unit(values: Values) -> float:
    """Return the rank rule's tolerance for one key, or 0 where full rank need not be proved.

    A direction that the rule leaves out writes at most n·eps32 of the largest singular value: in half precision less
    than a rounding. There V·(G⁺·G) is V to a rounding, whatever its rank, and a head without an inverse keeps its V.
    """
    unit, most = torch.finfo(torch.float32).eps, max(values.shape[-2:])
    return 0.0 if unit * most <= torch.finfo(values.dtype).eps / 4 else unit


def _find_kernels(values: Values, name: str) -> ModuleType | None:
    """Return the module `kernels` where there is Triton, and room for all Gram matrices of one of its functions."""
    kernels = _load_kernels() if values.is_cuda else None
    if kernels is None or values.shape[-1] > kernels.MAX_VALUE:
        return None
    return kernels if kernels.count_bytes(values, causal=name == "project_rows") <= SPARE_BYTES else None


@cache
def _load_kernels() -> ModuleType | None:
    """Return the module `kernels`, None without Triton."""
    try:
        return importlib.import_module("headscope.effective.kernels")
    except ImportError:
        return None
