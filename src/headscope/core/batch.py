"""What a statistic observes: examples, and the maps that were seen for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from headscope.core.example import Example
from headscope.core.maps import Maps


@dataclass(frozen=True)
class Batch:
    """Some examples with their maps, by role and lens.

    The role is "model", or "against" for the second model of a comparison. `lens` is the one that is being measured;
    others are there for statistics that compare it with them.
    """

    examples: tuple[Example, ...]
    maps: Mapping[tuple[str, str], Maps]
    lens: str
    known: Mapping[str, tuple[Tensor, ...]] = field(default_factory=dict)
    """What statistics, by their spec, know of the tokens already, where the maps lie."""

    @property
    def focus(self) -> Maps:
        """The maps that are being measured."""
        return self.maps["model", self.lens]
