"""A source of one input whose maps do not fit in memory: thumbnails of all heads, and one layer's maps on demand."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np

from headscope.core.catalog import lenses as lens_catalog
from headscope.core.errors import InputError
from headscope.core.lens import Lens, view
from headscope.core.maps import Maps
from headscope.core.trace import Trace
from headscope.engine.capture import by_layer
from headscope.engine.model import Model
from headscope.viewer.encode import Array
from headscope.viewer.from_maps import make_map_sheet
from headscope.viewer.sheet import LensMaps, Scalar, Sheet
from headscope.viewer.source import LensSummarizer, ViewSource

MAX_WEIGHTS = 2**24
"""Weights of the heads that a lens is applied to at a time."""


class _LayerReached(Exception):  # noqa: N818  (ends a forward pass; no error)
    """The wanted layer was seen: the rest of the model need not run."""


@dataclass
class LayerReader:
    """Runs the model up to a layer when its maps are asked for, and keeps those of the last layer."""

    model: Model
    text: Any
    pair: Any
    lenses: Sequence[Lens]
    options: Mapping[str, Any]
    layer: int | None = None
    maps: list[Array] = field(default_factory=list)

    def read(self, lens: int, layer: int) -> Array:
        """Return the maps of a layer, by its place, through a lens: `head query key` in half precision."""
        if layer != self.layer:
            self.layer, self.maps = None, []  # free the last layer first
            self.maps = self._capture(layer)
            self.layer = layer
        return self.maps[lens]

    def _capture(self, layer: int) -> list[Array]:
        kept: list[Array] = []
        places = count()

        def keep(trace: Trace) -> None:
            if next(places) == layer:
                chunks = [[_read_half(view(chunk, lens)) for lens in self.lenses] for chunk in split_heads(trace)]
                kept.extend(np.concatenate(maps) for maps in zip(*chunks, strict=True))
                raise _LayerReached

        with suppress(_LayerReached):
            by_layer(self.model, self.text, self.pair, see=keep, **self.options)
        return kept


def open_long_input(
    model: Model,
    text: Any,
    pair: Any = None,
    *,
    lenses: Sequence[str] = ("raw", "effective"),
    site: str | None = None,
    max_length: int | None = None,
) -> ViewSource:
    """Return a source of one text, read layer by layer: no more than one layer's maps are in memory.

    The model runs once for the thumbnails and numbers of all heads, and up to the layer of a head whose map is asked
    for. Lenses that read all layers together cannot be shown so.

    Parameters
    ----------
    model
        A model, as `hs.load` returns it.
    text, pair
        A text, and the second one of a pair.
    lenses
        Lenses that read each layer alone, such as raw, effective and norm.
    site, max_length
        As for `hs.capture`.

    >>> source = open_long_input(model, "The cat sat down.")
    >>> source.header()["sheets"][0]["layers"]
    [0, 1, 2, 3, 4, 5]
    """
    entries: list[Lens] = [lens_catalog.make(lens) for lens in lenses]
    if strange := [name for name, lens in zip(lenses, entries, strict=True) if lens.scope != "layer"]:
        raise InputError(
            f"The lens '{strange[0]}' reads all layers together, and the maps of this input are read layer by layer "
            "because they are too many. Choose raw, effective or norm, or a shorter text."
        )
    keep = sorted({"values"} | frozenset[str]().union(*(lens.needs for lens in entries)))
    options: dict[str, Any] = {"site": site, "keep": keep, "max_length": max_length}
    config = model.network.config.get_text_config()
    layers, heads = (getattr(config, f"num_{name}", None) or 12 for name in ("hidden_layers", "attention_heads"))
    overview = _Overview(entries, layers, heads)  # by which thumbnails are sized
    by_layer(model, text, pair, see=overview.add, **options)
    reader = LayerReader(model, text, pair, entries, options)
    return overview.finish(reader)


@dataclass
class _Overview:
    """Thumbnails, scales and numbers of all heads, collected layer by layer."""

    lenses: Sequence[Lens]
    layers: int
    heads: int
    sheets: list[Sheet] = field(default_factory=list)
    summarizers: list[LensSummarizer] = field(default_factory=list)

    def add(self, trace: Trace) -> None:
        """Add a layer, some heads at a time."""
        chunks = [self._read_chunk(chunk) for chunk in split_heads(trace)]
        self.sheets.append(replace(chunks[0], heads=trace.heads, scalars=_join_scalars(chunks, axis=1)))

    def _read_chunk(self, trace: Trace) -> Sheet:
        maps = [view(trace, lens) for lens in self.lenses]
        sheet = make_map_sheet(maps, 0)
        if self.sheets and np.array_equal(sheet.visible[0], self.sheets[-1].visible[0]):
            sheet = replace(sheet, visible=self.sheets[-1].visible)  # layers often share one mask
        if not self.summarizers:
            whole = replace(sheet, layers=range(self.layers), heads=range(self.heads))
            self.summarizers = [LensSummarizer(lens, whole) for lens in sheet.lenses]
        for summarizer, item in zip(self.summarizers, maps, strict=True):
            summarizer.sheet = replace(summarizer.sheet, visible=[sheet.visible[0]] * (len(self.sheets) + 1))
            summarizer.add(len(self.sheets), _read_maps(item))
        freed: dict[str, Any] = {
            "read_layer": _read_freed,
            "read_head": _read_freed,
            "read_graph": None,
        }  # which would keep the maps
        return replace(sheet, lenses=[replace(lens, **freed) for lens in sheet.lenses])

    def finish(self, reader: LayerReader) -> ViewSource:
        """Return the source of all layers."""
        first = self.sheets[0]
        lenses = [_read_later(lens, index, reader, self._note(index)) for index, lens in enumerate(first.lenses)]
        sheet = replace(
            first,
            layers=[layer for sheet in self.sheets for layer in sheet.layers],
            visible=[sheet.visible[0] for sheet in self.sheets],
            scalars=_join_scalars(self.sheets, axis=0),
            lenses=lenses,
        )
        return ViewSource([sheet], None, "sqrt8", [[summarizer.finish() for summarizer in self.summarizers]])

    def _note(self, lens: int) -> str:
        notes = {sheet.lenses[lens].note for sheet in self.sheets}
        return notes.pop() if len(notes) == 1 else ""


def _read_freed(*_: int) -> Array:
    raise AssertionError("the maps of this layer were freed")


def _read_maps(maps: Maps) -> Array:
    """Return the maps of the only layer and example, without padding."""
    rows, columns = (side.real[0].cpu() for side in (maps.queries, maps.keys))
    weights = maps.layer(maps.layers[0])[0].detach()
    if not (bool(rows.all()) and bool(columns.all())):
        weights = weights[:, rows][:, :, columns]
    array: Array = weights.float().cpu().numpy()
    return array


def _read_half(maps: Maps) -> Array:
    return _read_maps(maps).astype(np.float16)


def _read_later(lens: LensMaps, index: int, reader: LayerReader, note: str) -> LensMaps:
    return replace(
        lens,
        note=note,
        read_layer=lambda layer: reader.read(index, layer).astype(np.float32),
        read_head=lambda layer, head: reader.read(index, layer)[head].astype(np.float32),
    )


def _join_scalars(sheets: Sequence[Sheet], axis: int) -> list[Scalar]:
    """Return the numbers of all layers (axis 0) or heads (1), of those that every sheet has."""
    tables: dict[tuple[str, str | None], list[Scalar]] = {}
    for sheet in sheets:
        for scalar in sheet.scalars:
            tables.setdefault((scalar.name, scalar.lens), []).append(scalar)
    whole = [parts for parts in tables.values() if len(parts) == len(sheets)]
    return [replace(parts[0], values=np.concatenate([part.values for part in parts], axis)) for parts in whole]


def split_heads(trace: Trace) -> Iterator[Trace]:
    """Yield a trace of one layer in parts of some heads, which keep heads that share their values together."""
    (attention,) = trace.attention
    count = max(1, MAX_WEIGHTS // (attention[:, 0].numel() * trace.group)) * trace.group
    for start in range(0, len(trace.heads), count):
        part = slice(start, start + count)
        tensors: dict[str, Any] = {
            name: None if layers is None else [layers[0][part] if name == "output" else layers[0][:, part]]
            for name in ("attention", "values", "context", "output")
            for layers in [getattr(trace, name)]
        }
        yield replace(trace, heads=trace.heads[part], **tensors)
