"""`hs.show`: a figure in a notebook, or as a page in the browser."""

import tempfile
import webbrowser
from pathlib import Path
from typing import Any

from headscope.engine.progress import in_notebook
from headscope.plotting.draw import draw
from headscope.results.store import save


def show(what: Any, figure: str = "head_grid", **options: Any) -> Path | None:
    """Show a figure in a notebook; elsewhere open it as an HTML page in the browser, and return its path.

    The arguments are those of `draw`.

    >>> hs.show(hs.view(trace, "raw"), "matrix", layer=3, head=7).suffix
    '.html'
    """
    picture = draw(what, figure, **options)
    if in_notebook():
        from IPython.display import SVG, display

        with tempfile.TemporaryDirectory() as folder:
            path = save(picture, Path(folder) / "picture.svg")
            display(SVG(path.read_text(encoding="utf-8")))
        return None
    page = Path(tempfile.mkdtemp(prefix="headscope-")) / "maps.html"
    save(picture, page)
    webbrowser.open(page.as_uri())
    return page
