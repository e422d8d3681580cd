"""A change to what heads write while a model runs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.trace import Visible, select_labels


@dataclass(frozen=True)
class LayerHeads:
    """What the heads of one layer computed for one batch, in one call of an attention module."""

    site: str  # "self" | "encoder" | "decoder" | "cross", or a tower's name
    layer: int
    attention: Float[Tensor, "batch head query key"]  # A
    values: Float[Tensor, "batch head key value"]  # V, shared value heads repeated
    context: Float[Tensor, "batch head query value"]  # Z = A·V, or what the edit before made of it
    visible: Visible  # rows of padding see nothing; layers that share a mask share the tensor
    product: Float[Tensor, "batch head query value"] | None = None  # A·V, where an earlier edit changed the context
    group: int = 1  # consecutive heads that share their values (grouped-query attention)
    own_visible: Bool[Tensor, "batch query _"] | None = None  # at cross-attention, that of the self-attention before

    @property
    def real(self) -> Bool[Tensor, "batch query"]:
        """Which queries are tokens, not padding."""
        return (self.visible if self.own_visible is None else self.own_visible).any(-1)


class Edit(ABC):
    """Frozen parameters and a pure call that says what heads write instead.

    A subclass is a frozen dataclass in a file of its own under `edits/`, named after it. It is called at its layers
    only, with the caller's gradient mode. Whatever it says of rows of padding is not used: they keep what they had.

    >>> class Halved(hs.Edit):
    ...     def __call__(self, heads):
    ...         return heads.context / 2
    >>> with hs.edited(model, Halved()) as changed:
    ...     hs.capture(changed, "The cat sat down.").layers
    (0, 1, 2, 3, 4, 5)
    """

    cites: ClassVar[tuple[str, ...]] = ()
    """The papers this edit comes from, as keys of `headscope cite` or BibTeX entries."""

    @property
    def layers(self) -> tuple[int, ...] | None:
        """The layers it changes, at every site that has them; None = all."""
        return None

    @property
    def breaks(self) -> frozenset[str]:
        """The laws it breaks by design: "output" if it changes what the model computes, "padding", "batch"."""
        return frozenset()

    def files(self) -> Mapping[str, Path]:
        """Return files that decide what it does, by name."""
        return {}

    def check_sites(self, sites: Sequence[str]) -> None:  # noqa: B027  # most edits are for every site
        """Raise InputError if it cannot apply to a model with these attention sites; called before the model runs.

        Parameters
        ----------
        sites
            The names of the sites.
        """

    def check_heads(self, heads: Mapping[str, Sequence[int]]) -> None:
        """Raise InputError for a layer that the model does not have; called after a pass.

        Parameters
        ----------
        heads
            The number of heads of each layer, by site.
        """
        select_labels(range(max(map(len, heads.values()))), self.layers, "layer")

    @abstractmethod
    def __call__(self, heads: LayerHeads) -> Float[Tensor, "batch head query value"] | None:
        """What the heads write, or None where nothing changes."""


def check_layers(layers: object) -> None:
    """Refuse what is neither None nor a tuple of layer numbers; for use in `__post_init__`."""
    if layers == ():
        raise InputError("layers=() asks for no layer at all. Leave it out to change every layer.")
    counted = isinstance(layers, tuple) and all(isinstance(layer, int) and layer >= 0 for layer in layers)
    if layers is not None and not counted:
        raise InputError(
            f"layers must be a tuple of layers counted from 0, such as (0, 3), but got {layers!r}. An edit runs before "
            "the last layer is known, so it cannot count from the end."
        )
