"""Write figures as PDF, SVG, PNG or a self-contained HTML page."""

import html
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from headscope.core.errors import DataWarning
from headscope.plotting import canvas, fonts, theme

FIXED_METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {"Software": None},
}
"""Dates and versions are left out, so that the same figure gives the same bytes."""


def write_figure(figure: Figure, kind: str, path: Path) -> None:
    """Write a figure as PDF, SVG or PNG; warn about characters without a glyph in PDF and PNG."""
    missing = fonts.missing_glyphs(figure)
    if missing and kind != "svg":
        warnings.warn(_describe_missing(missing), DataWarning, stacklevel=4)  # points at the caller of save
    path.write_bytes(render(figure, kind, as_text=bool(missing) and kind == "svg"))


def write_page(figure: Figure, path: Path) -> None:
    """Write a figure as an HTML page without scripts or external files."""
    svg = render(figure, "svg", as_text=bool(fonts.missing_glyphs(figure))).decode()
    picture = svg[svg.index("<svg") :]
    path.write_text(_PAGE.format(title=html.escape(_title(figure)), picture=picture), encoding="utf-8")


def render(figure: Figure, kind: str, *, as_text: bool = False) -> bytes:
    """Return the bytes of a figure; `as_text` keeps texts as SVG text, in the layout of their code points."""
    content = io.BytesIO()
    with theme.apply(), canvas.keep_layout(figure), _keep_text() if as_text else nullcontext():
        figure.savefig(content, format=kind, metadata=FIXED_METADATA[kind])
    return content.getvalue()


@contextmanager
def _keep_text() -> Iterator[None]:
    with matplotlib.rc_context({"svg.fonttype": "none"}), fonts.browser_fonts(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing")
        yield


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 1.5rem; font-family: sans-serif; background: Canvas; color: CanvasText; }}
figure {{ margin: 0; padding: 1rem; width: max-content; background: #fff; border-radius: 6px; }}
</style>
</head>
<body>
<figure role="img" aria-label="{title}">
{picture}</figure>
</body>
</html>
"""


def _title(figure: Figure) -> str:
    """Return the title of the figure, or of its first panel that has one."""
    titles = [figure.get_suptitle(), *(ax.get_title(loc) for ax in figure.axes for loc in ("center", "left"))]
    return next((" ".join(title.split()) for title in titles if title), "headscope")


def _describe_missing(letters: set[str]) -> str:
    count = f"{len(letters)} characters have" if len(letters) > 1 else "1 character has"
    return (
        f"{count} no glyph in any font that is installed here, so the figure shows code points such as "
        f"U+{ord(min(letters)):04X}. Save it as .svg or .html, which use the browser's fonts, or install a font that "
        f"has them, such as Noto Sans CJK, and remove matplotlib's list of fonts in {matplotlib.get_cachedir()}."
    )
