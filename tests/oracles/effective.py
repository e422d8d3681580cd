"""Effective attention, one row at a time, by a float64 singular value decomposition."""

import zlib

import numpy as np
import torch

EPS = torch.finfo(torch.float32).eps


def oracle(trace, layer, lens):
    which = getattr(lens, "values", "model")  # `null` has no such field
    attention, values = trace.attention[layer].double(), values_of(trace, layer, which).double()
    if lens.keys == "paper":
        return as_published(attention.float(), values.float(), trace.keys.real).double()
    effective = torch.zeros_like(attention)
    for example, head, query in torch.cartesian_prod(*(torch.arange(size) for size in attention.shape[:3])).tolist():
        seen = trace.visible[layer][example, query]
        if not seen.any():
            continue
        seen = torch.ones_like(seen) if lens.keys == "padded" else seen
        row, rows = attention[example, head, query, seen], values[example, head, seen]
        effective[example, head, query, seen] = project(row, rows)
    return effective


def values_of(trace, layer, which):
    """The values on which attention is projected: the model's, random ones, or the model's in another order."""
    known = trace.values[layer].float()
    if which == "model":
        return known
    result = known.clone()
    for example, text in enumerate(trace.keys.text):
        code = zlib.crc32("\x00".join(text).encode())
        real = [key for key in range(known.shape[2]) if trace.keys.real[example, key]]
        pads = [key for key in range(known.shape[2]) if not trace.keys.real[example, key]]
        for index, head in enumerate(trace.heads):
            random = np.random.default_rng([trace.layers[layer], head, code])
            if which == "random":
                for key in real + pads:
                    result[example, index, key] = torch.tensor(random.standard_normal(known.shape[-1]))
            else:
                for key, other in zip(real, random.permutation(len(real)), strict=True):
                    result[example, index, key] = known[example, index, real[other]]
    return result


def project(row, values):
    """A row minus its projection on the left null space of V, basis vector by basis vector."""
    left, sizes, _ = torch.linalg.svd(values, full_matrices=True)
    rank = int((sizes > sizes.max() * max(values.shape) * EPS).sum())
    gone = torch.zeros_like(row)
    for direction in left.T[rank:]:
        gone += (row @ direction) * direction
    return row - gone


def as_published(attention, values, real):
    """What the published code of Sun & Marasović (2021) computes, padding and all."""
    left, sizes, _ = torch.linalg.svd(values, full_matrices=True)
    cut = 12 * torch.finfo(torch.float32).eps
    start = int((sizes > cut).sum(-1).max())
    null = left[..., start:]
    effective = attention - (attention @ null) @ null.mT
    return effective * real[:, None, None, :]
