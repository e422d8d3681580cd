"""Figures as files: PDF, SVG, PNG or a page that needs nothing else."""

import html
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from headscope.core.errors import DataWarning
from headscope.plotting import fonts, theme

UNDATED: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {"Software": None},
}
"""What matplotlib would write beyond the picture; without it the same picture has the same bytes."""


def write_figure(figure: Figure, kind: str, part: Path) -> None:
    """A figure as PDF, SVG or PNG."""
    lost = fonts.missing(figure)
    if not lost or kind == "svg":
        part.write_bytes(_rendered(figure, kind, as_text=bool(lost)))
        return
    warnings.warn(_lost(lost), DataWarning, stacklevel=3)  # at whoever called save
    part.write_bytes(_rendered(figure, kind))


def write_page(figure: Figure, part: Path) -> None:
    """A page that needs nothing else: no scripts, no network."""
    svg = _rendered(figure, "svg", as_text=bool(fonts.missing(figure))).decode()
    picture = re.sub(r"^.*?(?=<svg)", "", svg, count=1, flags=re.DOTALL)
    part.write_text(_PAGE.format(title=html.escape(_title(figure)), picture=picture), encoding="utf-8")


def _rendered(figure: Figure, kind: str, *, as_text: bool = False) -> bytes:
    """The figure's bytes; `as_text` leaves letters to the browser, in the room that code points took."""
    target = io.BytesIO()
    with theme.applied(), _same_layout(figure):
        if as_text:
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            with matplotlib.rc_context({"svg.fonttype": "none"}), fonts.browser_fonts(), _no_glyph_warnings():
                figure.savefig(target, format=kind, metadata=UNDATED[kind])
        else:
            figure.savefig(target, format=kind, metadata=UNDATED[kind])
    return target.getvalue()


@contextmanager
def _same_layout(figure: Figure) -> Iterator[None]:
    """Put every panel back where it was: a layout that starts from its own result ends a little elsewhere."""
    engine = figure.get_layout_engine()
    places = [(ax, ax.get_position(original=True), ax.get_in_layout()) for ax in figure.axes]
    try:
        yield
    finally:
        if engine is not None:
            figure.set_layout_engine(engine)
            for ax, place, taken in places:
                ax.set_position(place)
                ax.set_in_layout(taken)


@contextmanager
def _no_glyph_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
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
    """The figure's own title, or that of its first panel that has one."""
    titles = [figure.get_suptitle(), *(ax.get_title(loc) for ax in figure.axes for loc in ("center", "left"))]
    return next((" ".join(title.split()) for title in titles if title), "headscope")


def _lost(letters: set[str]) -> str:
    example = f"U+{ord(min(letters)):04X}"
    many = f"{len(letters)} characters have" if len(letters) > 1 else "1 character has"
    return (
        f"{many} no glyph in any font that is installed here, so the figure shows code points such as "
        f"{example}. Save it as .svg or .html, which use the browser's fonts, or install a font that has "
        f"them, such as Noto Sans CJK, and remove matplotlib's list of fonts in {matplotlib.get_cachedir()}."
    )
