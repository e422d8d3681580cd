"""What notebooks show of a Model, a Trace, Maps, Importances, a result of any kind and a study."""

import html
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from textwrap import shorten
from typing import Any

import numpy as np
import xarray as xr
from torch import Tensor

from headscope.core.document import Picture, Table, list_parts
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.importance import Importances
from headscope.core.kind import find_kind
from headscope.core.lens import view
from headscope.core.maps import Maps
from headscope.core.prose import count_noun, join_words
from headscope.core.study import StudyResult
from headscope.core.trace import Trace
from headscope.display.embed import embed_png, embed_svg
from headscope.display.shaded_words import describe_marks, list_largest, shade_html
from headscope.engine.model import Model
from headscope.engine.pruning.pruned_config import pruned_heads
from headscope.figures.head_grid import max_pool
from headscope.plotting import selection
from headscope.plotting.draw import draw
from headscope.plotting.export import render
from headscope.plotting.scales import Cells, weight_scale
from headscope.plotting.selection import describe_maps
from headscope.reporting.markup import full_caption, to_html
from headscope.reporting.report import name_results
from headscope.reporting.table_text import format_table

MAX_TEXTS, MAX_LETTERS, MAX_ROWS = 3, 120, 24
MAX_WIDTH = 560  # pixels, of a figure
LEFT = '<td style="text-align: left">'
LEFT_HEAD = '<th style="text-align: left">'

WIDTH, SIDE, GAP = 480, 32, 2  # pixels: of the picture at most, of a thumbnail at most, and between thumbnails
COLOURS = 24
"""Shades of red, green and blue, so that a picture takes little of a saved notebook."""
MAX_WEIGHTS = 30_000_000
"""Weights that a thumbnail may cost to compute; of longer texts some layers are shown, or none."""


def make_card(what: Any) -> str:
    """Return an HTML card of an object: its name, a few facts and a small picture."""
    for card_type, make in _CARDS.items():
        if isinstance(what, card_type):
            return make(what)
    raise TypeError(f"No card is made of a {type(what).__name__}.")


def _make_model_card(model: Model) -> str:
    config = model.network.config
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    layers, heads = (getattr(text, name, None) for name in ("num_hidden_layers", "num_attention_heads"))
    weights = list(model.network.parameters())
    tokenizer = model.tokenizer
    return make_fact_card(
        f"Model {model.spec}",
        {
            "network": f"{type(model.network).__name__}, family {type(model.family).__name__.lower()}",
            "attention": f"{count_noun(layers, 'layer')} × {count_noun(heads, 'head')}"
            if layers and isinstance(heads, int)
            else "",
            "pruned": join_words(pruned_heads(config), limit=8, empty=""),
            "parameters": f"{sum(tensor.numel() for tensor in weights):,}",
            "weights": f"{str(model.network.dtype).removeprefix('torch.')} on {model.device}",
            "tokenizer": f"{type(tokenizer).__name__}, {len(tokenizer):,} tokens" if tokenizer is not None else "",
        },
    )


def _make_trace_card(trace: Trace) -> str:
    others = [site for site in trace.sites if site != trace.site]
    facts = {
        "site": f"{trace.site}{f'; the model also has {join_words(others)}' if others else ''}",
        "attention": f"{count_noun(len(trace.layers), 'layer')} × {count_noun(len(trace.heads), 'head')}",
        "other layers": f"{trace.describe_other_layers()}, in other_layers" if trace.other_layers else "",
        "pruned": join_words((f"L{layer}H{head}" for layer, head in sorted(trace.pruned)), limit=8, empty=""),
        "tokens": _count_tokens(trace.keys.counts.tolist()),
        "holds": join_words(sorted(trace.held)),
        "model output": _describe_output(trace.model_output),
        "pictures": "raw attention, mean of heads, by layer",
    }
    return make_fact_card(
        "Trace", {**_list_texts(trace.examples), **facts}, picture_heads(view(trace, "raw").mean("head"))
    )


def _make_maps_card(maps: Maps) -> str:
    heads = "heads merged" if maps.merged else count_noun(len(maps.heads), "head")
    layers = maps.averaged.get("layer", count_noun(len(maps.layers), "layer"))
    facts = {
        "lens": maps.lens,
        "site": maps.site,
        "attention": f"{layers} × {maps.averaged.get('head', heads)}",
        "tokens": _count_tokens(maps.keys.counts.tolist()),
    }
    if "share" in maps.diagnostics:
        share = maps.diagnostics["share"]
        facts["effective share"] = f"mean {share.mean():.2f}, from {share.min():.2f} to {share.max():.2f}"
    if note := describe_maps(maps.dataset()):
        facts["note"] = note
    return make_fact_card("Maps", {**_list_texts(maps.examples), **facts}, picture_heads(maps))


