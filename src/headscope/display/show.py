"""`hs.show`: the viewer or a figure, in a notebook or as a page in the browser."""

import tempfile
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING, Any

import xarray as xr

from headscope.core.errors import MissingExtra, UnknownName, unknown_name
from headscope.core.options import list_options
from headscope.core.progress import in_notebook
from headscope.display.embed import embed_svg
from headscope.display.notebook import in_marimo
from headscope.display.options import ViewerOptions
from headscope.display.state import make_state, to_fragment
from headscope.plotting.draw import draw
from headscope.results.store import save

if TYPE_CHECKING:
    from headscope.viewer.source import Source


@dataclass(frozen=True)
class ViewerPage:
    """The viewer as a page, opened in the browser."""

    path: Path
    url: str

    def write_page(self, path: Path) -> None:
        """Copy the page; `hs.save(shown, "page.html")` calls this."""
        copyfile(self.path, path)


def show(what: Any, figure: Any = None, **options: Any) -> Any:
    """Show maps or a result in the viewer, or a figure of them: in a notebook, or elsewhere as a page in the browser.

    The viewer shows every head through every lens that it is given. In a notebook it is displayed at once and returned:
    `viewer.layer`, `viewer.head`, `viewer.lens`, `viewer.view` and `viewer.token` are what is chosen in it, and can be
    set and observed. Elsewhere a page is written to a temporary folder; what is returned has its `path`.

    With the name of a figure, that figure is shown, as `hs.draw` draws it: in a notebook as sharp as a PDF, and never
    wider than its cell; elsewhere as a page, whose path is returned.

    Parameters
    ----------
    what
        Maps, several Maps in a list, or in a dict under the names of models; a Trace, which is shown through raw,
        effective and norm-based attention; a result of any kind, such as that of `hs.measure`. With a figure, anything
        that `hs.draw` draws.
    figure
        The name of a figure. Default: the viewer.
    options
        Of the viewer, what it shows at first: `view`, `lens`, `layer`, `head`, `token`, `sheet` and `example`. Of a
        figure, its parameters and other options of `hs.draw`.

    >>> hs.show(trace, layer=3, head=7).path.suffix
    '.html'
    >>> hs.show(hs.view(trace, "raw"), "matrix", layer=3, head=7).suffix
    '.html'
    """
    if figure is not None or isinstance(what, xr.DataArray):
        return _show_figure(what, figure, options)
    chosen = _read_options(options)
    return _show_viewer(_make_source(what, chosen.example), chosen)


def _show_figure(what: Any, figure: Any, options: dict[str, Any]) -> Path | None:
    drawn = draw(what, figure, **options)
    if in_notebook():
        from IPython.display import HTML, display

        display(HTML(embed_svg(drawn)))
        return None
    page = _make_folder() / "maps.html"
    save(drawn, page)
    webbrowser.open(page.as_uri())
    return page


def _read_options(options: dict[str, Any]) -> ViewerOptions:
    """Return the options of the viewer; an unknown one may be meant for a figure."""
    known = [item.name for item in list_options(ViewerOptions)]
    for name in options:
        if name not in known:
            error = unknown_name("option of the viewer", name, known)
            raise UnknownName(f"{error} For a figure, name it: hs.show(maps, 'matrix', {name}=…).")
    return ViewerOptions(**options)


def _make_source(what: Any, example: int) -> "Source":
    from headscope.viewer.source import make_source

    if not isinstance(what, xr.Dataset):
        from headscope.core.importance import Importances  # which loads torch

        what = what.to_dataset() if isinstance(what, Importances) else what
    return make_source(what, example=example)


def _show_viewer(source: "Source", options: ViewerOptions) -> Any:
    """Return the viewer as a widget, which a notebook of IPython shows at once, or as a page."""
    if in_marimo():
        return _make_widget(source, options)
    if in_notebook():
        viewer = _make_widget(source, options)
        viewer.show_now()
        return viewer
    return _open_page(source, make_state(source.header(), options))


def _make_widget(source: "Source", options: ViewerOptions) -> Any:
    """Return the widget; without the extra, a picture that says how to get it."""
    try:
        from headscope.display.widget import ViewerWidget
    except MissingExtra as error:
        from headscope.display.still import StillViewer

        return StillViewer(source, make_state(source.header(), options), str(error))
    return ViewerWidget(source, options)


def _open_page(source: "Source", state: dict[str, Any]) -> ViewerPage:
    from headscope.viewer.page import write_viewer_page

    page = _make_folder() / "viewer.html"
    write_viewer_page(source, page)
    shown = ViewerPage(page, f"{page.as_uri()}#{to_fragment(state)}")
    webbrowser.open(shown.url)
    return shown


def _make_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="headscope-"))
