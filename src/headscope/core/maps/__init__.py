"""Token-to-token weights, as a lens sees them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Num
from torch import Tensor

from headscope.core.catalog import HasCard
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.maps.factored import Factored
from headscope.core.prose import count_noun
from headscope.core.spec import to_spec
from headscope.core.tokens import Tokens
from headscope.core.trace import CaptureSource, Trace, Visible, at_least_float32, select_labels

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from headscope.core.lens import Lens

Selector = Any
"""A label, several of them, a slice, or None for all."""


@dataclass(frozen=True)
class Graph:
    """The edges from each layer to the one below, of a lens that follows attention down through the layers.

    "edges": the weight of a path is the product of its edges. "capacities": an edge passes on at most its weight.
    """

    kind: Literal["edges", "capacities"]
    layers: Sequence[Float[Tensor, "batch 1 query key"]]


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
class Maps(HasCard):
    """What a lens made of a trace: one map per example, layer and head.

    Layers are kept apart, and in factored form where the lens has one; `weights` stacks them anew at each call.

    >>> maps = hs.view(trace, "effective")
    >>> maps.layer(3).shape  # batch head query key
    torch.Size([1, 12, 70, 70])
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
    averaged: Mapping[str, str] = field(default_factory=dict)  # by axis what was averaged: {"head": "mean of 12 heads"}
    source: CaptureSource | None = None  # the model, for the provenance of saved maps
    pruned: frozenset[tuple[int, int]] = frozenset()  # layer and head of pruned heads, whose weights are NaN
    graph: Graph | None = None  # of maps that follow attention through the layers

    def __repr__(self) -> str:
        heads = "heads merged" if self.merged else count_noun(len(self.heads), "head")
        axes = [self.averaged.get("layer", count_noun(len(self.layers), "layer")), self.averaged.get("head", heads)]
        return (
            f"Maps({self.lens} lens, {self.site} attention of {count_noun(len(self.examples), 'example')}, "
            f"{' × '.join(axes)}, up to {int(self.keys.counts.max())} tokens)"
        )

    @property
    def weights(self) -> Float[Tensor, "batch layer head query key"]:
        """All layers in one tensor."""
        return torch.stack([self.layer(label) for label in self.layers], dim=1)

    def layer(self, label: SupportsIndex) -> Float[Tensor, "batch head query key"]:
        """The maps of one layer.

        Parameters
        ----------
        label
            The number of the layer.
        """
        part = self.parts[self.layers.index(select_labels(self.layers, label, "layer")[0])]
        return part.weights if isinstance(part, Factored) else part

    def sel(self, *, example: Selector = None, layer: Selector = None, head: Selector = None) -> "Maps":
        """Return the maps of some examples, layers and heads, in the order given.

        Layers and heads are selected by label, as in `L3H7`; negative ones count from the end, and a slice includes
        its end, as in xarray. An example is selected by its position, or by its id as text.

        Parameters
        ----------
        example
            Positions, ids, or a slice. Default: all.
        layer, head
            Numbers, or a slice, which includes its end. Default: all.

        >>> hs.view(trace, "raw").sel(layer=-1, head=[0, 3])
        Maps(raw lens, self attention of 1 example, 1 layer × 2 heads, up to 70 tokens)
        """
        from headscope.core.maps.select import select_maps

        return select_maps(self, example, layer, head)

    def mean(self, dim: str | Sequence[str]) -> "Maps":
        """Return the mean over "head", over "layer", or over both; it has no diagnostics.

        Parameters
        ----------
        dim
            "head", "layer", or both.

        >>> hs.view(trace, "raw").mean("head")
        Maps(raw lens, self attention of 1 example, 6 layers × mean of 12 heads, up to 70 tokens)
        """
        from headscope.core.maps.select import average_maps

        return average_maps(self, [dim] if isinstance(dim, str) else list(dim))

    def dataset(self, example: int = 0) -> "xr.Dataset":
        """Return one example as an xarray Dataset without padding: what figures draw.

        Dimensions: lens layer head query key. Tokens are the coordinates `query_token` and `key_token`. Maps over an
        image have the `picture` that the model saw, with each key's position in it: `key_row` and `key_column`.

        Parameters
        ----------
        example
            The position of the example.
        """
        from headscope.core.maps.dataset import make_dataset

        return make_dataset(self, example)

    def to_dataset(self) -> "xr.Dataset":
        """Return all examples as an xarray Dataset, with `example` as the first dimension.

        Rows are as long as the longest example: behind shorter ones weights are NaN and tokens are empty. The
        coordinates `query_count` and `key_count` hold the numbers of tokens. `hs.draw(data, example=2)` draws one.

        >>> dict(hs.view(trace, "raw").to_dataset()["weights"].sizes)
        {'example': 1, 'lens': 1, 'layer': 6, 'head': 12, 'query': 70, 'key': 70}
        """
        from headscope.core.maps.dataset import make_batch_dataset

        return make_batch_dataset(self)

    def to_dataframe(self) -> "pd.DataFrame":
        """Return a table with a row for each example, layer, head, query and key that the query may attend to.

        >>> hs.view(trace, "raw").sel(layer=0, head=0).to_dataframe().shape
        (4900, 9)
        """
        from headscope.core.maps.dataset import make_dataframe

        return make_dataframe(self)

    def __getitem__(self, key: Any) -> "xr.DataArray":
        """Return the weights of a layer and head, `maps[3, 7]`, as an xarray DataArray with its tokens.

        Layers and heads are labels, as in `L3H7`; negative ones count from the end. Lists and slices keep their axis,
        and a slice excludes its end. The axis `example` is there if the maps hold several.
        """
        from headscope.core.maps.select import index_maps

        return index_maps(self, key)

    __iter__ = None  # Python would call maps[0], maps[1], …

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, np.dtype[Any]]:
        """Return `weights` as a numpy array, half precision as float32; padding is zero."""
        if copy is False:
            raise ValueError("Maps are stored layer by layer, so an array of all of them is always a copy.")
        return np.asarray(at_least_float32(self.weights.detach()).cpu().numpy(), dtype)


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

    Parameters
    ----------
    trace
        The trace that the lens read.
    parts
        One tensor `[batch, head, query, key]` for each layer, with one head where `merged`.
    lens
        The lens, or its name.
    signed
        Whether weights may be negative.
    merged
        Whether the lens merges all heads of a layer into one map.
    diagnostics
        Tensors `[batch, layer, head]` by name.

    >>> import torch
    >>> trace = Trace.of([torch.full((1, 2, 3, 3), 1 / 3)], ["a", "b", "c"])
    >>> make_maps(trace, [layer.mean(1, keepdim=True) for layer in trace.attention], "mean", merged=True)
    Maps(mean lens, self attention of 1 example, 1 layer × heads merged, up to 3 tokens)
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
        source=trace.source,
        pruned=trace.pruned,
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