def _make_importances_card(importances: Importances) -> str:
    facts = {"method": importances.method, "target": importances.target, "shades": describe_marks(importances)}
    blocks = []
    for row, example in enumerate(importances.examples[:MAX_TEXTS]):
        name = f"{example.id}: " if len(importances) > 1 else ""
        largest = list_largest(importances, row, count=1)
        answer = f"{name}{importances.answers[row]}, score {importances.score[row]:.3g}; darkest: {largest or 'none'}"
        blocks.append(f'<div style="opacity: 0.7">{html.escape(answer)}</div>{shade_html(importances, row)}')
    if len(importances) > MAX_TEXTS:
        facts["examples"] = f"{len(importances)} in all"
    return make_fact_card("Importances", facts, "".join(blocks))


def _make_result_card(data: xr.Dataset) -> str:
    """Return a card of a result: what its kind says of it, the first table and the default figure."""
    kind = find_kind(data)
    tables = list(kind.tables(data).values())
    blocks = [f"<p>{to_html(kind.lead(data))}</p>", *map(_show_table, tables[:1]), _show_figure(data)]
    blocks.append(_point_to_report("data", f"{count_noun(len(tables), 'table')} and all figures"))
    return make_fact_card(name_results([data]), {}, "".join(blocks))


def _make_study_card(result: StudyResult) -> str:
    """Return a card of a study: the lead, the first table and the first figure of its report."""
    document = result.document
    tables, pictures = list_parts(document.sections, Table), list_parts(document.sections, Picture)
    blocks = [f"<p>{to_html(document.lead)}</p>", *map(_show_table, tables[:1]), *map(_show_picture, pictures[:1])]
    if not tables and not pictures and "numbers" in result.results:
        return _make_result_card(result.data)
    count = f"{count_noun(len(tables), 'table')} and {count_noun(len(pictures), 'figure')}"
    return make_fact_card(document.title, {}, "".join([*blocks, _point_to_report("result.document", count)]))


def _point_to_report(what: str, content: str) -> str:
    return f"<p>{to_html(f'`hs.report({what})` writes the page with {content}.')}</p>"


def _show_table(table: Table) -> str:
    """Return the first rows of a table, with intervals in brackets, and its caption."""
    columns = format_table(table)[0]
    head = "".join(f"{LEFT_HEAD}{html.escape(column.name)}</th>" for column in columns)
    rows = [[html.escape(column.line(row)) for column in columns] for row in range(min(MAX_ROWS, len(table.frame)))]
    body = "".join(f"<tr>{''.join(f'{LEFT}{cell}</td>' for cell in row)}</tr>" for row in rows)
    caption = full_caption(table)
    if len(table.frame) > MAX_ROWS:
        caption += f" {MAX_ROWS} of {len(table.frame):,} rows are shown."
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><div>{to_html(caption)}</div>"


def _show_picture(picture: Picture) -> str:
    width = min(MAX_WIDTH, round(96 * picture.figure.get_figwidth()))
    image = embed_png(render(picture.figure, "png"), width, picture.name)
    return f"{image}<div>{to_html(full_caption(picture))}</div>"


def _show_figure(data: xr.Dataset) -> str:
    """Return the default figure of a result, or why it cannot be drawn."""
    try:
        return embed_svg(draw(data))
    except InputError as error:
        return f"<p>{html.escape(f'Not drawn: {error}')}</p>"


def make_fact_card(title: str, facts: Mapping[str, str], picture: str = "") -> str:
    """Return a card in the colours of the page."""
    rows = "".join(
        f"<tr>{LEFT_HEAD}{html.escape(name)}</th>{LEFT}{html.escape(fact)}</td></tr>"
        for name, fact in facts.items()
        if fact
    )
    table = f"<table>{rows}</table>" if rows else ""
    return f'<div style="overflow-x: auto"><strong>{html.escape(title)}</strong>{table}{picture}</div>'


