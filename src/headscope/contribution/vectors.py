"""The vectors that tokens add to a layer's output: through all heads, the residual connection and normalizations.

F_ij = Σ_h A^h_ij·V^h_j·W_O^h is what token j adds to row i. A normalization g_i of row i, at the scale that it had, is
linear: a matrix that all rows share, divided by a number for each row. So the matrix is applied once, to W_O.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.trace import Trace

CELLS = 2**20
"""Numbers that are in memory at a time: 4 MB, which stay in the cache of a core."""


@dataclass(frozen=True)
class Contributions:
    """What each token adds to each row of one layer's output, T_ij = g_i(F_ij + [i = j]·x_i), in parts."""

    attention: Float[Tensor, "batch head query key"]
    values: Float[Tensor, "batch head key value"]
    output: Float[Tensor, "head value hidden"]  # W_O, with the part of the normalizations that all rows share
    scale: Float[Tensor, "batch query"]  # what each row is divided by
    own: Float[Tensor, "batch query hidden"]  # T_ii
    others: Float[Tensor, "batch query hidden"]  # Σ_{j≠i} T_ij
    result: Float[Tensor, "batch query hidden"]  # what goes on: Σ_j T_ij and the biases
    tokens: Float[Tensor, "batch query"]  # 1 for real queries, 0 for padding

    def subtract_keys(self) -> Iterator[tuple[int, slice, Float[Tensor, "key query hidden"]]]:
        """Yield, for some keys j of an example at a time, result_i − g_i(F_ij): what is left without the heads' j."""
        batch, _, queries, keys = self.attention.shape
        vectors = torch.einsum("bhkv,hvx->bkhx", self.values, self.output)
        weights = (self.attention / self.scale[:, None, :, None]).permute(0, 3, 2, 1)  # batch key query head
        step = max(1, CELLS // (queries * self.output.shape[-1]))
        for row in range(batch):
            for start in range(0, keys, step):
                part = slice(start, min(start + step, keys))
                whole = self.result[row].expand(part.stop - start, -1, -1)
                yield row, part, torch.baddbmm(whole, weights[row, part], vectors[row, part], alpha=-1)


def require_own_tokens(trace: Trace, lens: str) -> None:
    """Raise InputError where a row has no residual connection from a key: queries and keys are other tokens."""
    if "cross" in trace.site or trace.queries.real.shape != trace.keys.real.shape:
        raise InputError(
            f"The lens '{lens}' adds what the residual connection carries from a token to itself, but at the site "
            f"'{trace.site}' queries and keys are not the same tokens. Capture the self-attention of the encoder or of "
            "the decoder with site=…, or use norm, which is of the heads alone."
        )


def read_contributions(trace: Trace, index: int) -> Contributions:
    """Return what each token adds to the output of one layer of a trace."""
    assert trace.values is not None
    assert trace.output is not None
    assert trace.residual is not None
    around = trace.residual[index]
    dtype = torch.float64 if around.inputs.dtype == torch.float64 else torch.float32
    attention, values, output = (
        tensor.to(dtype) for tensor in (trace.attention[index], trace.values[index], trace.output[index])
    )
    scale = torch.ones_like(around.inputs[..., 0], dtype=dtype)
    for norm in around.normalizations:
        output, scale = norm.apply_weight(output), scale * norm.scale.to(dtype)
    weights = attention.diagonal(dim1=-2, dim2=-1)[..., None]  # batch head query 1
    tokens = trace.queries.real.to(attention)

    def write(context: Tensor) -> Tensor:
        written: Tensor = (
            context.transpose(1, 2).flatten(2) @ output.flatten(0, 1) / scale[..., None] * tokens[..., None]
        )
        return written

    itself = write(weights * values)
    everything = write(attention @ values)
    carried = around.normalize(around.inputs.to(dtype)) * tokens[..., None]
    result = around.result.to(dtype) * tokens[..., None]
    return Contributions(attention, values, output, scale, itself + carried, everything - itself, result, tokens)


def mixing_ratios(found: Contributions) -> Float[Tensor, "batch query"]:
    """Return ‖Σ_{j≠i} T_ij‖ / (‖Σ_{j≠i} T_ij‖ + ‖T_ii‖) of each row: what comes from other tokens; 0 for padding."""
    mixed, kept = (torch.linalg.vector_norm(part, dim=-1) for part in (found.others, found.own))
    total = mixed + kept
    ratios: Tensor = mixed / total.where(total > 0, 1)
    return ratios


def l1_weights(found: Contributions) -> Float[Tensor, "batch 1 query key"]:
    """Return max(0, ‖ỹ_i‖₁ − ‖ỹ_i − T_ij‖₁), where ỹ_i is what goes on: how near a token's vector comes to it."""
    size = _sum_sizes(found.result.clone())
    weights = found.attention.new_empty(found.attention.shape[0], *found.attention.shape[2:])
    for row, keys, rest in found.subtract_keys():
        weights[row, :, keys] = (size[row] - _sum_sizes(rest)).mT
    own = (size - _sum_sizes(found.result - found.own)).to(weights)
    weights.diagonal(dim1=-2, dim2=-1).copy_(own)
    return weights.clamp(min=0)[:, None]


def _sum_sizes(vectors: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch"]:
    """Return ‖·‖₁ in float64, for the differences of large norms; the vectors are overwritten.

    PyTorch's own norm takes eight times as long, and its sum in float32 loses two digits more.
    """
    sums: Tensor = vectors.abs_().sum(-1, dtype=torch.float64)
    return sums
