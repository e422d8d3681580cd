"""A change to what heads write while a model runs."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.heads import HeadSelection, check_heads_argument
from headscope.core.prose import join_words
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

    def check_heads(self, heads: Mapping[str, Mapping[int, int]]) -> None:
        """Raise InputError for a layer that the model does not have; called after a pass.

        Parameters
        ----------
        heads
            The number of heads by site and layer.
        """
        select_labels(sorted({layer for site in heads.values() for layer in site}), self.layers, "layer")

    @abstractmethod
    def __call__(self, heads: LayerHeads) -> Float[Tensor, "batch head query value"] | None:
        """What the heads write, or None where nothing changes."""


def check_layers(layers: object) -> None:
    """Raise InputError unless layers are None or a tuple of layer numbers; for use in `__post_init__`."""
    if layers == ():
        raise InputError("layers=() asks for no layer at all. Leave it out to change every layer.")
    counted = isinstance(layers, tuple) and all(isinstance(layer, int) and layer >= 0 for layer in layers)
    if layers is not None and not counted:
        raise InputError(
            f"layers must be a tuple of layers counted from 0, such as (0, 3), but got {layers!r}. An edit runs before "
            "the last layer is known, so it cannot count from the end."
        )


@dataclass(frozen=True)
class HeadEdit(Edit):
    """An edit of selected heads; all other heads write what they did.

    `heads` names them: `L3H7+L0H1`, `L3` for a layer, `all`, `all-L3H7` for all but one, `cross.L3H7` at one of several
    sites.
    """

    heads: tuple[str, ...] | list[str] | str = ("all",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", check_heads_argument(self.heads))

    @property
    def selection(self) -> HeadSelection:
        """The chosen heads."""
        return HeadSelection.parse(self.heads)

    @property
    def layers(self) -> tuple[int, ...] | None:
        """The layers of the selected heads; None if they may be anywhere."""
        return self.selection.layers

    def check_sites(self, sites: Sequence[str]) -> None:
        """Raise InputError for a site that the model does not have, or for an ambiguous one."""
        self.selection.find_sites(sites)

    def check_heads(self, heads: Mapping[str, Mapping[int, int]]) -> None:
        """Raise InputError for a layer or a head that the model does not have."""
        self.selection.check(heads)

    def __call__(self, heads: LayerHeads) -> Float[Tensor, "batch head query value"] | None:
        """Return what all heads of the layer write; None where none of them is selected."""
        count = heads.context.shape[1]
        selected = self.selection.select(heads.site, heads.layer, count)
        if not selected:
            return None
        written = self.write(heads, selected).to(heads.context.dtype)
        if len(selected) == count:
            return written
        return heads.context.index_copy(1, torch.tensor(selected, device=written.device), written)

    @abstractmethod
    def write(self, heads: LayerHeads, selected: list[int]) -> Float[Tensor, "batch selected query value"]:
        """Return what the selected heads of a layer write."""


@dataclass(frozen=True, eq=False)
class SiteTensors:
    """A tensor for each attention site, or one for the only site. A spec shows a hash of the numbers."""

    tensors: Mapping[str | None, Tensor]

    @classmethod
    def from_argument(cls, tensors: Any, what: str) -> "SiteTensors":
        """Take a tensor or a mapping from sites to tensors; `what` is the argument that the errors name."""
        tables = dict(tensors) if isinstance(tensors, Mapping) else {None: tensors}
        if not tables or not all(isinstance(table, Tensor) for table in tables.values()):
            raise InputError(f"{what} must be a tensor, or a dictionary of tensors by site, but got {tensors!r}.")
        return cls(tables)

    def check_sites(self, sites: Sequence[str], what: str) -> None:
        """Raise InputError unless there is a tensor for each of the sites."""
        if None in self.tensors:
            if len(sites) > 1:
                raise InputError(
                    f"{what} is one tensor, but heads are chosen at the sites {join_words(sites)}. Give a tensor for "
                    f"each: {what}={{'{sites[0]}': …}}."
                )
            return
        missing = [site for site in sites if site not in self.tensors]
        if missing:
            raise InputError(
                f"{what} has tensors for {join_words(map(str, self.tensors))}, but heads are chosen at '{missing[0]}'."
            )

    def find(self, site: str) -> Tensor:
        """Return the tensor of a site."""
        return self.tensors[None if None in self.tensors else site]

    def __str__(self) -> str:
        digest = hashlib.sha256()
        for site, table in self.tensors.items():
            digest.update(f"{site} {list(table.shape)} ".encode())
            digest.update(table.detach().cpu().double().numpy().tobytes())
        return f"tensor-{digest.hexdigest()[:8]}"
