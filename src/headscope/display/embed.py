"""Pictures as parts of an HTML page, which shrink to its width."""

import html
import re
from base64 import b64encode
from urllib.parse import quote

from matplotlib.figure import Figure

from headscope.plotting import fonts
from headscope.plotting.export import render

SAFE = " !$'()*+,/:;=?@[]^`{|}~"
"""What need not be escaped in the address of a picture between double quotes."""


def embed_svg(figure: Figure) -> str:
    """Return a figure as an HTML image that shrinks to the width of the page."""
    svg = render(figure, "svg", as_text=bool(fonts.missing_glyphs(figure)))
    return _embed(f"data:image/svg+xml,{quote(svg, SAFE)}", round(figure.get_figwidth() * 96), "figure")


def embed_svg_text(svg: bytes) -> str:
    """Return an SVG of `render` as an HTML image that shrinks to the width of the page."""
    found = re.search(rb'<svg [^>]*?width="([0-9.]+)pt"', svg)
    width = round(float(found[1]) * 96 / 72) if found else 640
    return _embed(f"data:image/svg+xml,{quote(svg, SAFE)}", width, "figure")


def embed_png(content: bytes, width: int, label: str) -> str:
    """Return a PNG as an HTML image that shrinks to the width of the page."""
    return _embed(f"data:image/png;base64,{b64encode(content).decode()}", width, label)


def _embed(source: str, width: int, label: str) -> str:
    """Return an image `width` pixels wide, or as wide as the page; on white, also where the page is dark."""
    style = f"width: {width}px; max-width: 100%; height: auto; background: #fff"
    return f'<img src="{source}" alt="{html.escape(label)}" style="{style}">'
