"""The viewer where it cannot run, such as in a saved notebook: a card with a picture of all heads, or of a result."""

import html
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headscope.core.prose import count_noun, join_words
from headscope.display.cards import LEFT, LEFT_HEAD, MAX_LETTERS, MAX_ROWS, make_fact_card, tile_maps
from headscope.display.embed import embed_png, embed_svg_text
from headscope.display.notebook import ShownOnce
from headscope.display.state import count_tokens
from headscope.plotting.selection import format_range
from headscope.reporting.markup import to_html
from headscope.viewer.encode import Array, decode_thumbnail
from headscope.viewer.page import write_viewer_page
from headscope.viewer.source import Source

LIVE = "This is a picture of the viewer. Run the cell to use it; `hs.save(viewer, 'page.html')` writes it as a page."
MAX_TILES = 1024
"""Maps in a picture at most; of models with more heads, the first layers are shown."""


@dataclass(eq=False)
class StillViewer(ShownOnce):
    """The viewer in a notebook without widgets: its picture."""

    source: Source
    state: Mapping[str, Any]
    note: str

    def write_page(self, path: Path) -> None:
        """Write the viewer as a page; `hs.save(viewer, "page.html")` calls this."""
        write_viewer_page(self.source, path)

    def __repr__(self) -> str:
        return f"StillViewer({describe_header(self.source.header(), self.state['sheet'])})"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"text/plain": repr(self), **make_bundle(self.source, self.state, self.note)}


def describe_header(header: Mapping[str, Any], sheet: int) -> str:
    """Return what is shown in a line: the title, the lenses, and the number of layers, heads and tokens."""
    if not header["sheets"]:
        return str(header["title"])
    facts = _list_facts(header, sheet)
    lenses = facts.get("lens") or facts.get("lenses") or "numbers by head"
    tokens = f", {facts['tokens']} tokens" if facts["tokens"] != "0" else ""
    return f"{header['title']}, {lenses}, {facts['attention']}{tokens}"


def make_bundle(source: Source, state: Mapping[str, Any], note: str = LIVE) -> dict[str, str]:
    """Return the card as HTML, and the picture of maps as base64 of a PNG."""
    header = source.header()
    if not any(sheet["lenses"] for sheet in header["sheets"]):
        return {"text/html": _make_result_card(source, note)}
    content, width, caption = picture_sheet(source, state["sheet"], state["lens"])
    picture = f"{embed_png(content, width, caption)}<div>{html.escape(caption)}</div><p>{to_html(note)}</p>"
    card = make_fact_card(header["title"], _list_facts(header, state["sheet"]), picture)
    return {"text/html": card, "image/png": b64encode(content).decode()}


def picture_sheet(source: Source, sheet: int, lens: str) -> tuple[bytes, int, str]:
    """Return a PNG of the thumbnails of a lens, its width in pixels, and what it shows."""
    facts = source.header()["sheets"][sheet]
    index = next((index for index, entry in enumerate(facts["lenses"]) if entry["name"] == lens), 0)
    shown = facts["lenses"][index]
    thumbs = read_thumbs(source, sheet, index)
    thumbs = thumbs[: max(1, MAX_TILES // thumbs.shape[1])]
    layers = format_range(facts["layers"][: len(thumbs)])
    where = f"layers {layers} down, heads {format_range(facts['heads'])} across"
    if thumbs.shape[1] == 1:
        thumbs, where = thumbs.swapaxes(0, 1), f"layers {layers} across"
    content, width = tile_maps(thumbs, signed=shown["signed"])
    colors = "blue: positive, orange: negative" if shown["signed"] else "darker: more weight"
    return content, width, f"{shown['name']}: {where}; of each map queries down, keys across; {colors}."


def read_thumbs(source: Source, sheet: int, lens: int) -> Array:
    """Return the thumbnails of a lens, `layer head row column`; NaN where nothing is visible, or without a map."""
    shown = source.header()["sheets"][sheet]["lenses"][lens]
    scales = np.array(shown["scales"], dtype=float)
    shares = decode_thumbnail(source.block(f"{sheet}/{lens}/thumbs"), signed=shown["signed"])
    shape = (*scales.shape, shown["thumbs"]["rows"], shown["thumbs"]["columns"])
    thumbs: Array = shares.reshape(shape) * scales[..., None, None]
    return thumbs


def _list_facts(header: Mapping[str, Any], index: int) -> dict[str, str]:
    sheet = header["sheets"][index]
    text = " ⟂ ".join(filter(None, (sheet["text"], sheet["pair"])))
    names = [entry["name"] for entry in sheet["lenses"]]
    models = [f"{entry['model']}, {entry['site']} attention" for entry in header["sheets"]]
    return {
        "model" if len(models) == 1 else "models": join_words(models),
        "text": text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS - 1]}…",
        "lens" if len(names) == 1 else "lenses": join_words(names, empty=""),
        "attention": f"{count_noun(len(sheet['layers']), 'layer')} × {count_noun(len(sheet['heads']), 'head')}",
        "tokens": str(count_tokens(header, index)),
        "note": " ".join(header["messages"]),
    }


def _make_result_card(source: Source, note: str) -> str:
    """Return a card of a result: its sentence, its first table and its first figure."""
    header = source.header()
    result = header["result"] or {"lead": "", "tables": [], "figures": []}
    blocks = [f"<p>{to_html(result['lead'])}</p>"] if result["lead"] else []
    blocks += map(_show_table, result["tables"][:1])
    for figure in result["figures"][:1]:
        blocks.append(f"{embed_svg_text(source.block(figure['block']))}<div>{to_html(figure['caption'])}</div>")
    facts = {} if header["result"] else _list_numbers(header)
    return make_fact_card(header["title"], facts, "".join([*blocks, f"<p>{to_html(note)}</p>"]))


def _list_numbers(header: Mapping[str, Any]) -> dict[str, str]:
    """Return what numbers by head a header without maps and results has."""
    labels = {scalar["label"]: None for sheet in header["sheets"] for scalar in sheet["scalars"]}
    return {**_list_facts(header, 0), "tokens": "", "numbers": ", ".join(labels)}


def _show_table(table: Mapping[str, Any]) -> str:
    head = "".join(f"{LEFT_HEAD}{html.escape(name)}</th>" for name in table["columns"])
    rows = (_show_row(row) for row in table["rows"][:MAX_ROWS])
    caption = table["caption"]
    if len(table["rows"]) > MAX_ROWS:
        caption += f" {MAX_ROWS} of {len(table['rows']):,} rows are shown."
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table><div>{to_html(caption)}</div>"


def _show_row(row: Any) -> str:
    cells = (f"{LEFT}{html.escape('' if cell is None else str(cell))}</td>" for cell in row)
    return f"<tr>{''.join(cells)}</tr>"
