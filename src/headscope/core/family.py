"""What headscope must know about one kind of model."""

from abc import ABC
from typing import ClassVar


class Family(ABC):
    """The few facts one kind of model needs beyond the common mechanism.

    Attention and values come through the library's own attention interface and need no facts at all. A family says
    where the output projection stands, which module belongs to which site, and how many positions go unused.
    """

    kinds: ClassVar[tuple[str, ...]]
    """The `config.model_type` values this family covers."""

    projection: ClassVar[str | None]
    """The way from the attention module to its output projection, `..` going up; None = not known."""

    sites: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Which part of a module's name means which site, first match wins; no match means "self"."""

    unused_positions: ClassVar[int] = 0
    """How many of `max_position_embeddings` no token can have (RoBERTa counts from the padding index)."""

    def site(self, module: str) -> str:
        """The attention site that a module of this name belongs to."""
        parts = module.split(".")
        return next((site for part, site in self.sites if part in parts), "self")
