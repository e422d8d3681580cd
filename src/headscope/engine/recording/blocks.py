"""Attention of some queries at a time, from the model's own eager function, with no n × n tensor of ours.

The eager function is called with a block of queries, and with these rows of the mask, so that a block is what the
whole map would hold: scale, soft cap and sinks are the function's own. The contexts of all blocks are joined and passed
on. Masks that transformers would build whole are described instead (`RowMask`), and built for the queries of a block.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.engine.recording.follow import pause_following
from headscope.engine.recording.recorder import AttentionCall, Recorder, lowest_score

BLOCK_BYTES = 2**26
"""Size of the weights of one block; what is computed from them takes several times as much."""


@dataclass(frozen=True)
class RowMask:
    """What transformers' own function builds an eager mask from, for some queries at a time."""

    build: Callable[..., Tensor | None]
    options: Mapping[str, Any]

    @classmethod
    def describe(cls, build: Callable[..., Any], **options: Any) -> "RowMask | None":
        """Return the description of a mask; None where `build` hides nothing, and returns none."""
        mask = cls(build, options)
        return None if mask.rows(0, 1) is None else mask

    def rows(self, start: int, stop: int) -> Tensor | None:
        """Return the mask of some queries."""
        offset = self.options.get("q_offset", 0) + start
        return self.build(**{**self.options, "q_length": stop - start, "q_offset": offset})

    def whole(self) -> Tensor | None:
        """Return the mask of all queries."""
        return self.build(**self.options)


@dataclass
class Blocks:
    """How queries are divided, who sees each block, and what else of a model grows with queries × keys."""

    begin: Callable[[AttentionCall, int], None]  # gets each call at the recorder's site, without its queries
    see: Callable[[AttentionCall, slice], None]  # gets the blocks of this call, one after the other
    size: int | None = None  # queries of a block; None: as many as BLOCK_BYTES hold
    whole_masks: bool = False  # for a model whose code does more with a mask than pass it on
    largest: dict[tuple[str, int], int] = field(default_factory=dict)
    """Bytes of the tensors that have both axes, by what they are and where they lie: masks, and biases of positions."""

    def split(self, query: Tensor, keys: int) -> Iterator[slice]:
        """Yield the blocks of a call's queries."""
        batch, heads, queries, _ = query.shape
        size = self.size or max(1, BLOCK_BYTES // (4 * batch * heads * keys))
        for start in range(0, queries, size):
            yield slice(start, min(start + size, queries))

    def note(self, name: str, tensor: Any, queries: int, keys: int) -> None:
        """Note a tensor with an axis of all queries and one of all keys."""
        if isinstance(tensor, Tensor) and tensor.ndim >= 2 and tensor.shape[-2] == queries and tensor.shape[-1] >= keys:
            self.largest[name, tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()


def attend_in_blocks(
    eager: Callable[..., tuple[Tensor, Tensor | None]],
    recorder: Recorder,
    finish: Callable[[Tensor, Tensor, Tensor, Tensor | None], AttentionCall],
    tensors: tuple[Tensor, Tensor, Tensor],
    mask: Any,
    options: Mapping[str, Any],
) -> Tensor:
    """Return what an attention module goes on with, `batch query head value`; hand each block to the recorder.

    `finish` makes a call of some queries' weights, values, context and mask.
    """
    assert recorder.blocks is not None
    query, key, value = tensors
    queries, keys = query.shape[2], key.shape[2]
    for option, tensor in {"mask": mask, **options}.items():
        recorder.blocks.note(option, tensor, queries, keys)
    empty = query.new_zeros(*query.shape[:2], 0, keys)
    call = finish(empty, value, query.new_zeros(*query.shape[:2], 0, value.shape[-1]), None)
    wanted, outputs = recorder.begin_blocks(call, queries), []
    for rows in recorder.blocks.split(query, keys):
        seen = _cut_mask(mask, rows, queries)
        end = keys if seen is None else _last_key(seen, keys)
        own = {option: _cut_rows(tensor, rows, queries, keys, end) for option, tensor in options.items()}
        seen = None if seen is None else seen[..., :end]
        with pause_following():
            output, weights = eager(query[:, :, rows], key[:, :, :end], value[:, :, :end], seen, **own)
        outputs.append(output)
        if wanted:
            assert weights is not None
            recorder.record_block(finish(weights, value[:, :, :end], output.transpose(1, 2), seen), rows)
        del weights
    joined = torch.cat(outputs, dim=1)
    recorder.finish_blocks(call.name, joined.transpose(1, 2))
    return joined


def _cut_mask(mask: Any, rows: slice, queries: int) -> Tensor | None:
    """Return the rows of a mask, which may be one row for all queries."""
    if mask is None:
        return None
    if isinstance(mask, RowMask):
        mask = mask.rows(rows.start, rows.stop)
    elif mask.shape[-2] == queries:
        mask = mask[..., rows, :]
    # in float32 less is -inf, and the softmax of a row of them NaN
    cut: Tensor = mask.clamp(min=lowest_score(torch.float64)) if mask.dtype == torch.float64 else mask
    return cut


def _last_key(mask: Tensor, keys: int) -> int:
    """Return how many keys the rows of a mask need; all, where a row sees none: its softmax is over all of them."""
    mask = mask[..., :keys]
    visible = mask if mask.dtype == torch.bool else mask > lowest_score(mask.dtype) / 2
    if not bool(visible.any(-1).all()):
        return keys
    columns = visible.flatten(0, -2).any(0).nonzero()
    return int(columns[-1]) + 1


def _cut_rows(tensor: Any, rows: slice, queries: int, keys: int, end: int) -> Any:
    """Return the rows and keys of a bias that has one number for each query and key; anything else as it is."""
    if not isinstance(tensor, Tensor) or tensor.ndim < 4 or tensor.shape[-1] != keys:
        return tensor
    cut: Float[Tensor, "*batch query key"] = tensor[..., rows, :] if tensor.shape[-2] == queries else tensor
    return cut[..., :end]
