"""What the viewer reads: a small header, and blocks of bytes by name. `make_source` makes one of anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xarray as xr

from headscope.core.errors import InputError, UnknownName
from headscope.core.provenance import read_provenance
from headscope.core.study import StudyResult
from headscope.plotting.scales import find_quantile
from headscope.results.store import open_result
from headscope.version import __version__
from headscope.viewer.encode import Array, Codec, encode_thumbnail, encode_weights, find_scale, shrink, thumb_side
from headscope.viewer.result import ShownResult, show_dataset
from headscope.viewer.sheet import LensMaps, Sheet, to_table

FORMAT = 1
SMALL = 4_000_000
"""Weights up to which two bytes each are sent by default; more are sent as one byte each."""

SAMPLE = 2_000_000
"""Weights from which the end of the color scale is found; of more, evenly spaced ones are taken."""

MAX_COMPARED = 40_000_000
"""Weights of two models up to which the cosine of every head is computed."""

TITLE_LETTERS = 60


class Source(Protocol):
    """What a viewer shows: a header for JSON, and blocks of bytes. frontend/README.md describes both."""

    def header(self) -> dict[str, Any]:
        """Return what is shown, without weights."""

    def block(self, name: str) -> bytes:
        """Return one array."""


def make_source(what: Any, *, example: int = 0, codec: Codec | None = None, hashed: bool = False) -> Source:
    """Return a source of Maps, several Maps, a Trace, a Dataset of any kind, or the result of a study.

    Parameters
    ----------
    what
        Maps, a Trace, a Dataset, the result of a study, or several of these in a list; in a dict, under their names;
        or the path of a Dataset. Numbers by head of a Dataset of measurements are offered beside maps of the same
        model, layers and heads.
    example
        The position of the example, of maps of several.
    codec
        "sqrt8" (one byte a weight), "float16" or "float32". Default: float16, or one byte for large inputs.
    hashed
        Whether to compute hashes of the weights and of what else decides the maps; for large models this takes long.

    >>> source = make_source([hs.view(trace, "raw"), hs.view(trace, "effective")])
    >>> [lens["name"] for lens in source.header()["sheets"][0]["lenses"]]
    ['raw', 'effective']
    """
    if isinstance(what, StudyResult):
        return ViewSource([], ShownResult("study", what.document), codec)
    if isinstance(what, str | Path) and Path(what).suffix.lower() in (".nc", ".zarr"):
        what = open_result(what)
    if isinstance(what, xr.Dataset):
        return _make_dataset_source(what, example, codec)
    if hashed:
        _describe_sources(what)
    named = isinstance(what, Mapping)
    items = list(what.items()) if named else [(None, part) for part in _to_list(what)]
    sheets = [sheet for name, part in items for sheet in _make_sheets(part, example, name)] if named else None
    sheets = sheets or _make_sheets([part for _, part in items], example, None)
    if not sheets:
        raise InputError("None of these results has maps or numbers by head. Show each alone: its tables and figures.")
    return ViewSource(sheets, None, codec)


def _describe_sources(what: Any) -> None:
    """Let every source of maps compute its hashes; it keeps them among its facts."""
    from headscope.core.trace import CaptureSource

    for part in what.values() if isinstance(what, Mapping) else _to_list(what):
        for item in _to_list(part):
            if isinstance(source := getattr(item, "source", None), CaptureSource):
                source.describe()


def _to_list(what: Any) -> list[Any]:
    return list(what) if isinstance(what, list | tuple) else [what]


def _make_dataset_source(data: xr.Dataset, example: int, codec: Codec | None) -> "ViewSource":
    from headscope.viewer.from_dataset import make_dataset_sheets

    sheets = make_dataset_sheets(data, example)
    has_maps = any(sheet.lenses for sheet in sheets)
    return ViewSource(sheets, None if has_maps else show_dataset(data), codec)


def _make_sheets(what: Any, example: int, name: str | None) -> list[Sheet]:
    """Return the sheets of Maps, Traces and Datasets; measured numbers join the sheets with the same heads."""
    from headscope.core.maps import Maps
    from headscope.core.trace import Trace
    from headscope.viewer.from_dataset import make_dataset_sheets, read_scalars
    from headscope.viewer.from_maps import add_scalars, group_maps, make_map_sheet, make_trace_sheets, view_trace

    parts = _to_list(what)
    traces = [part for part in parts if isinstance(part, Trace)]
    single = [maps for trace in traces if not trace.other_layers for maps in view_trace(trace)]
    maps = [*(part for part in parts if isinstance(part, Maps)), *single]
    datasets = [part for part in parts if isinstance(part, xr.Dataset)]
    if strange := [part for part in parts if not isinstance(part, Maps | Trace | xr.Dataset)] or not parts:
        found = type(strange[0]).__name__ if isinstance(strange, list) else "nothing: an empty list or dict"
        raise InputError(
            "The viewer shows Maps, a Trace, a Dataset, a study's result, or a list or dict of these, but got "
            f"{found}. Capture first: hs.capture(model, text)."
        )
    sheets = [make_map_sheet(group, example, name) for group in group_maps(maps)]
    sheets += [sheet for trace in traces if trace.other_layers for sheet in make_trace_sheets(trace, example, name)]
    for data in datasets:
        measured = [] if "weights" in data else read_scalars(data)
        shape = tuple(np.atleast_1d(data[axis].values).tolist() for axis in ("layer", "head") if axis in data.coords)
        fits = [(list(sheet.layers), list(sheet.heads)) == shape and _same_model(sheet, data) for sheet in sheets]
        if measured and any(fits):
            sheets = [add_scalars(sheet, measured) if fit else sheet for sheet, fit in zip(sheets, fits, strict=True)]
        else:
            sheets += make_dataset_sheets(data, example)
    return sheets


def _same_model(sheet: Sheet, data: xr.Dataset) -> bool:
    """Whether numbers were measured with the model of a sheet, as far as both say which it is."""
    facts = read_provenance(data)
    pairs = ((sheet.facts.get(name), facts.get(name)) for name in ("model", "weights_hash", "site"))
    return all(one is None or other is None or one == other for one, other in pairs)


@dataclass(frozen=True)
class ViewSource:
    """Sheets, the report of a result, or both; encoded when a viewer asks."""

    sheets: Sequence[Sheet]
    result: ShownResult | None = None
    codec: Codec | None = None
    summaries: "Sequence[Sequence[LensSummary]] | None" = None  # where the maps were read already

    def header(self) -> dict[str, Any]:
        """Return what is shown, without weights."""
        return self._header

    def block(self, name: str) -> bytes:
        """Return the bytes of one array, by the names that frontend/README.md lists."""
        words = name.split("/")
        if words[0] == "result" and self.result is not None and name.endswith(".svg"):
            content = self.result.draw("/".join(words[1:]).removesuffix(".svg"))
            if content is not None:
                return content
        try:
            return self._sheet_block(words)
        except (ValueError, IndexError) as error:
            raise UnknownName(f"There is no block '{name}' in this view.") from error

    def _sheet_block(self, words: Sequence[str]) -> bytes:
        sheet = self.sheets[_index(words[0])]
        match words[1:]:
            case ["visible", layer]:
                return sheet.visible[_index(layer)].astype(np.uint8).tobytes()
            case ["picture"] if sheet.picture is not None:
                return np.ascontiguousarray(sheet.picture.pixels).tobytes()
            case [lens, "thumbs"]:
                return self._summaries[_index(words[0])][_index(lens)].thumbs
            case [lens, "map", layer, head]:
                return self._map_block(_index(words[0]), _index(lens), _index(layer), _index(head))
            case [lens, "graph", layer]:
                read = sheet.lenses[_index(lens)].read_graph
                if read is not None:
                    return encode_weights(read(_index(layer)), "float16", None, signed=False)
        raise ValueError

    def _map_block(self, sheet: int, lens: int, layer: int, head: int) -> bytes:
        maps, scales = self.sheets[sheet].lenses[lens], self._summaries[sheet][lens].scales
        return encode_weights(maps.read_head(layer, head), self._codecs[sheet], scales[layer][head], signed=maps.signed)

    @cached_property
    def _codecs(self) -> list[Codec]:
        return [self.codec or ("float16" if _count_weights(sheet) <= SMALL else "sqrt8") for sheet in self.sheets]

    @cached_property
    def _summaries(self) -> "Sequence[Sequence[LensSummary]]":
        if self.summaries is not None:
            return self.summaries
        return [[summarize_lens(lens, sheet) for lens in sheet.lenses] for sheet in self.sheets]

    @cached_property
    def _header(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "title": make_title(self.sheets, self.result),
            "made": list_facts(self.sheets),
            "sheets": [
                describe_sheet(sheet, summaries, codec)
                for sheet, summaries, codec in zip(self.sheets, self._summaries, self._codecs, strict=True)
            ],
            "comparisons": compare_sheets(self.sheets),
            "result": None if self.result is None else self.result.describe(),
            "messages": list(dict.fromkeys(message for sheet in self.sheets for message in sheet.messages)),
        }


@dataclass(frozen=True)
class LensSummary:
    """What is known of a lens after all its maps were read once."""

    scales: list[list[float | None]]  # layer head
    limit: float
    thumbs: bytes
    shape: tuple[int, int]


def summarize_lens(lens: LensMaps, sheet: Sheet) -> LensSummary:
    """Read all maps of a lens once, layer by layer."""
    summary = LensSummarizer(lens, sheet)
    for layer in range(len(sheet.layers)):
        summary.add(layer, lens.read_layer(layer))
    return summary.finish()


class LensSummarizer:
    """Adds up scales, thumbnails and a sample of weights, layer by layer."""

    def __init__(self, lens: LensMaps, sheet: Sheet) -> None:
        self.lens, self.sheet = lens, sheet
        heads = 1 if lens.merged else len(sheet.heads)
        self.cells = len(sheet.queries.text) * len(sheet.key_row.text)
        self.side = thumb_side(len(sheet.layers) * heads, max(len(sheet.queries.text), len(sheet.key_row.text)))
        self.step = max(1, len(sheet.layers) * heads * self.cells // SAMPLE)
        self.scales: dict[int, list[float | None]] = {}
        self.thumbs: list[bytes] = []
        self.sample: list[Array] = []
        self.shape = (0, 0)

    def add(self, layer: int, weights: Array) -> None:
        """Add the maps of a layer, or of its next heads, `head query key`; layers come in order."""
        scales = [find_scale(weights[head]) for head in range(len(weights))]
        small = shrink(weights, self.side)
        self.shape = (small.shape[-2], small.shape[-1])
        shown, seen = weights.reshape(len(weights), -1)[:, :: self.step], None
        visible = self.sheet.visible[layer] if len(self.sheet.visible) else None
        if visible is not None and not visible.all():
            shown = np.where(visible.reshape(-1)[:: self.step], shown, np.nan)
            seen = shrink(visible[None].astype(np.float32), self.side)[0] > 0
        for head, scale in enumerate(scales):
            self.thumbs.append(encode_thumbnail(small[head], scale, signed=self.lens.signed, visible=seen))
        self.sample.append(shown.ravel())
        self.scales.setdefault(layer, []).extend(scales)

    def finish(self) -> LensSummary:
        """Return the summary of all layers; the color scale ends where that of the figures does."""
        limit = find_quantile(np.concatenate(self.sample), keys=len(self.sheet.key_row.text))[1]
        return LensSummary(list(self.scales.values()), limit, b"".join(self.thumbs), self.shape)


def describe_sheet(sheet: Sheet, summaries: Sequence[LensSummary], codec: Codec) -> dict[str, Any]:
    """Return what the header says of a sheet."""
    return {
        "model": sheet.model,
        "site": sheet.site,
        "text": sheet.text,
        "pair": sheet.pair,
        "layers": list(map(int, sheet.layers)),
        "heads": list(map(int, sheet.heads)),
        "queries": sheet.queries.describe(),
        "keys": None if sheet.keys is None else sheet.keys.describe(),
        "visible": _describe_visible(sheet.visible),
        "picture": None if sheet.picture is None else sheet.picture.describe(),
        "lenses": [describe_lens(lens, summary, codec) for lens, summary in zip(sheet.lenses, summaries, strict=True)],
        "scalars": [scalar.describe() for scalar in sheet.scalars],
        "python": sheet.python,
        "prediction": None if sheet.prediction is None else [list(pair) for pair in sheet.prediction],
    }


def describe_lens(lens: LensMaps, summary: LensSummary, codec: Codec) -> dict[str, Any]:
    """Return what the header says of a lens."""
    return {
        "name": lens.name,
        "quantity": lens.quantity,
        "signed": lens.signed,
        "merged": lens.merged,
        "codec": codec,
        "limit": summary.limit,
        "scales": summary.scales,
        "thumbs": {"rows": summary.shape[0], "columns": summary.shape[1]},
        "stored": None,
        "graph": lens.graph,
        "note": lens.note,
    }


def _describe_visible(masks: Sequence[Array]) -> str:
    if all(mask.all() for mask in masks):
        return "all"
    return "causal" if all(np.array_equal(mask, np.tri(*mask.shape, dtype=bool)) for mask in masks) else "blocks"


def make_title(sheets: Sequence[Sheet], result: ShownResult | None) -> str:
    """Return the models and the beginning of the text, or the title of the report."""
    if result is not None:
        return result.document.title
    models = list(dict.fromkeys(sheet.model.rpartition("/")[2] for sheet in sheets))
    text = " ".join(sheets[0].text.split()) if sheets else ""
    short = text if len(text) <= TITLE_LETTERS else f"{text[: TITLE_LETTERS - 1].rstrip()}…"
    return " · ".join(filter(None, (" and ".join(models), short))) or "headscope"


def list_facts(sheets: Sequence[Sheet]) -> list[list[str]]:
    """Return what made these numbers: models, hashes, data and the version."""
    facts: dict[str, list[str]] = {}
    for sheet in sheets:
        shown = {
            "model": sheet.model,
            **{key: sheet.facts.get(key) for key in ("weights_hash", "data", "n", "command")},
        }
        for name, value in shown.items():
            if value is not None and str(value) not in facts.setdefault(name, []):
                facts[name].append(str(value))
    shown_facts = [[name.replace("_", " "), ", ".join(values)] for name, values in facts.items() if values]
    return [*shown_facts, ["made with", f"headscope {__version__}"]]


def compare_sheets(sheets: Sequence[Sheet]) -> list[dict[str, Any]]:
    """Return the cosine of every head of two sheets with the same layers, heads and tokens, for the lenses of both."""
    found = []
    for (first, one), (second, other) in combinations(enumerate(sheets), 2):
        if (one.layers, one.heads) != (other.layers, other.heads) or not one.queries.text:
            continue
        if (one.queries.text, one.key_row.text) != (other.queries.text, other.key_row.text):
            continue
        names = {lens.name: lens for lens in other.lenses}
        for lens in one.lenses:
            if lens.name in names and not lens.merged and 2 * _count_weights(one) <= MAX_COMPARED:
                table = _cosines(lens, names[lens.name], len(one.layers))
                facts = {"first": first, "second": second, "lens": lens.name, "name": "cosine"}
                found.append({**facts, "values": to_table(table)})
    return found


def _cosines(one: LensMaps, other: LensMaps, layers: int) -> Array:
    rows = []
    for layer in range(layers):
        a, b = (_flatten(lens.read_layer(layer)) for lens in (one, other))
        norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        rows.append(np.divide((a * b).sum(1), norms, out=np.full(len(a), np.nan), where=norms > 0))
    return np.stack(rows)


def _flatten(weights: Array) -> Array:
    return weights.reshape(len(weights), -1).astype(np.float64)


def _count_weights(sheet: Sheet) -> int:
    cells = len(sheet.queries.text) * len(sheet.key_row.text)
    return sum(cells * len(sheet.layers) * (1 if lens.merged else len(sheet.heads)) for lens in sheet.lenses)


def _index(text: str) -> int:
    """Return an index in the name of a block; negative numbers and signs are none."""
    if not text.isdecimal():
        raise ValueError
    return int(text)
