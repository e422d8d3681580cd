"""Token-to-token weights, as a lens sees them."""

import json
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Num
from torch import Tensor

from headscope.core.catalog import lenses
from headscope.core.errors import InputError, UnknownName
from headscope.core.example import Example
from headscope.core.prose import count_noun
from headscope.core.spec import parse_spec, to_spec
from headscope.core.tokens import Tokens, token_labels
from headscope.core.trace import Trace, Visible, select_labels

if TYPE_CHECKING:
    from headscope.core.lens import Lens


@dataclass(frozen=True)
class Factored:
    """A map held as two thin factors, weights = left · rightᵀ; most uses need only a few of its columns."""

    left: Float[Tensor, "batch head query inner"]  # B
    right: Float[Tensor, "batch head key inner"]  # Q

    @property
    def weights(self) -> Float[Tensor, "batch head query key"]:
        """The whole map."""
        left, right = self.left, self.right
        if left.device.type != "cpu" or left.requires_grad or right.requires_grad:
            return left @ right.mT
        shape = (*left.shape[:-1], right.shape[-2])
        product = allocate_huge_pages(shape, left.dtype)
        torch.bmm(left.flatten(0, -3), right.flatten(0, -3).mT, out=product.view(-1, *shape[-2:]))
        return product


HUGE_PAGE_BYTES = 32 * 2**20
"""Size above which freed memory returns to the system, so that every page of a new tensor is mapped anew."""


