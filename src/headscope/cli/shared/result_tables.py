"""Print a result in the terminal: the sentence and the tables of its kind."""

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table as RichTable

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.document import Table
    from headscope.reporting.table_text import TableColumn

TEXT_SHARE = 4
"""Where a line is full, a column of texts has one of so many parts of it, and longer texts are broken."""


def print_result(console: Console, data: "xr.Dataset", *, rows: int = 10, sections: int | None = 1) -> None:
    """Print the lead of a result, and of its first sections, or of all, the paragraphs and the first table."""
    from headscope.core.document import Paragraph, SectionContext, Table, list_parts
    from headscope.core.kind import find_kind

    kind = find_kind(data)
    print_text(console, kind.lead(data))
    for section in kind.sections(data, SectionContext(draws=False))[0][:sections]:
        for paragraph in list_parts([section], Paragraph):
            print_text(console, paragraph.text)
        for table in list_parts([section], Table)[:1]:
            print_table(console, table, rows)


def print_table(console: Console, table: "Table", rows: int) -> None:
    """Print the first rows of a table, as many of its columns as fit, and its caption."""
    from headscope.reporting.table_text import format_table

    columns, hidden = _fit(format_table(table)[0], rows, console.width)
    made = RichTable(box=None, padding=(0, 2, 0, 0))
    for column, size in zip(columns, _measure(columns, rows, console.width), strict=True):
        justify: JustifyMethod = "right" if column.number else "left"
        made.add_column(column.name, justify=justify, no_wrap=column.number, max_width=size - 2, overflow="fold")
    for row in range(min(rows, len(table.frame))):
        made.add_row(*(escape(column.line(row)) for column in columns))
    console.print(made)
    more = [f"{rows} of {len(table.frame):,} rows are shown."] if len(table.frame) > rows else []
    more += [f"Not shown: {', '.join(hidden)}."] if hidden else []
    print_text(console, " ".join([f"{table.caption.rstrip('.')}.", *more]))


def print_text(console: Console, text: str) -> None:
    """Print a paragraph of a report without its marks."""
    console.print(escape(text.replace("`", "").replace("**", "")))


def _fit(columns: "list[TableColumn]", rows: int, width: int) -> "tuple[list[TableColumn], list[str]]":
    """Return the columns that fit into a line, with one interval where it is full, and the names of the others."""
    if sum(_measure(columns, rows, width)) > width:
        first = next((column for column in columns if column.ends), None)
        columns = [column if column is first else replace(column, ends=()) for column in columns]
    count = sum(end <= width for end in accumulate(_measure(columns, rows, width)))
    return columns[:count], [column.name for column in columns[count:]]


def _measure(columns: "list[TableColumn]", rows: int, width: int) -> list[int]:
    """Return the width of each column in cells of a terminal; where a line is full, texts are broken."""
    sizes = [
        max(cell_len(column.name), *(cell_len(column.line(row)) for row in range(min(rows, len(column.cells)))))
        for column in columns
    ]
    full = sum(sizes) + 2 * len(sizes) > width
    limit = width // TEXT_SHARE
    return [
        (min(size, limit) if full and not column.number else size) + 2
        for size, column in zip(sizes, columns, strict=True)
    ]
