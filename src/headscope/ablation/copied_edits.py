"""Edits of copies of a batch: each copy has an edit of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from headscope.core.edit import Edit, LayerHeads


class CopiedEdits(Edit):
    """Applies one edit to each of several copies of a batch, in a pass that may begin at a later layer."""

    edits: Sequence[Edit]
    skipped: Mapping[str, int]  # the number of layers that do not run, by site

    @classmethod
    def of(cls, edits: Sequence[Edit], skipped: Mapping[str, int]) -> "CopiedEdits":
        """Return an edit that applies each of `edits` to its copy of the batch."""
        copied = cls()
        copied.edits, copied.skipped = edits, skipped
        return copied

    def check_sites(self, sites: Sequence[str]) -> None:
        """Raise InputError for an edit that does not fit the model."""
        for edit in self.edits:
            edit.check_sites(sites)

    def check_heads(self, heads: Any) -> None:
        """Accept any number of layers: some of them did not run."""

    def __call__(self, heads: LayerHeads) -> Tensor | None:
        """Return what the heads of all copies write; None where no edit changes anything."""
        layer = heads.layer + self.skipped.get(heads.site, 0)
        edits_layer = [edit.layers is None or layer in edit.layers for edit in self.edits]
        if not any(edits_layer):
            return None
        size = len(heads.context) // len(self.edits)
        copies = [select_rows(heads, slice(start, start + size), layer) for start in range(0, len(heads.context), size)]
        written = [
            edit(copy) if edits_this else None
            for edit, copy, edits_this in zip(self.edits, copies, edits_layer, strict=True)
        ]
        if all(copy is None for copy in written):
            return None
        contexts = zip(written, copies, strict=True)
        return torch.cat([copy.context if context is None else context for context, copy in contexts])


def select_rows(heads: LayerHeads, rows: slice, layer: int) -> LayerHeads:
    """Return some rows of a batch, at a layer with another number."""
    product, own = heads.product, heads.own_visible
    return replace(
        heads,
        layer=layer,
        attention=heads.attention[rows],
        values=heads.values[rows],
        context=heads.context[rows],
        visible=heads.visible[rows],
        product=None if product is None else product[rows],
        own_visible=None if own is None else own[rows],
    )
