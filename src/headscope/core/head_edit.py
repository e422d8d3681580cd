"""Edits of chosen heads, which share a way to name them."""

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.edit import Edit, LayerHeads
from headscope.core.errors import InputError
from headscope.core.heads import HeadSelection, check_heads_argument
from headscope.core.prose import join_words


@dataclass(frozen=True)
class HeadEdit(Edit):
    """What chosen heads write instead; the other heads write what they did.

    `heads` names them: `L3H7+L0H1`, `L3` for a layer, `all`, `all-L3H7` for all but one, `cross.L3H7` at one of several
    sites.
    """

    heads: tuple[str, ...] | list[str] | str = ("all",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", check_heads_argument(self.heads))

    @property
    def selection(self) -> HeadSelection:
        """The chosen heads."""
        return HeadSelection.of(self.heads)

    @property
    def layers(self) -> tuple[int, ...] | None:
        """The layers of the chosen heads; None if they may be anywhere."""
        return self.selection.layers

    def check_sites(self, sites: Sequence[str]) -> None:
        """Raise InputError for a site that the model does not have, or where it is not clear which is meant."""
        self.selection.find_sites(sites)

    def check_heads(self, heads: Mapping[str, Sequence[int]]) -> None:
        """Raise InputError for a layer or a head that the model does not have."""
        self.selection.check(heads)

    def __call__(self, heads: LayerHeads) -> Float[Tensor, "batch head query value"] | None:
        """Return what all heads of the layer write; None where none of them is chosen."""
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
        """Return what the chosen heads of a layer write."""


@dataclass(frozen=True, eq=False)
class SiteTensors:
    """A tensor for each attention site, or one for the only site. A spec shows a hash of the numbers."""

    tensors: Mapping[str | None, Tensor]

    @classmethod
    def of(cls, tensors: Any, what: str) -> "SiteTensors":
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
