"""Files: Datasets as NetCDF, figures as PDF, SVG, PNG or a page."""

import errno
import html
import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import matplotlib
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.errors import DataWarning, InputError, OutputError
from headscope.results import fonts, theme

UNDATED: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {"Software": None},
}
"""What matplotlib would write beyond the picture; without it the same picture has the same bytes."""


def save(what: Any, path: str | Path) -> Path:
    """Write a Dataset (.nc) or a figure (.pdf .svg .png .html), and give the path back.

    The file appears whole or not at all, and the same content has the same bytes. An older file of that name
    stays as it is until the new one is complete.
    """
    path = Path(path)
    write = _writer(what, path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _replacing(path) as part:
            write(part)
    except OSError as error:
        raise OutputError(f"Cannot write {path}: {_reason(error)}.") from error
    return path


def open_result(path: str | Path) -> xr.Dataset:
    """Read a Dataset that `save` wrote; all of it, so that the file is free again."""
    path = Path(path)
    if not path.is_file():
        found = "a folder" if path.is_dir() else "nothing"
        raise InputError(f"Cannot open {path}: there is {found} of that name. Give the path of a .nc file.")
    try:
        data = xr.load_dataset(path, engine="h5netcdf")
    except PermissionError as error:
        raise InputError(f"Cannot open {path}: you may not read it. Ask its owner, or copy it.") from error
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"Cannot open {path}: it is not a NetCDF file that headscope wrote.") from error
    if "headscope" not in data.attrs:
        raise InputError(
            f"Cannot open {path}: it is a NetCDF file, but not one that headscope wrote (it has no attribute "
            "'headscope'). Open it with xarray.open_dataset."
        )
    return data


def _writer(what: Any, path: Path) -> Callable[[Path], None]:
    """What writes this kind of thing under this ending."""
    if isinstance(what, xr.Dataset):
        known: dict[str, Callable[[Path], None]] = {".nc": partial(_write_netcdf, what)}
    elif isinstance(what, Figure):
        known = {f".{kind}": partial(_write_figure, what, kind) for kind in UNDATED}
        known[".html"] = partial(_write_page, what)
    else:
        raise InputError(f"Only a Dataset or a matplotlib figure can be saved, but got a {type(what).__name__}.")
    if path.suffix.lower() not in known:
        kind = "Dataset" if isinstance(what, xr.Dataset) else "figure"
        found = f"ends in '{path.suffix}'" if path.suffix else "has no ending"
        raise OutputError(f"A {kind} is saved as {' '.join(known)}, but '{path.name}' {found}. Change the ending.")
    return known[path.suffix.lower()]


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A new file beside `path` that takes its place at the end, or goes away if anything goes wrong."""
    part = path.with_name(f".headscope-{uuid4().hex[:12]}")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _write_netcdf(data: xr.Dataset, part: Path) -> None:
    try:
        data.to_netcdf(part, engine="h5netcdf", format="NETCDF4")
    except (
        ValueError,
        TypeError,
    ) as error:  # text that HDF5 cannot hold, attributes that are no text or number
        raise OutputError(f"This Dataset does not fit into a NetCDF file: {error}.") from error


def _write_figure(figure: Figure, kind: str, part: Path) -> None:
    lost = fonts.missing(figure)
    if not lost or kind == "svg":
        part.write_bytes(_rendered(figure, kind, as_text=bool(lost)))
        return
    warnings.warn(_lost(lost), DataWarning, stacklevel=3)  # at whoever called save
    part.write_bytes(_rendered(figure, kind))


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


def _write_page(figure: Figure, part: Path) -> None:
    """A page that needs nothing else: no scripts, no network."""
    svg = _rendered(figure, "svg", as_text=bool(fonts.missing(figure))).decode()
    picture = re.sub(r"^.*?(?=<svg)", "", svg, count=1, flags=re.DOTALL)
    part.write_text(_PAGE.format(title=html.escape(_title(figure)), picture=picture), encoding="utf-8")


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
    titles = [figure.get_suptitle(), *(ax.get_title() for ax in figure.axes)]
    return next((" ".join(title.split()) for title in titles if title), "headscope")


def _lost(letters: set[str]) -> str:
    example = f"U+{ord(min(letters)):04X}"
    many = f"{len(letters)} characters have" if len(letters) > 1 else "1 character has"
    return (
        f"{many} no glyph in any font that is installed here, so the figure shows code points such as "
        f"{example}. Save it as .svg or .html, which use the browser's fonts, or install a font that has "
        f"them, such as Noto Sans CJK, and remove matplotlib's list of fonts in {matplotlib.get_cachedir()}."
    )


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the disk is full. Make room, or give a path on another disk"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "you may not write there. Give a path in a folder that is yours"
    return f"{(error.strerror or str(error)).lower()}. Give another path"
