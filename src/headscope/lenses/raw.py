"""Attention as the model computed it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.core.lens import Lens
from headscope.core.maps import LazyTensors, Maps, make_maps
from headscope.core.trace import Trace


@dataclass(frozen=True)
class Raw(Lens):
    """Raw attention: the weights after the softmax, unchanged."""

    scope = "layer"
    row_wise = True
    cites = ("vaswani2017",)
    quantity = "attention weight"

    def __call__(self, trace: Trace) -> Maps:
        """Return the trace's own attention, with the largest number of visible keys as `n`."""

        def count_keys() -> Tensor:
            counts = torch.stack([visible.sum(-1).amax(-1) for visible in trace.visible], dim=1)  # batch layer
            return counts[..., None].expand(-1, -1, len(trace.heads))

        return make_maps(trace, trace.attention, self, diagnostics=LazyTensors({"n": count_keys}))
