"""A Document as a Markdown page."""

import html
import re
from collections.abc import Mapping

from headscope.core.document import Document, Paragraph, Part, Picture, Table
from headscope.reporting.html_page import PartNumbers
from headscope.reporting.markup import full_caption
from headscope.reporting.references import find_references
from headscope.reporting.table_text import TableColumn, format_table


def to_markdown(
    document: Document, pictures: Mapping[str, str] | None = None, *, level: int = 1, captions: bool = True
) -> str:
    """Return the page; `pictures` are the paths of its figures by name, figures/NAME.svg by default.

    The title is a heading of `level`. Without `captions` there are only tables and figures, as parts of a larger page
    that says what they show.
    """
    part_numbers = PartNumbers(document)
    parts = [f"{'#' * level} {document.title}", document.lead]
    for section in document.sections:
        parts.append(f"{'#' * (level + 1)} {section.title}")
        for part in section.parts:
            if captions and not isinstance(part, Paragraph):
                parts.append(f"**{part_numbers.next(part)}.** {full_caption(part)}")
            parts.append(_render(part, pictures or {}))
    if cited := find_references(document.references):
        parts.append(f"{'#' * (level + 1)} References")
        texts = (html.unescape(re.sub(r"<[^>]+>", "", reference.citation)) for reference in cited)
        parts.append("\n".join(f"- {text}" for text in texts))
    return "\n\n".join(part for part in parts if part) + "\n"


def table_to_markdown(table: Table) -> str:
    """Return the rows and columns of a table; a paper's numbers that do not fit beside ours follow below."""
    return "\n\nPrinted in the paper:\n\n".join(map(_render_grid, format_table(table)))


def _render(part: Part, pictures: Mapping[str, str]) -> str:
    if isinstance(part, Paragraph):
        return part.text
    if isinstance(part, Picture):
        return f"![{part.caption.partition(';')[0].rstrip('.')}]({pictures.get(part.name, f'figures/{part.name}.svg')})"
    return table_to_markdown(part)


def _render_grid(columns: list[TableColumn]) -> str:
    lines = [_render_row([column.name for column in columns]), "|---" * len(columns) + "|"]
    for row in range(len(columns[0].cells)):
        lines.append(_render_row([column.line(row) for column in columns]))
    return "\n".join(lines)


def _render_row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
