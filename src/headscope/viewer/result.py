"""The sentence, tables and figures of a result of any kind, for the viewer."""

from dataclasses import dataclass, replace
from typing import Any

import xarray as xr

from headscope.core.document import Document, Picture, Section, Table, list_parts
from headscope.core.errors import InputError
from headscope.core.kind import find_kind
from headscope.core.spec import entry_name
from headscope.plotting import fonts
from headscope.plotting.draw import draw
from headscope.plotting.export import render
from headscope.reporting.markup import full_caption
from headscope.reporting.report import build_document
from headscope.reporting.table_text import format_table


@dataclass(frozen=True)
class ShownResult:
    """A report whose tables are in the header, and whose figures are drawn as SVG when they are asked for."""

    kind: str
    document: Document

    def describe(self) -> dict[str, Any]:
        """Return what the header says of it."""
        tables = [_describe_table(table) for table in list_parts(self.document.sections, Table)]
        figures = [
            {"name": picture.name, "caption": full_caption(picture), "block": f"result/{picture.name}.svg"}
            for picture in list_parts(self.document.sections, Picture)
        ]
        return {"kind": self.kind, "lead": self.document.lead, "tables": tables, "figures": figures}

    def draw(self, name: str) -> bytes | None:
        """Return the SVG of a figure; None if there is none of this name."""
        for picture in list_parts(self.document.sections, Picture):
            if picture.name == name:
                return render(picture.figure, "svg", as_text=bool(fonts.missing_glyphs(picture.figure)))
        return None


def show_dataset(data: xr.Dataset) -> ShownResult:
    """Return what the kind of a result shows of it."""
    document = build_document({"result": data})
    pictures = list_parts(document.sections, Picture)
    return ShownResult(entry_name(type(find_kind(data))), document if pictures else _add_figure(document, data))


def _add_figure(document: Document, data: xr.Dataset) -> Document:
    """Return a report with the default figure of its result, where that can be drawn."""
    try:
        figure = draw(data)
    except InputError:
        return document
    counts = [table.n for table in list_parts(document.sections, Table)]
    picture = Picture("figure", "The result as hs.draw draws it.", figure, counts[0] if counts else "")
    return replace(document, sections=[*document.sections, Section("Figure", [picture])])


def _describe_table(table: Table) -> dict[str, Any]:
    columns = format_table(table)[0]
    rows = [[column.line(row) for column in columns] for row in range(len(table.frame))]
    names = [column.name for column in columns]
    return {"name": table.name, "caption": full_caption(table), "n": str(table.n), "columns": names, "rows": rows}
