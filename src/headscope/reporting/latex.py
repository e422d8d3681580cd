"""Tables for a paper: LaTeX with booktabs."""

from headscope.core.document import Table
from headscope.reporting.caption import caption
from headscope.reporting.cells import Column, printed
from headscope.reporting.markup import as_latex, latex_escaped

TEXT = 0.75
"""The share of a line that columns of sentences divide among them, the longer ones getting more."""

ENOUGH = 160
"""Letters from which a longer sentence gets no more."""

FITTING = r"\ifdim\width>\linewidth\linewidth\else\width\fi"
"""A table's own width, or that of the line where it is too wide."""


def latex(table: Table) -> str:
    """A table environment with its caption and label; a paper's figures that do not fit beside ours stand below."""
    grids = printed(table)
    body = _tabular(grids[0])
    if len(grids) > 1:
        body += f"\n\n\\medskip\nPrinted in the paper:\n\n{_tabular(grids[1])}"
    return (
        "% \\usepackage{array, booktabs, graphicx}\n"
        "\\begin{table}\n\\centering\\small\n"
        f"\\caption{{{as_latex(caption(table))}}}\n\\label{{tab:{table.name}}}\n"
        f"{body}\n"
        "\\end{table}\n"
    )


def _tabular(columns: list[Column]) -> str:
    needed = [min(max(map(len, each.cells)), ENOUGH) if each.long else 0 for each in columns]
    sides = "".join(_side(each, wide / max(sum(needed), 1)) for each, wide in zip(columns, needed, strict=True))
    head = " & ".join(latex_escaped(each.name) for each in columns)
    rows = "\n".join(_row(columns, place) for place in range(len(columns[0].cells)))
    grid = f"\\begin{{tabular}}{{{sides}}}\n\\toprule\n{head} \\\\\n\\midrule\n{rows}\n\\bottomrule\n\\end{{tabular}}"
    return (
        f"\\resizebox{{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}}{{!}}{{%\n{grid}}}"  # only if too wide
    )


def _side(column: Column, share: float) -> str:
    if column.long:
        return f">{{\\raggedright\\arraybackslash}}p{{{TEXT * share:.2f}\\linewidth}}"
    return "r" if column.number else "l"


def _row(columns: list[Column], place: int) -> str:
    return " & ".join(_cell(each, place) for each in columns) + r" \\"


def _cell(column: Column, place: int) -> str:
    ends = column.ends[place] if column.ends else ""
    return latex_escaped(" ".join(filter(None, (column.cells[place], ends))))
