"""What is remembered from layer to layer, and from pass to pass, while a model is edited."""

from dataclasses import dataclass, field

from headscope.effective.assumptions import Assumptions
from headscope.effective.recordings import Recordings


@dataclass(frozen=True, eq=False)
class Memory:
    """Work that was recorded, and what may be assumed of layers."""

    recordings: Recordings = field(default_factory=Recordings)
    assumptions: Assumptions = field(default_factory=Assumptions)
