"""The length of the vector each key adds, with every vector written out."""

import torch


def oracle(trace, layer, lens):
    vectors = torch.einsum(
        "bhqk,bhkv,hvx->bhqkx",
        trace.attention[layer].double(),
        trace.values[layer].double(),
        trace.output[layer].double(),
    )
    if lens.merge:
        return vectors.sum(1, keepdim=True).norm(dim=-1)
    return vectors.norm(dim=-1)
