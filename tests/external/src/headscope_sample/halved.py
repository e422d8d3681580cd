"""A lens from another package."""

from dataclasses import dataclass

from headscope.core.lens import Lens
from headscope.core.maps import Maps, make_maps
from headscope.core.trace import Trace


@dataclass(frozen=True)
class Halved(Lens):
    """Attention divided by a number."""

    by: float = 2.0

    def __call__(self, trace: Trace) -> Maps:
        """Divide every weight."""
        return make_maps(trace, [layer / self.by for layer in trace.attention], self)