def _list_texts(examples: Iterable[Example]) -> dict[str, str]:
    """Return the first texts by their id, shortened, and how many more there are."""
    examples = list(examples)
    texts = {}
    for example in examples[:MAX_TEXTS]:
        text = " ⟂ ".join(filter(None, (example.text, example.pair)))
        texts[f"example {example.id}" if len(examples) > 1 else "text"] = shorten(text, MAX_LETTERS, placeholder=" …")
    if len(examples) > MAX_TEXTS:
        texts["examples"] = f"{len(examples)} in all"
    return texts


def _describe_output(output: Any) -> str:
    """Return the names and shapes of the tensors that the network returned; of the loss its value."""
    values = dict(output) if isinstance(output, Mapping) else {}
    shapes = {name: value.shape for name, value in values.items() if isinstance(value, Tensor)}
    return ", ".join(
        f"{name} {' × '.join(map(str, shape)) if shape else f'{float(values[name]):.3g}'}"
        for name, shape in shapes.items()
    )


def _count_tokens(counts: list[int]) -> str:
    return str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"


_CARDS: dict[type, Callable[[Any], str]] = {
    Model: _make_model_card,
    Trace: _make_trace_card,
    Maps: _make_maps_card,
    Importances: _make_importances_card,
    xr.Dataset: _make_result_card,
    StudyResult: _make_study_card,
}


def picture_heads(maps: Maps) -> str:
    """Return every head of the first example as an HTML image with a note, or nothing for very long texts."""
    first = maps.sel(example=0)
    count = min(len(first.layers), MAX_WEIGHTS // (len(first.heads) * first.queries.real[0].numel() ** 2))
    if not count:
        return ""
    data = selection.select_lens(first.sel(layer=first.layers[:count]).dataset(), None)
    weights = selection.visible_weights(data.transpose("head", "layer", "query", "key", ...))
    layers = f"Layers {selection.format_range(first.layers[:count])}"
    if len(first.heads) == 1:
        where = ", ".join(filter(None, (f"{layers} across", first.averaged.get("head"))))
    else:
        weights = weights.swapaxes(0, 1)
        where = f"{layers} down, heads {selection.format_range(first.heads)} across"
    content, width = tile_maps(weights, signed=first.signed)
    colours = "blue: positive, orange: negative" if first.signed else "darker: more weight"
    example = f" Example {first.examples[0].id}, the first of {len(maps.examples)}." if len(maps.examples) > 1 else ""
    note = f"{where}; of each map queries down, keys across; {colours}.{example}"
    return f"{embed_png(content, width, note)}<div>{html.escape(note)}</div>"


def tile_maps(weights: Cells, *, signed: bool) -> tuple[bytes, int]:
    """Return a PNG with the thumbnails of `row column query key`, and its width in pixels."""
    rows, columns = weights.shape[:2]
    side = max(3, min(SIDE, WIDTH // columns - GAP))
    small = max_pool(weights, side)
    zoom = max(1, side // max(small.shape[-2:]))
    colours = weight_scale(weights, signed=signed).rgba(small)
    colours[np.isnan(small)] = (0.93, 0.93, 0.93, 1.0)  # masked
    colours = colours.repeat(zoom, 2).repeat(zoom, 3)
    edge = ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0))
    framed = np.pad(colours, edge, constant_values=0.8)
    spaced = np.pad(framed, ((0, 0), (0, 0), (0, GAP), (0, GAP), (0, 0)), constant_values=1.0)
    image = spaced.transpose(0, 2, 1, 3, 4).reshape(rows * spaced.shape[2], columns * spaced.shape[3], 4)
    few = np.round(image[..., :3] * COLOURS) / COLOURS
    pixels: np.ndarray[Any, np.dtype[np.uint8]] = (255 * few).round().astype(np.uint8)
    return write_png(pixels), pixels.shape[1]


def write_png(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    """Return `row column color` of at most 256 colors as a PNG with a palette, a byte a pixel at most."""
    height, width = pixels.shape[:2]
    colors, codes = np.unique(pixels @ np.array([1, 256, 65536]), return_inverse=True)
    palette = colors.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3]
    rows = np.pad(codes.reshape(height, width).astype(np.uint8), ((0, 0), (1, 0)))  # 0: no filter
    shape = struct.pack(">2I5B", width, height, 8, 3, 0, 0, 0)
    parts = {b"IHDR": shape, b"PLTE": palette.tobytes(), b"IDAT": zlib.compress(rows.tobytes(), 9), b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(_pack_chunk(name, content) for name, content in parts.items())


def _pack_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
