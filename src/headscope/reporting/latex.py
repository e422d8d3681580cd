"""Tables for a paper: LaTeX with booktabs."""

from headscope.core.document import Table
from headscope.reporting.caption import caption
from headscope.reporting.cells import Column, printed
from headscope.reporting.markup import as_latex, latex_escaped

TEXT = 0.75
"""The share of a line that columns of sentences divide among them, the longer ones getting more."""

ENOUGH = 160
"""Letters from which a longer sentence gets no more."""

WIDE = 95
"""Letters of a row from which intervals stand below their values, so that the table need not be made smaller."""

FITTING = r"\ifdim\width>\linewidth\linewidth\else\width\fi"
"""A table's own width, or that of the line where it is too wide."""


def latex(table: Table) -> str:
    """A table with its caption and label; a paper's figures that do not fit beside ours stand below.

    Sentences go into a table that may run over pages.
    """
    grids = printed(table)
    title = f"\\caption{{{as_latex(caption(table))}}}\n\\label{{tab:{table.name}}}"
    if len(grids) == 1 and any(each.long for each in grids[0]):
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
        f"{{\\small\n\\begin{{longtable}}{{{_sides(columns)}}}\n{title} \\\\\n"
        f"{head}\n\\endfirsthead\n{head}\n\\endhead\n"
        f"{_rows(columns, stacked=False)}\n\\bottomrule\n\\end{{longtable}}}}\n"
    )


def _tabular(columns: list[Column]) -> str:
    stacked = sum(max(len(_text(each, place)) for place in range(len(each.cells))) for each in columns) > WIDE
    grid = (
        f"\\begin{{tabular}}{{{_sides(columns)}}}\n\\toprule\n{_head(columns)} \\\\\n\\midrule\n"
        f"{_rows(columns, stacked=stacked)}\n\\bottomrule\n\\end{{tabular}}"
    )
    return f"\\resizebox{{{FITTING}}}{{!}}{{%\n{grid}}}"


def _head(columns: list[Column]) -> str:
    return " & ".join(latex_escaped(each.name) for each in columns)


def _sides(columns: list[Column]) -> str:
    needed = [min(max(map(len, each.cells)), ENOUGH) if each.long else 0 for each in columns]
    return "".join(_side(each, wide / max(sum(needed), 1)) for each, wide in zip(columns, needed, strict=True))


def _side(column: Column, share: float) -> str:
    if column.long:
        return f">{{\\raggedright\\arraybackslash}}p{{{TEXT * share:.2f}\\linewidth}}"
    return "r" if column.number else "l"


def _rows(columns: list[Column], *, stacked: bool) -> str:
    return "\n".join(
        " & ".join(_cell(each, place, stacked=stacked) for each in columns) + r" \\"
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
