"""A Table in HTML."""

import html

from headscope.core.document import Table
from headscope.reporting.cells import Column, printed

VERDICTS = {"holds": "yes", "does not hold": "no"}
"""How cells of a column `verdict` are coloured, by how they begin; all others are in between."""


def grid(table: Table, number: str) -> str:
    """The rows and columns; a paper's figures that do not fit beside ours stand below them."""
    grids = [_grid(each, f"{number}, {name}") for each, name in zip(printed(table), ("ours", "theirs"), strict=False)]
    return '\n<p class="whose">Printed in the paper</p>\n'.join(grids)


def _grid(columns: list[Column], label: str) -> str:
    head = "".join(f'<th scope="col"{_kind(each)}>{html.escape(each.name)}</th>' for each in columns)
    rows = "\n".join(_row(columns, place) for place in range(len(columns[0].cells)))
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{html.escape(label)}">\n<table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _row(columns: list[Column], place: int) -> str:
    """A row; one that begins a group of rows is set apart."""
    keys = [each for each in columns if each.header]
    group = len(keys) > 1 and place > 0 and keys[0].cells[place] != keys[0].cells[place - 1]
    cells = "".join(_cell(each, place) for each in columns)
    return f'<tr class="group">{cells}</tr>' if group else f"<tr>{cells}</tr>"


def _cell(column: Column, place: int) -> str:
    text = html.escape(column.cells[place])
    if column.header:
        return f'<th scope="row"{_kind(column)}>{text}</th>'
    if column.name.startswith("verdict"):
        said = column.cells[place].lower()
        kind = next((VERDICTS[each] for each in VERDICTS if said.startswith(each)), "partly")
        return f'<td><span class="verdict {kind}">{text}</span></td>'
    ends = column.ends[place] if column.ends else ""
    more = f' <span class="ends">{html.escape(ends)}</span>' if ends else ""
    inner = f'<span class="value">{text}</span>{more}' if column.number else text
    return f"<td{_kind(column)}>{inner}</td>"


def _kind(column: Column) -> str:
    named = (("number", column.number), ("theirs", column.theirs), ("long", column.long))
    kinds = " ".join(name for name, on in named if on)
    return f' class="{kinds}"' if kinds else ""
