"""Write a Document as a folder: the page, and every table and figure as files."""

from pathlib import Path
from typing import TypeVar

from headscope.core.document import Document, Picture, Table
from headscope.core.errors import InputError, OutputError
from headscope.plotting.export import render, write_figure
from headscope.reporting.html_page import GENERATOR, MAX_SVG_BYTES, document_to_html
from headscope.reporting.latex_table import table_to_latex
from headscope.results.atomic import REPLACE, atomic_path, check_name
from headscope.results.tables import write_cells

Kind = TypeVar("Kind", Table, Picture)

PAGE = "report.html"
FILES = {"figures": {".pdf", ".svg"}, "tables": {".csv", ".tex"}}
"""The folders of a report, and the endings of their files."""


def write_document(document: Document, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write the folder atomically, with `overwrite` in place of an older report, and return the path of its page."""
    folder = Path(out)
    check_folder(folder, overwrite=overwrite)
    with atomic_path(folder.resolve()) as temporary:
        temporary.mkdir()
        _write_tables(document, temporary)
        page = document_to_html(document, _write_figures(document, temporary))
        (temporary / PAGE).write_text(page, encoding="utf-8", newline="\n")
    return folder / PAGE


def _write_tables(document: Document, root: Path) -> None:
    for table in _parts_of(document, Table):
        folder = root / "tables"
        folder.mkdir(exist_ok=True)
        frames = {f"{table.name}.csv": table.frame, f"{table.name}.paper.csv": table.theirs}
        for name, frame in frames.items():
            if frame is not None:
                index = any(label is not None for label in frame.index.names)
                write_cells(frame, folder / name, index=index)
        (folder / f"{table.name}.tex").write_text(table_to_latex(table), encoding="utf-8", newline="\n")


def _write_figures(document: Document, root: Path) -> dict[str, tuple[str, bytes]]:
    """Write the files, and return the image type and bytes for the page: SVG, or PNG where the SVG is too large."""
    images = {}
    for picture in _parts_of(document, Picture):
        folder = root / "figures"
        folder.mkdir(exist_ok=True)
        for ending in ("pdf", "svg"):
            write_figure(picture.figure, ending, folder / f"{picture.name}.{ending}")
        svg = (folder / f"{picture.name}.svg").read_bytes()
        images[picture.name] = ("svg+xml", svg) if len(svg) <= MAX_SVG_BYTES else ("png", render(picture.figure, "png"))
    return images


def _parts_of(document: Document, kind: type[Kind]) -> list[Kind]:
    return [part for section in document.sections for part in section.parts if isinstance(part, kind)]


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Raise an error where a report is in the way, unless it may be replaced, or anything else."""
    check_name(folder)
    path = folder.resolve()
    if path == Path.cwd():
        raise OutputError(f"A report is a folder of its own, but '{folder}' is the current folder. Give a new name.")
    if path.exists() and not path.is_dir():
        raise OutputError(f"A report is a folder, but {folder} is a file. Give the name of a folder.")
    if path.is_dir() and (other := _find_foreign(path)):
        raise OutputError(
            f"Cannot write the report to {folder}: that folder holds {other}, which no report wrote. Give another "
            "folder, or move it away."
        )
    if not overwrite and (folder / PAGE).is_file():
        raise InputError(f"{folder} holds a report already. {REPLACE.format('folder')}")


def _find_foreign(folder: Path) -> str:
    """Return the quoted name of a file that is not part of a report, or an empty string."""
    inside = sorted(folder.iterdir())
    if not inside:
        return ""
    page = folder / PAGE
    if not page.is_file() or GENERATOR not in page.read_text(encoding="utf-8", errors="replace")[:2000]:
        return f"'{inside[0].name}'"
    for entry in inside:
        if entry.name == PAGE:
            continue
        if entry.name not in FILES or not entry.is_dir():
            return f"'{entry.name}'"
        for path in sorted(entry.iterdir()):
            if path.suffix not in FILES[entry.name] or not path.is_file():
                return f"'{entry.name}/{path.name}'"
    return ""
