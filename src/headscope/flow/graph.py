"""The graph through which attention passes from layer to layer, with an edge for each residual connection."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.contribution.vectors import mixing_ratios, read_contributions, require_own_tokens
from headscope.core.errors import InputError
from headscope.core.lens import Lens, view
from headscope.core.maps import Maps
from headscope.core.maps.factored import Factored
from headscope.core.prose import count_noun, join_words
from headscope.core.spec import to_spec
from headscope.core.trace import Trace

Residual = float | Literal["measured"]
"""What of each position stays in place in a layer: a share, or what is measured of each query."""

Shares = float | Mapping[int, Float[Tensor, "batch query"]]
"""The share of every row that stays in place, or that of each query, by layer."""

Signed = Literal["absolute", "clip", "signed"]
"""How a negative weight becomes that of an edge: its absolute value, 0, or itself (then rows are not normalized)."""


class ThroughLayers(Lens):
    """A lens that follows the weights of an `inner` lens through the layers, down to the input."""

    inner: Lens

    @property
    def needs(self) -> frozenset[str]:
        """What the inner lens needs."""
        return self.inner.needs

    @property
    def breaks(self) -> frozenset[str]:
        """Cross-attention is no path to the input; keys that a query cannot see have no weight, whatever `inner` is."""
        return self.inner.breaks - {"visibility", "output"} | {"cross"}


class ThroughResidual(ThroughLayers):
    """A lens through the layers whose edges for residual connections have a weight of their own."""

    residual: Residual

    @property
    def needs(self) -> frozenset[str]:
        """What the inner lens needs, and what is around the heads where the residual is measured."""
        measured = {"values", "output", "residual"} if self.residual == "measured" else set[str]()
        return self.inner.needs | measured

    def read_residual(self, trace: Trace) -> Shares:
        """Return the share of the residual; where it is measured, that of each query, by layer.

        Raise InputError where the weights of the inner lens have the residual connection in them already.
        """
        if self.inner.has_residual and self.residual != 0:
            raise InputError(
                f"The weights of '{to_spec(self.inner)}' are also those of the residual connection, and "
                f"residual={self.residual} would add it a second time. Give residual=0."
            )
        if isinstance(self.residual, str) and self.residual != "measured":
            raise InputError(f"residual must be a share from 0 to 1 or 'measured', but got {self.residual!r}.")
        return self.residual if isinstance(self.residual, float | int) else measure_residual(trace)


def measure_residual(trace: Trace) -> dict[int, Float[Tensor, "batch query"]]:
    """Return 1 − r_i of each query, by layer, where r_i is its mixing ratio (Kobayashi et al., 2021).

    r_i compares the length of what other tokens add to the output of a layer, through all heads, with that of what the
    token itself adds, through the heads and the residual connection, both after the normalization.
    """
    require_own_tokens(trace, "residual=measured")
    return {label: 1 - mixing_ratios(read_contributions(trace, index)) for index, label in enumerate(trace.layers)}


def view_inner(trace: Trace, inner: Lens) -> Maps:
    """Return the maps of an inner lens; raise InputError if they reach down to the input, or are of one prediction."""
    spec = to_spec(inner)
    if spec.partition(":")[0] == "logit":
        raise InputError(
            f"Rollout and flow follow how layers mix tokens, and the weights of '{spec}' say what one prediction reads "
            "of them, which is nothing but for its own position. Give inner= another lens, such as 'alti' or 'norm'."
        )
    if isinstance(inner, ThroughLayers):
        raise InputError(
            f"Rollout and flow follow the weights of single layers, but those of '{spec}' reach down to the input "
            "already. Give inner= a lens of single layers, such as 'raw', 'effective' or 'norm'."
        )
    check_all_tokens_are_there(trace)
    return view(trace, inner)


def check_all_tokens_are_there(trace: Trace) -> None:
    """Raise InputError for windows, and for layers whose maps differ: their tokens are not those of the layer below."""
    windows = any(example.part_of is not None for example in trace.examples)
    if windows or trace.other_layers:
        what = "hold windows of a picture" if windows else f"differ from those of {trace.describe_other_layers()}"
        raise InputError(
            f"Attention is followed from layer to layer where all layers attend among the same tokens, but the maps of "
            f"layers {list(trace.layers)} {what}. Use a lens of single layers, such as 'raw', 'effective' or 'norm'."
        )


def select_from(maps: Maps, start: int, method: str) -> Maps:
    """Return the maps from layer `start` on; raise InputError unless `start` is one of them."""
    if start not in maps.layers:
        require_square(maps)
        count = count_noun(len(maps.layers), "layer")
        raise InputError(
            f"The {method} starts at layer {start}, but the lowest of the {count} of this trace is {maps.layers[0]}. "
            f"Capture or measure all layers and select some afterwards, or give start={maps.layers[0]}."
        )
    return maps if start == maps.layers[0] else maps.sel(layer=slice(start, None))


def residual_graph(
    maps: Maps,
    *,
    residual: Shares,
    signed: Signed = "absolute",
    per_head: bool = False,
    summed: bool = False,
    dtype: torch.dtype = torch.float64,
) -> list[Float[Tensor, "batch head query key"]]:
    """Return the weights of the edges from each layer to the layer below, (1 − r)·A + r·I, one tensor per layer.

    A is the mean over heads (`summed`: their sum), or each head's own map (`per_head`). Signs are removed head by head,
    before the mean. Then each row of A is divided by its sum, so that the rows of tokens sum to 1; with `summed`, the
    row is divided after the residual is added, so that all heads together weigh as many times as they are. A row
    without any weight passes everything on through the residual. Rows of padding are zero, and so are the edges to
    keys that a query cannot see. With `signed="signed"` nothing is divided, and rows do not sum to 1.

    With a share for each query, by layer, the share stays in place, and the row of A without its diagonal is divided
    by its sum to weigh the rest: what a token writes to itself through the heads is in its share already.
    """
    require_square(maps)
    if isinstance(residual, Mapping):
        _check_measured(signed, summed=summed, per_head=per_head)
    elif not 0 <= residual <= 1:
        raise InputError(f"residual must be a share from 0 to 1, but got {residual}. The paper takes 0.5.")
    when: Literal["never", "before", "after"] = "never" if signed == "signed" else "after" if summed else "before"
    merge = "each" if per_head else "mean" if when == "never" and not summed else "sum"
    masks = {id(mask): mask for mask in maps.visible}  # layers often share one
    hides = {name: mask.is_cuda or not bool(mask.all()) for name, mask in masks.items()}  # a GPU is not waited for
    graph = []
    for label, visible in zip(maps.layers, maps.visible, strict=True):
        weights = _merge_heads(maps.layer(label), signed if maps.signed else "signed", dtype, merge)
        if hides[id(visible)]:
            weights.masked_fill_(~visible[:, None], 0)  # some lenses have weight on padding
        tokens = maps.queries.real.to(weights)[:, None]  # batch 1 query
        if isinstance(residual, Mapping):
            _put_residual(weights, tokens, residual[label].to(weights)[:, None])
        else:
            _add_residual(weights, tokens, residual, when)
        graph.append(weights)
    return graph


def require_square(maps: Maps) -> None:
    """Raise InputError unless queries and keys are the same tokens and the layers follow one another."""
    if "cross" in maps.site or maps.queries.real.shape != maps.keys.real.shape:
        raise InputError(
            f"Attention is followed from layer to layer where queries and keys are the same tokens, but at the site "
            f"'{maps.site}' they are not. Capture the self-attention of the encoder or of the decoder with site=…."
        )
    if maps.layers != tuple(range(maps.layers[0], maps.layers[0] + len(maps.layers))):
        raise InputError(
            f"Attention is followed through every layer, but these maps hold layers {join_words(maps.layers)} only. "
            "Capture all layers, and select some of them afterwards, with maps.sel(layer=…). Where other layers of the "
            "model have no attention (hybrids), they mix tokens in a way that is in no map and cannot be followed."
        )


def _merge_heads(
    weights: Float[Tensor, "batch head query key"], signed: Signed, dtype: torch.dtype, merge: str
) -> Float[Tensor, "batch _ query key"]:
    """Return each head, their mean, or their sum, which is as good where rows are divided by their sums; no signs."""
    if signed == "absolute":
        weights = weights.abs()
    elif signed == "clip":
        weights = weights.clamp(min=0)
    if merge == "each":
        return weights.to(dtype, copy=True)
    return weights.mean(1, keepdim=True, dtype=dtype) if merge == "mean" else weights.sum(1, keepdim=True, dtype=dtype)


def _add_residual(
    weights: Float[Tensor, "batch head query key"],
    tokens: Float[Tensor, "batch 1 query"],
    residual: float,
    when: Literal["never", "before", "after"],
) -> None:
    """Add the residual in place, and divide the rows by their sums: never, before it is added, or after."""
    if when == "before":
        _normalize_rows(weights, tokens, 1 - residual)
    else:
        weights *= 1 - residual
    weights.diagonal(dim1=-2, dim2=-1).add_(residual * tokens)
    if when == "after":
        _normalize_rows(weights, tokens, 1.0)


def _check_measured(signed: Signed, *, summed: bool, per_head: bool) -> None:
    """Raise InputError where a measured residual, which is of all heads and of rows that sum to 1, has no meaning."""
    if signed == "signed" or summed or per_head:
        given = "signed='signed'" if signed == "signed" else f"heads='{'printed' if summed else 'each_residual'}'"
        raise InputError(
            f"residual='measured' is the share of each row that stays in place, of all heads of a layer together, and "
            f"does not go with {given}. Leave one of the two out."
        )


def _put_residual(
    weights: Float[Tensor, "batch head query key"],
    tokens: Float[Tensor, "batch 1 query"],
    shares: Float[Tensor, "batch 1 query"],
) -> None:
    """Put the share of each row on the diagonal, in place, and scale the other weights to the rest of 1."""
    weights.diagonal(dim1=-2, dim2=-1).zero_()
    sums = weights.sum(-1)
    shares = torch.where(sums > 0, shares, 1) * tokens
    weights *= ((tokens - shares) / sums.masked_fill(sums == 0, 1))[..., None]
    weights.diagonal(dim1=-2, dim2=-1).copy_(shares)


def _normalize_rows(
    weights: Float[Tensor, "batch head query key"], tokens: Float[Tensor, "batch 1 query"], total: float
) -> None:
    """Scale each row to a sum of `total`, in place; a row without any weight becomes that of the residual alone."""
    sums = weights.sum(-1)
    weights *= (total / sums.masked_fill(sums == 0, 1))[..., None]
    weights.diagonal(dim1=-2, dim2=-1).add_((sums == 0) * tokens * total)


def spread_uniformly(maps: Maps) -> Maps:
    """Return maps in which each query attends equally to all keys that it sees: what the mask alone makes of it."""
    masks: dict[int, Tensor] = {}  # layers often share one mask
    for visible in maps.visible:
        if id(visible) not in masks:
            weights = visible.to(result_dtype(maps)) / visible.sum(-1, keepdim=True).clamp(min=1)
            masks[id(visible)] = weights[:, None].expand(-1, len(maps.heads), -1, -1)
    return replace(maps, parts=[masks[id(visible)] for visible in maps.visible], signed=False)


def divide_by_receptive_field(
    scores: Float[Tensor, "batch head query key"], uniform: Float[Tensor, "batch head query key"], *, normalize: bool
) -> Float[Tensor, "batch head query key"]:
    """Divide scores by those of the same method under uniform attention, then each row by its sum if `normalize`.

    A causal mask alone gives early tokens more weight than late ones: Abnar & Zuidema (2020) ask to normalize by the
    receptive field before either method is applied to a decoder. A score is 0 where the uniform one is.
    """
    ratios = scores / uniform.masked_fill(uniform == 0, 1)
    if not normalize:
        return ratios
    sums = ratios.sum(-1, keepdim=True)
    return ratios / sums.masked_fill(sums == 0, 1)


def result_dtype(maps: Maps) -> torch.dtype:
    """Return float64 for maps in float64, and float32 for all others."""
    layer = maps.parts[0]
    dtype = layer.left.dtype if isinstance(layer, Factored) else layer.dtype
    return torch.float64 if dtype == torch.float64 else torch.float32
