"""A self-contained page: the viewer, its header and all blocks in one HTML file that connects to nothing."""

import hashlib
import html
import json
import re
import zlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from headscope.core.errors import InputError
from headscope.viewer.source import Source

MAX_WEIGHTS = 400_000_000
"""Weights that a page may hold at most; a browser opens pages of about this many bytes."""

HALF_CHARACTERS = re.compile("[\ud800-\udfff]")
GZIP_LEVEL = 1
GZIP_WINDOW = 31  # the largest window, with gzip's header
WIDTHS = {"sqrt8": 1, "float16": 2, "float32": 4}
"""Bytes of a weight by codec."""

POLICY = (
    "default-src 'none'; script-src '{script}'{more}; style-src '{style}'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
"""Content security policy: only this script and this style, pictures of the page itself, and no connection at all."""

HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body class="headscope-page">
<div id="headscope-root"><noscript>This page draws attention maps and needs JavaScript.</noscript></div>
"""


@dataclass(frozen=True)
class Element:
    """A script element of the page with some blocks of the source."""

    name: str
    blocks: list[str]
    """Names of its blocks; "" is a map that is missing."""
    width: int = 1
    """Bytes of a number. Where there are several, the page keeps all first bytes, then all second ones, and so on."""


def write_viewer_page(source: Source, path: Path) -> None:
    """Write a page with all maps of a source.

    Parameters
    ----------
    source
        What is shown.
    path
        The file.
    """
    header = source.header()
    _check_size(header)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(make_head(header["title"]))
        file.write(script_element("application/json", "headscope-header", to_json(header)))
        file.write(f'<script type="module" async>{read_static("viewer.js")}</script>\n')
        for element in list_elements(header):
            file.write(_write_element(element, [source.block(name) if name else b"" for name in element.blocks]))
        file.write('<template id="headscope-end"></template>\n</body>\n</html>\n')


def make_head(title: str, more: str = "") -> str:
    """Return the beginning of a page with the viewer's style; its policy allows the viewer's script.

    Parameters
    ----------
    title
        Title of the page.
    more
        Further sources of scripts.
    """
    script, style = (read_static(name) for name in ("viewer.js", "viewer.css"))
    policy = POLICY.format(script=hash_source(script), style=hash_source(style), more=more)
    known = HALF_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", title)
    return HEAD.format(policy=html.escape(policy), title=html.escape(known), style=style)


def read_static(name: str) -> str:
    """Return a file of the bundle."""
    return (files("headscope") / "static" / name).read_text(encoding="utf-8")


def hash_source(text: str) -> str:
    """Return the hash by which a content security policy allows an inline script or style."""
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def to_json(value: Any) -> str:
    """Return JSON that cannot end the script element around it, with half characters escaped, which no file holds.

    >>> to_json("</script><!--")
    '"\\\\u003c/script>\\\\u003c!--"'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return HALF_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def script_element(kind: str, name: str, content: str) -> str:
    """Return a script element that holds data."""
    return f'<script type="{kind}" id="{name}">{content}</script>\n'


def _check_size(header: dict[str, Any]) -> None:
    cells = sum(_count_cells(sheet) for sheet in header["sheets"])
    if cells > MAX_WEIGHTS:
        raise InputError(
            f"These maps have {cells:,} weights, and a page holds at most {MAX_WEIGHTS:,}. Choose layers or heads with "
            "maps.sel(layer=…, head=…), or look at them in headscope studio, which sends one head at a time."
        )


def _count_cells(sheet: dict[str, Any]) -> int:
    queries, keys = (len((sheet[side] or sheet["queries"])["text"]) for side in ("queries", "keys"))
    maps = sum(sum(map(len, lens["scales"])) for lens in sheet["lenses"])
    return queries * keys * maps


def list_elements(header: dict[str, Any]) -> Iterator[Element]:
    """Yield the elements of a page, those of the first picture first."""
    sheets = list(enumerate(header["sheets"]))
    for sheet, facts in sheets:
        yield from (
            Element(name, [name]) for name in (f"{sheet}/{lens}/thumbs" for lens in range(len(facts["lenses"])))
        )
    for sheet, facts in sheets:
        layers = range(len(facts["layers"]))
        if facts["picture"] is not None:
            yield Element(f"{sheet}/picture", [f"{sheet}/picture"])
        if facts["visible"] == "blocks":
            yield Element(f"{sheet}/visible", [f"{sheet}/visible/{layer}" for layer in layers])
        for lens, lens_facts in enumerate(facts["lenses"]):
            yield from _list_maps(f"{sheet}/{lens}", lens_facts)
            if lens_facts["graph"] is not None:
                names = [f"{sheet}/{lens}/graph/{layer}" for layer in layers]
                yield Element(f"{sheet}/{lens}/graph", names, WIDTHS["float16"])
    figures = (header["result"] or {}).get("figures", [])
    yield from (Element(figure["block"], [figure["block"]]) for figure in figures)


def _list_maps(lens: str, facts: dict[str, Any]) -> Iterator[Element]:
    for layer, scales in enumerate(facts["scales"]):
        name = f"{lens}/map/{layer}"
        blocks = ["" if scale is None else f"{name}/{head}" for head, scale in enumerate(scales)]
        yield Element(name, blocks, WIDTHS[facts["codec"]])


def _write_element(element: Element, blocks: list[bytes]) -> str:
    """Return blocks as one element, with the places where each begins and the last one ends in its text."""
    texts = [b64encode(_compress(element, block)).decode() if block else "" for block in blocks]
    offsets = " ".join(map(str, accumulate(map(len, texts), initial=0)))
    facts = f'data-offsets="{offsets}"' + (f' data-width="{element.width}"' if element.width > 1 else "")
    start = f'<script type="application/octet-stream" id="{html.escape(element.name)}" {facts}>'
    return f"{start}{''.join(texts)}</script>\n"


def _compress(element: Element, block: bytes) -> bytes:
    return compress_text(block) if element.name.endswith(".svg") else compress_numbers(block, element.width)


def compress_numbers(content: bytes, width: int) -> bytes:
    """Return gzip of numbers of some bytes: all their first bytes, then all second ones, and so on.

    It looks for runs of equal bytes only: weights hardly repeat, and this is smaller and faster. The bytes with sign
    and exponent are alike and those with the last digits are noise, so each kind gets a code of its own.

    >>> import gzip
    >>> gzip.decompress(compress_numbers(b"aAbBcC", 2))
    b'abcABC'
    """
    packer = _start_gzip(zlib.Z_RLE)
    planes = np.frombuffer(content, np.uint8).reshape(-1, width).T
    parts = [packer.compress(plane.tobytes()) + packer.flush(zlib.Z_SYNC_FLUSH) for plane in planes[:-1]]
    return b"".join([*parts, packer.compress(planes[-1].tobytes()), packer.flush()])


def compress_text(content: bytes) -> bytes:
    """Return gzip, without the time: the same content gives the same bytes."""
    packer = _start_gzip(zlib.Z_DEFAULT_STRATEGY)
    return packer.compress(content) + packer.flush()


def _start_gzip(strategy: int) -> "zlib._Compress":
    return zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WINDOW, zlib.DEF_MEM_LEVEL, strategy)
