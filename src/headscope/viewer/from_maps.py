"""Sheets of the viewer from Maps."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from headscope.core.batch import Batch
from headscope.core.catalog import lenses as lens_catalog
from headscope.core.catalog import statistics
from headscope.core.errors import InputError, UnknownName
from headscope.core.example import Example
from headscope.core.lens import view
from headscope.core.maps import Maps
from headscope.core.maps.factored import Factored
from headscope.core.prose import join_words
from headscope.core.spec import parse_spec
from headscope.core.tokens import Tokens, token_labels
from headscope.core.trace import Trace, at_least_float32
from headscope.engine.default_model import DEFAULT
from headscope.plotting.selection import DIAGNOSTICS, describe_maps
from headscope.results.summarize import axis_label
from headscope.viewer.encode import Array
from headscope.viewer.sheet import LensMaps, PatchPicture, Scalar, Sheet, TokenRow

STATISTICS = ("entropy", "distance", "peak")
"""Numbers by head that the viewer offers of any maps, where they can be measured on one example."""

ONE_WINDOW = (
    "The maps of these layers differ in shape or in their tokens. Of windows, one of each layer is shown. For another, "
    "choose it: hs.show(hs.view(part, 'raw').sel(example=…)), where part is the trace or one of its other_layers."
)

SHOWN_DIAGNOSTICS = ("share", "rank", "null", "residual", "at_bound", "same_for_sources")


def view_trace(trace: Trace) -> list[Maps]:
    """Return raw, effective and norm-based attention of a trace, where it holds what they need."""
    wanted = [name for name in ("raw", "effective", "norm") if lens_catalog.make(name).needs <= trace.held]
    return [view(trace, name) for name in wanted]


def make_trace_sheets(trace: Trace, example: int, name: str | None = None) -> list[Sheet]:
    """Return a sheet for the layers of each shape; of other shapes than the first, the first row of the same picture.

    Their sites say which layers they hold, and which window.
    """
    chosen = trace.examples[example]
    sheets = []
    for part in (trace, *trace.other_layers):
        same = [row for row, item in enumerate(part.examples) if _whole(item) == _whole(chosen)]
        row = example if part is trace else (same or [0])[0]
        sheet = make_map_sheet(view_trace(part), row, name)
        place = name_layers(part.layers)
        if part.examples[row].part_of is not None:
            text, _, window = sheet.text.rpartition(", ")
            sheet, place = replace(sheet, text=text), f"{place}, {window}"
        sheets.append(replace(sheet, site=f"{sheet.site}, {place}", messages=[ONE_WINDOW]))
    return sheets


def _whole(example: Example) -> str:
    return example.part_of or example.id


def name_layers(layers: Sequence[int]) -> str:
    """Name layers by number.

    >>> name_layers((3,)), name_layers((4, 6))
    ('layer 3', 'layers 4 and 6')
    """
    return f"layer{'s' if len(layers) > 1 else ''} {join_words(layers)}"


def group_maps(maps: Sequence[Maps]) -> list[list[Maps]]:
    """Return maps of one model, site and input together, in the order in which they come."""
    groups: dict[Any, list[Maps]] = {}
    for item in maps:
        tokens = tuple(tuple(side.text[0]) for side in (item.queries, item.keys))
        model = "" if item.source is None else str(item.source.facts)
        groups.setdefault((model, item.site, item.layers, tokens), []).append(item)
    return [_split_heads(group) for group in groups.values()]


def _split_heads(group: list[Maps]) -> list[Maps]:
    """Return maps with one map per head first: they say which heads there are."""
    return sorted(group, key=lambda maps: maps.merged or "head" in maps.averaged)


def make_map_sheet(maps: Sequence[Maps], example: int, name: str | None = None) -> Sheet:
    """Return the sheet of some lenses of one trace."""
    first = maps[0]
    rows, columns = (side.real[example].cpu().nonzero()[:, 0] for side in (first.queries, first.keys))
    source = {} if first.source is None else first.source.facts
    item = first.examples[example]
    same = first.keys is first.queries or _read_tokens(first.keys, example) == _read_tokens(first.queries, example)
    lenses = [_read_lens(each, example, rows, columns, _unique_name(maps, index)) for index, each in enumerate(maps)]
    text_tokens = _count_tokens(first, item)
    return Sheet(
        model=name or str(source.get("model") or "model"),
        site=first.site,
        layers=first.layers,
        heads=first.heads,
        queries=_read_tokens(first.queries, example),
        keys=None if same else _read_tokens(first.keys, example),
        text=item.text,
        pair=item.pair,
        visible=[mask[example].cpu()[rows[:, None], columns].numpy() for mask in first.visible],
        picture=_read_picture(item, len(columns)),
        lenses=lenses,
        scalars=[scalar for each, lens in zip(maps, lenses, strict=True) for scalar in _scalars(each, example, lens)],
        python=_python_lines(maps, item, name, text_tokens, len(columns)),
        facts=dict(source),
        messages=_list_messages(first, example, text_tokens, len(columns)),
    )


def _count_tokens(maps: Maps, item: Example) -> int:
    """Return how many tokens the text would have without truncation; 0 where that is not known."""
    count = getattr(maps.source, "count_tokens", None)
    if count is None or maps.site not in ("self", "encoder") or "picture" in item.columns or not item.text:
        return 0
    return count(item.text, item.pair if maps.site == "self" else None) or 0


def _list_messages(maps: Maps, example: int, text_tokens: int, shown_tokens: int) -> list[str]:
    """Return what is not shown: other examples, and tokens that were truncated."""
    messages = []
    if len(maps.examples) > 1:
        messages.append(
            f"These maps are of {len(maps.examples)} examples; the one at position {example} is shown. "
            "For another, choose it first: maps.sel(example=…)."
        )
    if text_tokens > shown_tokens:
        messages.append(
            f"The text was truncated: it has {text_tokens:,} tokens, of which the model read {shown_tokens:,}."
        )
    return messages


def _read_tokens(tokens: Tokens, example: int) -> TokenRow:
    real = tokens.real[example].cpu()
    text = token_labels(list(tokens.text[example])).tolist()
    special, word = (table[example].cpu()[real].tolist() for table in (tokens.special, tokens.word))
    return TokenRow(text, special, word)


def _unique_name(maps: Sequence[Maps], index: int) -> str:
    before = [each.lens for each in maps[:index]].count(maps[index].lens)
    return f"{maps[index].lens} ({before + 1})" if before else maps[index].lens


def _read_lens(maps: Maps, example: int, rows: torch.Tensor, columns: torch.Tensor, name: str) -> LensMaps:
    """Return a lens whose maps are cut out of the batch when they are asked for."""

    def read_layer(index: int) -> Array:
        part = maps.parts[index]
        if isinstance(part, Factored):
            part = Factored(part.left[[example]], part.right[[example]]).weights
            return _to_numpy(part[0][:, rows[:, None], columns])
        return _to_numpy(part[example][:, rows[:, None], columns])

    def read_head(index: int, head: int) -> Array:
        part = maps.parts[index]
        if isinstance(part, Factored):
            return _to_numpy(part.left[example, head][rows] @ part.right[example, head][columns].mT)
        return _to_numpy(part[example, head][rows[:, None], columns])

    def read_graph(index: int) -> Array:
        assert maps.graph is not None
        return _to_numpy(maps.graph.layers[index][example, 0][rows[:, None], columns])

    return LensMaps(
        name=name,
        quantity=_ask_lens(maps.lens, "quantity") or f"weight ({maps.lens})",
        signed=maps.signed,
        merged=maps.merged or "head" in maps.averaged,
        read_layer=read_layer,
        read_head=read_head,
        note=_describe(maps, example),
        graph=None if maps.graph is None else maps.graph.kind,
        read_graph=None if maps.graph is None else read_graph,
    )


def _to_numpy(weights: torch.Tensor) -> Array:
    array: Array = at_least_float32(weights.detach()).cpu().numpy()
    return array


def _ask_lens(lens: str, attribute: str) -> str:
    """Return what the class of a lens says of its weights; nothing for maps made by hand."""
    try:
        return str(getattr(lens_catalog.find(parse_spec(lens)[0]), attribute, ""))
    except UnknownName:
        return ""


def _describe(maps: Maps, example: int) -> str:
    """Return what figures of these maps say below, such as that all attention reaches the output."""
    import xarray as xr

    axes = ("lens", "layer", "head")
    tables = {name: (axes, table[[example]].cpu().numpy()) for name, table in maps.diagnostics.items()}
    note = _ask_lens(maps.lens, "note")
    coords: dict[str, Any] = {"lens": [maps.lens], "layer": list(maps.layers), "head": list(maps.heads)}
    coords |= {"note": ("lens", np.array([note], dtype=object))} if note else {}
    return describe_maps(xr.Dataset({"weights": 0, **tables}, coords))


def _scalars(maps: Maps, example: int, lens: LensMaps) -> list[Scalar]:
    """Return the diagnostics of a lens, and a few statistics of one example."""
    shown = [name for name in SHOWN_DIAGNOSTICS if name in maps.diagnostics]
    found = [
        Scalar(name, DIAGNOSTICS.get(name, name), lens.name, maps.diagnostics[name][example].cpu().double().numpy())
        for name in shown
    ]
    if lens.merged:
        return found  # one number per layer: nothing for a grid of heads
    single = maps.sel(example=example) if len(maps.examples) > 1 else maps
    return found + [scalar for name in STATISTICS for scalar in _measure(single, name, lens.name)]


def _measure(maps: Maps, name: str, lens: str) -> list[Scalar]:
    """Return the variables of a statistic on one example that have one number per head."""
    statistic = statistics.make(name)
    batch = Batch(maps.examples, {("model", maps.lens): maps}, maps.lens)
    try:
        data = statistic.finish(statistic.observe(batch))
    except InputError:  # the statistic is not defined for these maps, such as those of a picture
        return []
    tables = {str(key): table for key, table in data.data_vars.items() if {"layer", "head"} <= set(table.dims)}
    plain = {key: _drop_single(table) for key, table in tables.items() if key == name}
    return [
        Scalar(key, axis_label(data, key), lens, table.transpose("layer", "head").values.astype(float))
        for key, table in plain.items()
        if set(table.dims) == {"layer", "head"} and bool(table.notnull().any())
    ]


def _drop_single(table: Any) -> Any:
    return table.squeeze(
        [dim for dim in table.dims if dim not in ("layer", "head") and table.sizes[dim] == 1], drop=True
    )


def _read_picture(example: Example, keys: int) -> PatchPicture | None:
    """Return the picture that a capture put into its example, and where each key lies in it."""
    if (places := example.place_patches(keys)) is None:
        return None
    pixels = np.asarray(example.columns["picture"])
    if pixels.dtype != np.uint8:
        pixels = (255 * np.clip(pixels, 0, 1)).round().astype(np.uint8)
    return PatchPicture(pixels, *example.columns["patches"], *places.tolist())


def _python_lines(maps: Sequence[Maps], item: Example, name: str | None, text_tokens: int, shown_tokens: int) -> str:
    """Return the lines that make these maps again; what they are made of is named where no line can make it.

    The text has `text_tokens`; of `shown_tokens` keys there are fewer where it was truncated, and more where tokens
    were generated.
    """
    views = f"maps = [{', '.join(map(_view_call, maps))}]"
    facts = {} if maps[0].source is None else maps[0].source.facts
    model = str(facts.get("model") or "")
    if not model:
        return f"import headscope as hs\n\n# trace: the one that is shown\n{views}\n"
    is_picture = "picture" in item.columns
    words = ["image"] if is_picture else [repr(item.text), *([repr(item.pair)] if item.pair else [])]
    words += [f"site={maps[0].site!r}"] if maps[0].site != "self" else []
    words += [f"layers={list(maps[0].layers)}"] if item.part_of is not None or maps[0].layers[0] else []
    words += [f"max_length={shown_tokens}"] if text_tokens > shown_tokens else []
    words += [f"target={facts['target']!r}"] if "target" in facts else []
    words += [f"max_new_tokens={max(1, shown_tokens - text_tokens)}"] if "generated" in item.columns else []
    verb = "generate" if "generated" in item.columns else "capture"
    load, edit = _load_lines(model, name, "processor" if is_picture else "tokenizer")
    start, used = (f"with hs.edited(model, {edit!r}) as edited:\n    ", "edited") if edit else ("", "model")
    trace = f"trace = hs.{verb}({used}, {', '.join(words)}){'  # image: the one that is shown' * is_picture}"
    return f"import headscope as hs\n\n{load}\n{start}{trace}\n{views}\n"


def _view_call(maps: Maps) -> str:
    means = "".join(f".mean({axis!r})" for axis in maps.averaged)
    return f"hs.view(trace, {maps.lens!r}){means}"


def _load_lines(model: str, name: str | None, reader: str) -> tuple[str, str]:
    """Return the line that loads a model, and the edit with which it is run, or "".

    A model that was built in memory has the name of its class only; one that was pruned has none that can be loaded.
    """
    base, _, edit = model.partition(" with ")
    if edit and ", " not in edit:
        return _load_lines(base, name, reader)[0], edit
    if model == DEFAULT:
        return f"model = hs.load()  # {DEFAULT}", ""
    if " " in model or (model.isidentifier() and model[0].isupper()):
        shown = "that is shown" if name is None else f"of {name!r}"
        return f"model = hs.load(network, {reader}={reader})  # network: the {model} {shown}", ""
    return f"model = hs.load({model!r})", ""


def add_scalars(sheet: Sheet, scalars: Sequence[Scalar]) -> Sheet:
    """Return a sheet with further numbers by head, first."""
    return replace(sheet, scalars=[*scalars, *sheet.scalars])