def allocate_huge_pages(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return an empty CPU tensor; a large one in huge pages, where the system has them.

    Mapping fresh pages costs more than the product that fills them.

    >>> allocate_huge_pages((2, 3), torch.float32).shape
    torch.Size([2, 3])
    """
    size = prod(shape) * dtype.itemsize
    if size <= HUGE_PAGE_BYTES or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(shape, dtype=dtype)
    buffer = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # some systems refuse this advice
        buffer.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(buffer, dtype=dtype).view(*shape)


class LazyTensors(Mapping[str, Tensor]):
    """A mapping of names to tensors, each computed once, when it is first read.

    >>> table = LazyTensors({"n": lambda: torch.arange(2)})
    >>> list(table), table["n"].tolist()
    (['n'], [0, 1])
    """

    def __init__(self, functions: Mapping[str, Callable[[], Tensor]]) -> None:
        self._functions: dict[str, Callable[[], Tensor] | None] = dict(functions)
        self._tensors: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        if function := self._functions[name]:
            self._tensors[name] = function()
            self._functions[name] = None  # frees what it holds
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


@dataclass(frozen=True)
class Maps:
    """What a lens made of a trace: one map per example, layer and head.

    Layers are kept apart, and in factored form where the lens has one; `weights` stacks them anew at each call.

    >>> maps = hs.view(trace, "effective")
    >>> maps.layer(3).shape  # batch head query key
    torch.Size([1, 12, 11, 11])
    """

    parts: Sequence[Float[Tensor, "batch head query key"] | Factored]
    lens: str
    signed: bool
    merged: bool  # one map per layer instead of one per head
    site: str
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    queries: Tokens
    keys: Tokens
    visible: Sequence[Visible]
    examples: tuple[Example, ...]
    diagnostics: Mapping[str, Num[Tensor, "batch layer head"]] = field(default_factory=dict)

    def __repr__(self) -> str:
        heads = "heads merged" if self.merged else f"{len(self.heads)} heads"
        return (
            f"Maps({self.lens} lens, {self.site} attention of {len(self.examples)} example(s), "
            f"{len(self.layers)} layers × {heads}, up to {int(self.keys.counts.max())} tokens)"
        )

    @property
    def weights(self) -> Float[Tensor, "batch layer head query key"]:
        """All layers in one tensor."""
        return torch.stack([self.layer(label) for label in self.layers], dim=1)

    def layer(self, label: int) -> Float[Tensor, "batch head query key"]:
        """The maps of one layer."""
        part = self.parts[self.layers.index(select_labels(self.layers, label, "layer")[0])]
        return part.weights if isinstance(part, Factored) else part

    def dataset(self, example: int = 0) -> xr.Dataset:
        """One example's maps as an xarray Dataset, padding cut away: what figures draw and files hold.

        Dimensions: lens layer head query key. Tokens are the coordinates `query_token` and `key_token`. Maps over an
        image carry the `picture` that the model saw, with each key's place in it: `key_row` and `key_column`.
        """
        if not -len(self.examples) <= example < len(self.examples):
            raise InputError(f"There is no example {example}: these maps hold {len(self.examples)}.")
        rows, columns = (side.real[example].cpu() for side in (self.queries, self.keys))
        cut = (slice(None), rows.nonzero()[:, 0][:, None], columns.nonzero()[:, 0])
        weights = [self.layer(label)[example].float().cpu()[cut] for label in self.layers]
        seen = [mask[example].cpu()[cut[1:]] for mask in self.visible]
        diagnostics = {
            name: (("lens", "layer", "head"), table[example].cpu().numpy()[None])
            for name, table in self.diagnostics.items()
        }
        picture, places = _picture(self.examples[example], int(columns.sum()))
        return xr.Dataset(
            {
                "weights": (("lens", "layer", "head", "query", "key"), torch.stack(weights).numpy()[None]),
                "visible": (("layer", "query", "key"), torch.stack(seen).numpy()),
                **diagnostics,
                **picture,
            },
            coords={
                "lens": [self.lens],
                "signed": ("lens", [self.signed]),
                "quantity": ("lens", np.array([_quantity(self.lens)], dtype=object)),
                "layer": list(self.layers),
                "head": list(self.heads),
                **_side("query", self.queries, example),
                **_side("key", self.keys, example),
                **places,
            },
            attrs={"headscope": json.dumps({"site": self.site, "example": self.examples[example].id})},
        )


def make_maps(
    trace: Trace,
    parts: Sequence[Tensor | Factored],
    lens: "str | Lens",
    *,
    signed: bool = False,
    merged: bool = False,
    diagnostics: Mapping[str, Tensor] | None = None,
) -> Maps:
    """Return the maps that a lens made of a trace, with the tokens, masks, labels and examples of the trace.

    `parts` has one tensor `[batch, head, query, key]` for each layer, with one head where `merged`. Weights may be
    negative where `signed`. `diagnostics` are tensors `[batch, layer, head]` by name.

    >>> import torch
    >>> trace = Trace.of([torch.full((1, 2, 3, 3), 1 / 3)], ["a", "b", "c"])
    >>> make_maps(trace, [layer.mean(1, keepdim=True) for layer in trace.attention], "mean", merged=True)
    Maps(mean lens, self attention of 1 example(s), 1 layers × heads merged, up to 3 tokens)
    """
    lens = lens if isinstance(lens, str) else to_spec(lens)
    _check_parts(trace, parts, lens, merged=merged)
    return Maps(
        parts=parts,
        lens=lens,
        signed=signed,
        merged=merged,
        site=trace.site,
        layers=trace.layers,
        heads=(0,) if merged else trace.heads,
        queries=trace.queries,
        keys=trace.keys,
        visible=trace.visible,
        examples=trace.examples,
        diagnostics=diagnostics or {},
    )


def _check_parts(trace: Trace, parts: Sequence[Tensor | Factored], lens: str, *, merged: bool) -> None:
    """Raise InputError for parts of other shapes than the trace."""
    if len(parts) != len(trace.layers):
        raise InputError(
            f"The lens '{lens}' made maps of {count_noun(len(parts), 'layer')}, but the trace has {len(trace.layers)}. "
            "Return one tensor for each layer."
        )
    for part, attention in zip(parts, trace.attention, strict=True):
        batch, head, *cells = attention.shape
        expected = [batch, 1 if merged else head, *cells]
        shape = [*part.left.shape[:3], part.right.shape[2]] if isinstance(part, Factored) else list(part.shape)
        if shape != expected:
            one = " Give merged=True for one map per layer." if shape == [batch, 1, *cells] else ""
            raise InputError(
                f"The lens '{lens}' made a map of shape {shape}, but {expected} is expected: batch, head, query, key."
                f"{one}"
            )


def _quantity(lens: str) -> str:
    """Return what the weights of a lens are, as its class says it."""
    name = parse_spec(lens)[0]
    try:
        quantity = getattr(lenses.find(name), "quantity", "")
    except UnknownName:  # maps of a lens that is not in the catalog, made by hand
        quantity = ""
    return quantity or f"weight ({lens})"


def _side(name: str, tokens: Tokens, example: int) -> dict[str, Any]:
    real = tokens.real[example].cpu()
    text = [piece for piece, is_real in zip(_padded(tokens, example), real.tolist(), strict=True) if is_real]
    return {
        f"{name}_token": (name, token_labels(text)),
        f"{name}_special": (name, tokens.special[example].cpu()[real].numpy()),
        f"{name}_segment": (name, tokens.segment[example].cpu()[real].numpy()),
        f"{name}_word": (name, tokens.word[example].cpu()[real].numpy()),
    }


def _padded(tokens: Tokens, example: int) -> list[str]:
    """The row's text as wide as its tensors, real tokens in their places."""
    pieces = iter(tokens.text[example])
    return [next(pieces, "") if real else "" for real in tokens.real[example].tolist()]


def _picture(example: Example, keys: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The picture that a capture put into its example, and where each key lies in it; -1 for what is no patch."""
    if "picture" not in example.columns:
        return {}, {}
    rows, columns = example.columns["patches"]
    places = np.indices((rows, columns)).reshape(2, -1)
    before = keys - rows * columns  # [CLS] stands before the patches
    row, column = np.pad(places, ((0, 0), (before, 0)), constant_values=-1)
    picture = (("row", "column", "colour"), example.columns["picture"])
    return {"picture": picture}, {"key_row": ("key", row), "key_column": ("key", column)}
