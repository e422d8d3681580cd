"""Print a result in the terminal: the sentence and the tables of its kind."""

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.document import Table
    from headscope.reporting.table_text import TableColumn


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
    for column in columns:
        made.add_column(column.name, justify="right" if column.number else "left", no_wrap=column.number)
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
    if _measure(columns, rows)[-1] > width:
        first = next((column for column in columns if column.ends), None)
        columns = [column if column is first else replace(column, ends=()) for column in columns]
    count = sum(end <= width for end in _measure(columns, rows))
    return columns[:count], [column.name for column in columns[count:]]


def _measure(columns: "list[TableColumn]", rows: int) -> list[int]:
    """Return where each column ends in a line, in letters."""
    sizes = [
        max(len(column.name), *map(len, map(column.line, range(min(rows, len(column.cells)))))) for column in columns
    ]
    return list(accumulate(size + 2 for size in sizes))
