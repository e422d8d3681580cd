"""`hs.show`: a figure or a result in a notebook, or a figure as a page in the browser."""

import tempfile
import webbrowser
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.display.embed import embed_svg
from headscope.engine.progress import in_notebook
from headscope.plotting.draw import draw
from headscope.results.store import save


def show(what: Any, figure: Any = None, **options: Any) -> Path | None:
    """Show a figure in a notebook; elsewhere open it as an HTML page in the browser, and return its path.

    In a notebook the figure is as sharp as a PDF, and never wider than its cell. A result, such as that of
    `hs.measure`, is shown there with a sentence on what it is and its first table, unless a figure is named.

    Parameters
    ----------
    what, figure
        As for `hs.draw`: what is drawn, and the name of a figure.
    options
        Parameters of the figure, and other options of `hs.draw`.

    >>> hs.show(hs.view(trace, "raw"), "matrix", layer=3, head=7).suffix
    '.html'
    """
    if in_notebook():
        from IPython.display import HTML, display

        whole = isinstance(what, xr.Dataset) and figure is None and not options
        display(HTML(_make_card(what) if whole else embed_svg(draw(what, figure, **options))))
        return None
    page = Path(tempfile.mkdtemp(prefix="headscope-")) / "maps.html"
    save(draw(what, figure, **options), page)
    webbrowser.open(page.as_uri())
    return page


def _make_card(data: xr.Dataset) -> str:
    from headscope.display.cards import make_card  # which loads torch

    return make_card(data)
