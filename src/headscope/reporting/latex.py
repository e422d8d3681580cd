"""Tables for a paper: LaTeX with booktabs."""

from textwrap import wrap

from headscope.core.document import Table
from headscope.reporting.caption import caption
from headscope.reporting.cells import Column, printed
from headscope.reporting.markup import as_latex, latex_escaped

BETWEEN = 0.036
"""The share of a line that lies between two columns."""

TEXT = 0.75
"""The share of a line that columns of sentences have beside columns of numbers."""

MOST = 8
"""Columns of a table of texts that may run over pages; more make them too narrow."""

HEAD = 16
"""Letters of a heading from which it is broken into lines."""

WIDE = 70
"""Letters of a row from which intervals stand below their values, so that the table need not be made smaller."""

FITTING = r"\ifdim\width>\linewidth\linewidth\else\width\fi"
"""A table's own width, or that of the line where it is too wide."""


def latex(table: Table) -> str:
    """A table with its caption and label; a paper's figures that do not fit beside ours stand below.

    Sentences go into a table that may run over pages.
    """
    grids = printed(table)
    title = f"\\caption{{{as_latex(caption(table))}}}\n\\label{{tab:{table.name}}}"
    if len(grids) == 1 and len(grids[0]) <= MOST and any(each.long for each in grids[0]) and not _numbers(grids[0]):
        return _over_pages(grids[0], title)
    body = _tabular(grids[0])
    if len(grids) > 1:
        body += f"\n\n\\medskip\nPrinted in the paper:\n\n{_tabular(grids[1])}"
    return (
        "% \\usepackage{array, booktabs, graphicx}\n"
        f"\\begin{{table}}\n\\centering\\small\n{title}\n{body}\n\\end{{table}}\n"
    )


def _over_pages(columns: list[Column], title: str) -> str:
    head = f"\\toprule\n{_head(columns)} \\\\\n\\midrule"
    return (
        "% \\usepackage{array, booktabs, longtable}, in one column\n"
        f"{{\\small\n\\begin{{longtable}}{{{_widths(columns)}}}\n{title} \\\\\n"
        f"{head}\n\\endfirsthead\n{head}\n\\endhead\n"
        f"{_rows(columns, stacked=False)}\n\\bottomrule\n\\end{{longtable}}}}\n"
    )


def _tabular(columns: list[Column]) -> str:
    stacked = sum(max(len(_text(each, place)) for place in range(len(each.cells))) for each in columns) > WIDE
    shared = sum(each.long for each in columns)
    sides = "".join(_broken(TEXT / shared) if each.long else _side(each) for each in columns)
    grid = (
        f"\\begin{{tabular}}{{{sides}}}\n\\toprule\n{_stacked_head(columns)} \\\\\n\\midrule\n"
        f"{_rows(columns, stacked=stacked)}\n\\bottomrule\n\\end{{tabular}}"
    )
    tight = "\\setlength{\\tabcolsep}{3pt}" if stacked else ""
    return f"\\resizebox{{{FITTING}}}{{!}}{{{tight}%\n{grid}}}"


def _head(columns: list[Column]) -> str:
    return " & ".join(latex_escaped(each.name) for each in columns)


def _stacked_head(columns: list[Column]) -> str:
    """Long headings in several lines."""
    found = []
    for each in columns:
        lines = [latex_escaped(line) for line in wrap(each.name, HEAD, break_long_words=False, break_on_hyphens=False)]
        below = r" \\ ".join(lines)
        found.append(f"\\shortstack[{_side(each)}]{{{below}}}" if len(lines) > 1 else below)
    return " & ".join(found)


def _widths(columns: list[Column]) -> str:
    """A width for each column: more for longer texts, but not as much more as they are longer."""
    needed = [max(len(each.name), *map(len, each.cells)) ** 0.5 for each in columns]
    share = (1 - BETWEEN * len(columns)) / sum(needed)
    return "".join(_broken(share * each) for each in needed)


def _broken(share: float) -> str:
    """A column of so much of a line, whose texts are broken into lines."""
    return f">{{\\raggedright\\arraybackslash}}p{{{share:.3f}\\linewidth}}"


def _numbers(columns: list[Column]) -> bool:
    return any(each.number for each in columns)


def _side(column: Column) -> str:
    return "r" if column.number else "l"


def _rows(columns: list[Column], *, stacked: bool) -> str:
    return "\n".join(
        " & ".join(_cell(each, place, stacked=stacked) for each in columns) + (r" \\[3pt]" if stacked else r" \\")
        for place in range(len(columns[0].cells))
    )


def _cell(column: Column, place: int, *, stacked: bool) -> str:
    ends = column.ends[place] if column.ends else ""
    if stacked and ends:
        below = f"\\scriptsize {latex_escaped(ends)}"
        return f"\\shortstack[r]{{{latex_escaped(column.cells[place])}\\\\{{{below}}}}}"
    return latex_escaped(_text(column, place))


def _text(column: Column, place: int) -> str:
    """The cell in one line."""
    ends = column.ends[place] if column.ends else ""
    return " ".join(filter(None, (column.cells[place], ends)))
