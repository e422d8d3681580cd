"""Attention rollout: what reaches a layer from the input, as products of the edges of the layers below it."""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.maps import Maps
from headscope.core.trace import Visible
from headscope.flow.graph import Shares, Signed, residual_graph, result_dtype

Heads = Literal["mean", "each", "each_residual", "printed"]
"""How rollout treats the heads of the layer it starts at; heads below are always merged."""


def roll_out(
    maps: Maps, graph: Sequence[Float[Tensor, "batch 1 query key"]], *, residual: Shares, signed: Signed, heads: Heads
) -> list[Float[Tensor, "batch head query key"]]:
    """Return the rollout of every layer through a `graph` of merged heads, down to the first layer of the maps.

    "mean": Ã(i) = Ā(i)·Ã(i−1), with Ā(i) the mean over heads with the residual. "each": A(i, k)·Ã(i−1) for head k, with
    the head's own weights and no residual; "each_residual" adds it. "printed": A(i, k)·Ã(i), and heads are summed
    instead of averaged, as the appendix of Abnar & Zuidema (2020) has it in print; it passes layer i twice.
    """
    below = multiply_layers(graph)
    if heads == "mean":
        return [rollout.to(result_dtype(maps)) for rollout in below]
    if maps.merged:
        raise InputError(
            f"heads='{heads}' asks for a rollout of each head, but the lens '{maps.lens}' gives one map per layer. "
            "Use an inner lens with a map per head, or heads='mean'."
        )
    first = below[0]
    if heads != "printed":
        below = [torch.eye(first.shape[-1], dtype=first.dtype, device=first.device).expand_as(first), *below[:-1]]
    own: Shares = residual if heads == "each_residual" else 0.0
    head_graphs = residual_graph(maps, residual=own, signed=signed, per_head=True, dtype=first.dtype)
    return [(top @ rollout).to(result_dtype(maps)) for top, rollout in zip(head_graphs, below, strict=True)]


def build_graph(
    maps: Maps, *, residual: Shares, signed: Signed, heads: Heads
) -> list[Float[Tensor, "batch 1 query key"]]:
    """Return the graph that rollout passes through, in float64 where signs may cancel."""
    dtype = torch.float64 if signed == "signed" else result_dtype(maps)
    return residual_graph(maps, residual=residual, signed=signed, summed=heads == "printed", dtype=dtype)


def multiply_layers(
    layers: Sequence[Float[Tensor, "batch head query key"]],
) -> list[Float[Tensor, "batch head query key"]]:
    """Return the products A(i)·…·A(0), one for each layer i."""
    products = [layers[0]]
    for layer in layers[1:]:
        products.append(layer @ products[-1])
    return products


def find_reachable(visible: Sequence[Visible], heads: Heads = "mean") -> list[Visible]:
    """Return which keys of the lowest layer each query can receive from, through all layers up to its own.

    With sliding windows these grow from layer to layer. Layers with the same keys share one tensor.
    """
    if all(mask is visible[0] for mask in visible) and _is_transitive(visible[0]):
        return list(visible)
    reachable = [visible[0]]
    for mask in visible[1:]:
        reachable.append(_pass_through(mask, reachable[-1]))
    if heads == "printed":
        return [_pass_through(mask, below) for mask, below in zip(visible, reachable, strict=True)]
    return reachable


def _is_transitive(mask: Visible) -> bool:
    """Whether a mask is causal, or shared by all queries: then a second layer of it reaches no further key."""
    keys, queries = mask.any(1), mask.any(2)
    block = queries[:, :, None] & keys[:, None, :]
    return torch.equal(mask, block) or torch.equal(mask, block.tril())


def _pass_through(mask: Visible, below: Visible) -> Visible:
    """Return the keys that are reached through a layer from those reached below it, or through its residual."""
    residual = torch.diag_embed(mask.any(-1))  # rows of padding see nothing
    reached = ((mask | residual).float() @ (below | residual).float()) > 0
    return below if torch.equal(reached, below) else reached
