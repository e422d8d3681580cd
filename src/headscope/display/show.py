"""`hs.show`: a figure in a notebook, or as a page in the browser."""

import html
import tempfile
import webbrowser
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

from matplotlib.figure import Figure

from headscope.engine.progress import in_notebook
from headscope.plotting import fonts
from headscope.plotting.draw import draw
from headscope.plotting.export import render
from headscope.results.store import save

SAFE = " !$'()*+,/:;=?@[]^`{|}~"
"""What need not be escaped in the address of a picture between double quotes."""


def show(what: Any, figure: Any = None, **options: Any) -> Path | None:
    """Show a figure in a notebook; elsewhere open it as an HTML page in the browser, and return its path.

    In a notebook the figure is as sharp as a PDF, and never wider than its cell.

    Parameters
    ----------
    what, figure
        As for `hs.draw`: what is drawn, and the name of a figure.
    options
        Parameters of the figure, and other options of `hs.draw`.

    >>> hs.show(hs.view(trace, "raw"), "matrix", layer=3, head=7).suffix
    '.html'
    """
    picture = draw(what, figure, **options)
    if in_notebook():
        from IPython.display import HTML, display

        display(HTML(embed_svg(picture)))
        return None
    page = Path(tempfile.mkdtemp(prefix="headscope-")) / "maps.html"
    save(picture, page)
    webbrowser.open(page.as_uri())
    return page


def embed_svg(figure: Figure) -> str:
    """Return a figure as an HTML image that shrinks to the width of the page."""
    svg = render(figure, "svg", as_text=bool(fonts.missing_glyphs(figure)))
    return _embed(f"data:image/svg+xml,{quote(svg, SAFE)}", round(figure.get_figwidth() * 96), "figure")


def embed_png(content: bytes, width: int, label: str) -> str:
    """Return a PNG as an HTML image that shrinks to the width of the page."""
    return _embed(f"data:image/png;base64,{b64encode(content).decode()}", width, label)


def _embed(source: str, width: int, label: str) -> str:
    """Return an image `width` pixels wide, or as wide as the page; on white, also where the page is dark."""
    style = f"width: {width}px; max-width: 100%; height: auto; background: #fff"
    return f'<img src="{source}" alt="{html.escape(label)}" style="{style}">'
