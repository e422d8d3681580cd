"""An edge of an attention map, removed while the model runs."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.core.edit import Edit, LayerHeads

Remove = Literal["zero", "renormalize"]


class RemoveEdges(Edit):
    """Sets one weight of each row of a batch to 0, in one head or in all heads of a layer.

    With "renormalize" the rest of the weights of that query is multiplied so that their sum stays. A key of -1 leaves
    its row as it is.
    """

    site: str
    layer: int
    remove: Remove
    head: Int[Tensor, " row"]  # -1 for all heads
    query: Int[Tensor, " row"]
    key: Int[Tensor, " row"]
    skipped: Mapping[str, int]  # the number of layers that do not run, at sites where the order of calls numbers them
    on_call: Callable[[str, int], None]  # told the site and layer of every call

    @classmethod
    def from_edges(
        cls, site: str, layer: int, remove: Remove, edges: Mapping[str, Tensor], **more: Any
    ) -> "RemoveEdges":
        """Return an edit of the edges `head`, `query` and `key`, one for each row."""
        edit = cls()
        edit.site, edit.layer, edit.remove = site, layer, remove
        edit.head, edit.query, edit.key = (edges[name] for name in ("head", "query", "key"))
        edit.skipped, edit.on_call = more.get("skipped", {}), more.get("on_call", lambda *_: None)
        return edit

    def check_heads(self, heads: Any) -> None:
        """Accept any number of layers: some of them did not run."""

    def __call__(self, heads: LayerHeads) -> Float[Tensor, "batch head query value"] | None:
        """Return what all heads write without the edges; None at other layers."""
        layer = heads.layer + self.skipped.get(heads.site, 0)
        self.on_call(heads.site, layer)
        if (heads.site, layer) != (self.site, self.layer):
            return None
        rows = torch.arange(len(self.key), device=self.key.device)
        attention = heads.attention[rows, :, self.query].to(heads.context)  # row head key
        removed = self._remove(attention, rows)
        change = torch.einsum("rhk,rhkv->rhv", removed - attention, heads.values.to(heads.context))
        context = heads.context.clone()
        context[rows, :, self.query] += change
        return context

    def _remove(
        self, attention: Float[Tensor, "row head key"], rows: Int[Tensor, " row"]
    ) -> Float[Tensor, "row head key"]:
        """Return the weights of the queries without the edges."""
        cut = self._find_cut(attention, rows)
        removed = attention.masked_fill(cut, 0)
        if self.remove == "zero":
            return removed
        sums = attention.sum(-1, keepdim=True)
        return torch.where(cut.any(-1, keepdim=True), removed * (sums / removed.sum(-1, keepdim=True)), attention)

    def _find_cut(self, attention: Tensor, rows: Int[Tensor, " row"]) -> Bool[Tensor, "row head key"]:
        """Return which weights are removed."""
        cut = torch.zeros_like(attention, dtype=torch.bool)
        cut[rows, :, self.key.clamp(min=0)] = True
        heads = torch.arange(attention.shape[1], device=attention.device)
        cut &= ((heads == self.head[:, None]) | (self.head[:, None] < 0))[:, :, None]
        return cut & (self.key >= 0)[:, None, None]
