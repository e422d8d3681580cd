"""A Document as a folder: the page, and every table and figure as files."""

from pathlib import Path
from typing import TypeVar

from headscope.core.document import Document, Picture, Table
from headscope.core.errors import OutputError
from headscope.plotting.export import write_figure
from headscope.reporting.latex import latex
from headscope.reporting.page import LARGEST, MARK, page
from headscope.results.atomic import atomic_path

Kind = TypeVar("Kind", Table, Picture)

PAGE = "report.html"
FILES = {"figures": {".pdf", ".svg"}, "tables": {".csv", ".tex"}}
"""The folders of a report, and the endings of what lies in them."""


def write(document: Document, out: str | Path) -> Path:
    """Write the folder, whole or not at all, and give the path of its page; an older report there is replaced."""
    folder = Path(out)
    check_place(folder)
    place = folder.resolve()
    with atomic_path(place) as part:
        part.mkdir()
        _write_tables(document, part)
        (part / PAGE).write_text(page(document, _write_figures(document, part)), encoding="utf-8", newline="\n")
    return folder / PAGE


def _write_tables(document: Document, part: Path) -> None:
    for table in _of(document, Table):
        folder = part / "tables"
        folder.mkdir(exist_ok=True)
        frames = {f"{table.name}.csv": table.frame, f"{table.name}.paper.csv": table.theirs}
        for name, frame in frames.items():
            if frame is not None:
                named = any(each is not None for each in frame.index.names)
                frame.to_csv(folder / name, index=named, lineterminator="\n", encoding="utf-8")
        (folder / f"{table.name}.tex").write_text(latex(table), encoding="utf-8", newline="\n")


def _write_figures(document: Document, part: Path) -> dict[str, tuple[str, bytes]]:
    """The files, and what of each goes into the page: the drawing, or its pixels where those are fewer bytes."""
    found = {}
    for picture in _of(document, Picture):
        folder = part / "figures"
        folder.mkdir(exist_ok=True)
        for kind in ("pdf", "svg"):
            write_figure(picture.figure, kind, folder / f"{picture.name}.{kind}")
        drawing = (folder / f"{picture.name}.svg").read_bytes()
        found[picture.name] = ("svg+xml", drawing) if len(drawing) <= LARGEST else ("png", _pixels(picture, part))
    return found


def _pixels(picture: Picture, part: Path) -> bytes:
    """About two for each pixel of a page."""
    path = part / "pixels.png"
    write_figure(picture.figure, "png", path)
    content = path.read_bytes()
    path.unlink()
    return content


def _of(document: Document, kind: type[Kind]) -> list[Kind]:
    return [part for section in document.sections for part in section.parts if isinstance(part, kind)]


def check_place(folder: Path) -> None:
    """Refuse to take the place of anything that no report wrote."""
    place = folder.resolve()
    if place == Path.cwd():
        raise OutputError(
            f"A report is a folder of its own, but '{folder}' is the folder that you are in. Name a new one."
        )
    if place.exists() and not place.is_dir():
        raise OutputError(f"A report is a folder, but {folder} is a file. Give the name of a folder.")
    if place.is_dir() and (other := _foreign(place)):
        raise OutputError(
            f"Cannot write the report to {folder}: that folder holds {other}, which no report wrote. Give another "
            "folder, or move it away."
        )


def _foreign(place: Path) -> str:
    """Something in a folder that is not part of a report of ours, or nothing."""
    inside = sorted(place.iterdir())
    if not inside:
        return ""
    if not (place / PAGE).is_file() or MARK not in (place / PAGE).read_text(encoding="utf-8", errors="replace")[:2000]:
        return f"'{inside[0].name}'"
    for each in inside:
        if each.name == PAGE:
            continue
        if each.name not in FILES or not each.is_dir():
            return f"'{each.name}'"
        for path in sorted(each.iterdir()):
            if path.suffix not in FILES[each.name] or not path.is_file():
                return f"'{each.name}/{path.name}'"
    return ""
