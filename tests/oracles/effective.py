"""Effective attention, one row at a time, by a float64 singular value decomposition."""

import torch

EPS = torch.finfo(torch.float32).eps


def oracle(trace, layer, lens):
    attention, values = trace.attention[layer].double(), trace.values[layer].double()
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
