"""Tables for a paper: LaTeX with booktabs."""

from headscope.core.document import Table
from headscope.reporting.caption import caption
from headscope.reporting.cells import Column, printed
from headscope.reporting.markup import as_latex, latex_escaped


def latex(table: Table) -> str:
    """A table environment with its caption and label; a paper's figures that do not fit beside ours stand below."""
    grids = printed(table)
    body = _tabular(grids[0])
    if len(grids) > 1:
        body += f"\n\n\\medskip\nPublished figures:\n\n{_tabular(grids[1])}"
    return (
        "% \\usepackage{booktabs}\n"
        "\\begin{table}\n\\centering\n"
        f"\\caption{{{as_latex(caption(table))}}}\n\\label{{tab:{table.name}}}\n"
        f"{body}\n"
        "\\end{table}\n"
    )


def _tabular(columns: list[Column]) -> str:
    sides = "".join("r" if each.number else "l" for each in columns)
    head = " & ".join(latex_escaped(each.name) for each in columns)
    rows = "\n".join(_row(columns, place) for place in range(len(columns[0].cells)))
    return f"\\begin{{tabular}}{{{sides}}}\n\\toprule\n{head} \\\\\n\\midrule\n{rows}\n\\bottomrule\n\\end{{tabular}}"


def _row(columns: list[Column], place: int) -> str:
    return " & ".join(_cell(each, place) for each in columns) + r" \\"


def _cell(column: Column, place: int) -> str:
    ends = column.ends[place] if column.ends else ""
    return latex_escaped(" ".join(filter(None, (column.cells[place], ends))))
