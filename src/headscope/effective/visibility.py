"""Structure of an attention mask: shared by all queries, nested (causal, prefix), or neither."""

from collections.abc import MutableMapping
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from headscope.core.trace import Visible


@dataclass(frozen=True, eq=False)
class Visibility:
    """Which structure a mask has. Rows of padding see nothing and have no part in it."""

    counts: Int[Tensor, "batch query"]  # visible keys of each query, on the CPU
    shared: Bool[Tensor, "batch key"] | None = None  # the keys of every query, where all see the same
    order: Int[Tensor, "batch key"] | None = None  # where nested: each query sees the first `counts` keys in this order
    sorted: bool = False  # whether that order is the order of the keys

    @cached_property
    def key_counts(self) -> Int[Tensor, " batch"]:
        """Number of visible keys of each example, on the CPU."""
        return self.counts.amax(-1)

    @cached_property
    def least_keys(self) -> int:
        """Least number of visible keys of an example."""
        return int(self.key_counts.min())

    @cached_property
    def sees_all(self) -> bool:
        """Whether no key is hidden from a query that sees any."""
        return self.shared is not None and self.least_keys == self.shared.shape[-1]

    @cached_property
    def causal(self) -> bool:
        """Whether query i sees the first i + 1 keys, or none."""
        if self.order is None or not self.sorted or self.counts.shape != self.order.shape:
            return False
        positions = torch.arange(1, self.counts.shape[1] + 1)
        return bool(((self.counts == positions) | (self.counts == 0)).all())


def analyze_mask(visible: Visible) -> Visibility:
    """Return the structure of a mask; computed once for a tensor, since layers often share one."""
    if visible.is_inference() or torch.is_inference_mode_enabled():  # inference tensors do not count their changes
        return _analyze(visible)
    version, structure = _CACHE.get(visible, (None, None))
    if structure is None or version != visible._version:
        structure = _analyze(visible)
        _CACHE[visible] = visible._version, structure
    return structure


_CACHE: MutableMapping[Tensor, tuple[int, Visibility]] = WeakIdKeyDictionary()


def all_visible(shape: tuple[int, int, int], device: torch.device) -> Visible:
    """Return a mask that hides nothing. Its structure is known, so the host need not wait for a GPU to analyse it."""
    visible = torch.ones(shape, dtype=torch.bool, device=device)
    if not visible.is_inference():
        shared = visible.new_ones(shape[0], shape[2])  # a view of the mask would keep it alive in the cache
        _CACHE[visible] = visible._version, Visibility(torch.full(shape[:2], shape[2]), shared=shared)
    return visible


def _analyze(visible: Visible) -> Visibility:
    count, keys = visible.sum(-1), visible.any(1)
    if torch.equal(visible, visible.any(2)[:, :, None] & keys[:, None, :]):
        return Visibility(count.cpu(), shared=keys)
    positions = torch.arange(visible.shape[-1], device=visible.device)
    nested = positions < count[..., None]
    if torch.equal(visible, nested):
        return Visibility(count.cpu(), order=positions.expand_as(keys), sorted=True)
    order = visible.sum(1).argsort(dim=-1, descending=True, stable=True)
    if torch.equal(visible.gather(2, order[:, None].expand_as(visible)), nested):
        return Visibility(count.cpu(), order=order)
    return Visibility(count.cpu())
