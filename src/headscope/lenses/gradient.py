"""Gradient of a prediction with respect to the attention weights."""

from dataclasses import dataclass

from headscope.core.lens import Lens
from headscope.core.maps import Maps, make_maps
from headscope.core.trace import Trace


@dataclass(frozen=True)
class Gradient(Lens):
    """How much the target would change if a weight did, ∂target/∂A; with `times_attention` times the weight itself.

    The target is that of `hs.capture(…, target=…)`. Weights are signed, and rows do not sum to 1. Attention × gradient
    is the first-order estimate of what the prediction would lose without the weight (the rest of its row unchanged).
    """

    times_attention: bool = False

    quantity = "gradient of the target"
    # scope is "stack", although each layer is seen alone: gradients are known after the last layer

    @property
    def needs(self) -> frozenset[str]:
        """Require the gradient of a target."""
        return frozenset({"attention", "gradient"})

    def __call__(self, trace: Trace) -> Maps:
        """Return the gradients of every layer and head."""
        assert trace.gradient is not None
        gradients = list(trace.gradient)
        if self.times_attention:
            gradients = [gradient * attention for gradient, attention in zip(gradients, trace.attention, strict=True)]
        return make_maps(trace, gradients, self, signed=True)
