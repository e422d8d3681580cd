"""How much of a token's new representation each other token's value makes."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.lens import Lens
from headscope.core.maps import Maps, make_maps
from headscope.core.trace import Block, Trace, Visible

CELLS = 2**25
"""Number of numbers that copies of a layer may take at a time, about."""

CHANGED = 0.02
"""By how much of its largest output a layer with its own context may differ, in any precision, and be the same."""


def remove_keys(
    context: Float[Tensor, "batch head query value"],
    attention: Float[Tensor, "batch head query key"],
    values: Float[Tensor, "batch head key value"],
    keys: range,
) -> Float[Tensor, "row head query value"]:
    """Return what the heads write without the value of each of some keys: a copy of the batch for each key."""
    weights = attention[..., keys.start : keys.stop].movedim(-1, 0)[..., None]  # key batch head query 1
    rows = values[:, :, keys.start : keys.stop].movedim(2, 0)[..., None, :]  # key batch head 1 value
    return (context - weights * rows).flatten(0, 1)


def cosine_distance(
    changed: Float[Tensor, "key batch query hidden"], output: Float[Tensor, "batch query hidden"]
) -> Float[Tensor, "key batch query"]:
    """Return 1 − cos in float64, where the small difference of nearly equal vectors is not lost."""
    product = torch.nn.functional.cosine_similarity(changed.double(), output.double(), dim=-1)
    return (1 - product).clamp(min=0)


def zero_values(
    block: Block,
    context: Float[Tensor, "batch head query value"],
    attention: Float[Tensor, "batch head query key"],
    values: Float[Tensor, "batch head key value"],
    visible: Visible,
) -> Float[Tensor, "batch 1 query key"]:
    """Return by how much the output of each query changes without the value of each key; rows sum to 1."""
    output = block(context)
    _check_unchanged(output, block.output, visible.any(-1))
    distances = []
    for keys in _split_keys(attention, output):
        changed = block(remove_keys(context, attention, values, keys))
        distances.append(cosine_distance(changed.view(len(keys), *output.shape), output))
    changes = torch.cat(distances).permute(1, 2, 0).masked_fill(~visible, 0)  # batch query key
    sums = changes.sum(-1, keepdim=True)
    return (changes / sums.masked_fill(sums == 0, 1))[:, None]


def _check_unchanged(
    output: Float[Tensor, "batch query hidden"],
    captured: Float[Tensor, "batch query hidden"],
    real: Bool[Tensor, "batch query"],
) -> None:
    """Raise InputError if a layer does not return what it did in the capture, on tokens that are not padding."""
    difference = float((output - captured)[real].abs().max() / captured[real].abs().max().clamp_min(1e-30))
    if not difference <= CHANGED:
        raise InputError(
            "Value zeroing runs the layers of the model again, but one of them returns something else than in the "
            f"capture: it differs by {difference:.2g} of the largest number. Have the weights been changed since? "
            "Capture again."
        )


def _split_keys(attention: Tensor, output: Tensor) -> Iterator[range]:
    """Yield keys of which as many copies of a layer fit in memory."""
    copy = attention.numel() + 12 * output.numel()  # scores, and hidden states with those of the feed-forward
    step = max(1, CELLS // copy)
    for start in range(0, attention.shape[-1], step):
        yield range(start, min(start + step, attention.shape[-1]))


@dataclass(frozen=True)
class ValueZeroing(Lens):
    """Value zeroing (Mohebbi et al., 2023): how much a query's output changes without the value of each key, 1 − cos.

    The value of a key is set to 0 in all heads of one layer at a time, after the projection and its bias; attention
    weights stay, and the output is that of the whole layer, with residual connection, norms and feed-forward. Each row
    is divided by its sum. There is one map per layer, from as many runs of the layer as there are keys.
    """

    cites = ("mohebbi2023",)
    quantity = "share of the change without the value"
    # scope is "stack", although each layer is seen alone: a layer can be run again when the model has run it

    @property
    def needs(self) -> frozenset[str]:
        """Require the values and the layers around the heads."""
        return frozenset({"attention", "values", "blocks"})

    def __call__(self, trace: Trace) -> Maps:
        """Return the share of each key in the changes of every query, layer by layer."""
        assert trace.values is not None
        assert trace.context is not None
        assert trace.blocks is not None
        layers = zip(trace.blocks, trace.context, trace.attention, trace.values, trace.visible, strict=True)
        dtype = torch.float64 if trace.attention[0].dtype == torch.float64 else torch.float32
        return make_maps(trace, [zero_values(*layer).to(dtype) for layer in layers], self, merged=True)
