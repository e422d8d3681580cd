"""What a statistic observes: examples and their maps."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from headscope.core.example import Example
from headscope.core.maps import Maps


@dataclass(frozen=True)
class Batch:
    """Examples with their maps, by role and lens.

    The role is "model", or "against" for the second model of a comparison. `lens` is the measured lens; `maps` may
    hold others for statistics that compare lenses.

    >>> maps = hs.view(trace, "raw")
    >>> hs.Batch(maps.examples, {("model", "raw"): maps}, "raw").focus is maps
    True
    """

    examples: tuple[Example, ...]
    maps: Mapping[tuple[str, str], Maps]
    lens: str
    token_tables: Mapping[str, tuple[Tensor, ...]] = field(default_factory=dict)
    """The results of `PerExample.tokens` by spec, on the device of the maps, where they are computed already."""

    @property
    def focus(self) -> Maps:
        """Return the maps of the measured lens."""
        return self.maps["model", self.lens]
