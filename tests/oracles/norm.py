"""The length of the vector each key adds, with every vector written out."""

import torch


def oracle(trace, layer, lens):
    vectors = torch.einsum(
        "bhqk,bhkv,hvx->bhqkx",
        trace.attention[layer].double(),
        trace.values[layer].double(),
        trace.output[layer].double(),
    )
    if lens.residual:
        added = add_residual_and_normalize(trace, layer)
        return (added.norm(dim=-1) * trace.visible[layer])[:, None]
    if lens.merge:
        return vectors.sum(1, keepdim=True).norm(dim=-1)
    return vectors.norm(dim=-1)


def _normalize(norm, vectors):
    """Each vector of a row minus its mean, times the weight, over the number that the model divided the row by."""
    centered = vectors - vectors.mean(-1, keepdim=True) if norm.centered else vectors
    return centered * norm.weight.double() / norm.scale.double()[:, :, None, None]


def add_residual_and_normalize(trace, layer):
    """T_ij = g_i(F_ij + [i = j] x_i), `batch query key hidden`, in float64."""
    around = trace.residual[layer]
    vectors = torch.einsum(
        "bhqk,bhkv,hvx->bqkx",
        trace.attention[layer].double(),
        trace.values[layer].double(),
        trace.output[layer].double(),
    )
    added = vectors if around.written is None else _normalize(around.written, vectors)
    for query in range(added.shape[1]):
        added[:, query, query] += around.inputs[:, query].double()
    return added if around.norm is None else _normalize(around.norm, added)
