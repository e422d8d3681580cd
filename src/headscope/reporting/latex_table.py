"""Tables as LaTeX with booktabs."""

from textwrap import wrap

from headscope.core.document import Table
from headscope.reporting.markup import escape_latex, full_caption, to_latex
from headscope.reporting.table_text import TableColumn, format_table

GAP = 0.036  # between two columns, as a share of the line
TEXT_WIDTH = 0.75  # of columns of sentences beside columns of numbers, as a share of the line
MAX_TEXT_COLUMNS = 8  # of a table over several pages
MAX_HEADING = 16  # letters; longer headings are broken into lines
MAX_ROW = 70  # letters; in wider tables intervals are printed below their values
FIT_WIDTH = r"\ifdim\width>\linewidth\linewidth\else\width\fi"


def table_to_latex(table: Table) -> str:
    """Return a table with its caption and label; a paper's numbers that do not fit beside ours follow below.

    A table of sentences may continue over pages.
    """
    grids = format_table(table)
    title = f"\\caption{{{to_latex(full_caption(table))}}}\n\\label{{tab:{table.name}}}"
    columns = grids[0]
    sentences = any(column.long for column in columns) and not any(column.number for column in columns)
    if len(grids) == 1 and len(columns) <= MAX_TEXT_COLUMNS and sentences:
        return _long_table(columns, title)
    body = "\n\n\\medskip\nPrinted in the paper:\n\n".join(map(_tabular, grids))
    return (
        "% \\usepackage{array, booktabs, graphicx}\n"
        f"\\begin{{table}}\n\\centering\\small\n{title}\n{body}\n\\end{{table}}\n"
    )


def _long_table(columns: list[TableColumn], title: str) -> str:
    names = " & ".join(escape_latex(column.name) for column in columns)
    head = f"\\toprule\n{names} \\\\\n\\midrule"
    return (
        "% \\usepackage{array, booktabs, longtable}, in one column\n"
        f"{{\\small\n\\begin{{longtable}}{{{_widths(columns)}}}\n{title} \\\\\n"
        f"{head}\n\\endfirsthead\n{head}\n\\endhead\n"
        f"{_rows(columns, stacked=False)}\n\\bottomrule\n\\end{{longtable}}}}\n"
    )


def _tabular(columns: list[TableColumn]) -> str:
    widths = [max(len(column.line(row)) for row in range(len(column.cells))) for column in columns]
    stacked = sum(widths) > MAX_ROW
    share = TEXT_WIDTH / max(1, sum(column.long for column in columns))
    sides = "".join(_paragraph_column(share) if column.long else _alignment(column) for column in columns)
    grid = (
        f"\\begin{{tabular}}{{{sides}}}\n\\toprule\n{_stacked_head(columns)} \\\\\n\\midrule\n"
        f"{_rows(columns, stacked=stacked)}\n\\bottomrule\n\\end{{tabular}}"
    )
    tight = "\\setlength{\\tabcolsep}{3pt}" if stacked else ""
    return f"\\resizebox{{{FIT_WIDTH}}}{{!}}{{{tight}%\n{grid}}}"


def _stacked_head(columns: list[TableColumn]) -> str:
    """Break long headings into lines."""
    headings = []
    for column in columns:
        lines = wrap(column.name, MAX_HEADING, break_long_words=False, break_on_hyphens=False)
        text = r" \\ ".join(map(escape_latex, lines))
        headings.append(f"\\shortstack[{_alignment(column)}]{{{text}}}" if len(lines) > 1 else text)
    return " & ".join(headings)


def _widths(columns: list[TableColumn]) -> str:
    """Return the columns' widths, by the square root of their longest text."""
    roots = [max(len(column.name), *map(len, column.cells)) ** 0.5 for column in columns]
    share = (1 - GAP * len(columns)) / sum(roots)
    return "".join(_paragraph_column(share * root) for root in roots)


def _paragraph_column(share: float) -> str:
    return f">{{\\raggedright\\arraybackslash}}p{{{share:.3f}\\linewidth}}"


def _alignment(column: TableColumn) -> str:
    return "r" if column.number else "l"


def _rows(columns: list[TableColumn], *, stacked: bool) -> str:
    return "\n".join(
        " & ".join(_cell(column, row, stacked=stacked) for column in columns) + (r" \\[3pt]" if stacked else r" \\")
        for row in range(len(columns[0].cells))
    )


def _cell(column: TableColumn, row: int, *, stacked: bool) -> str:
    ends = column.ends[row] if column.ends else ""
    if stacked and ends:
        below = f"\\scriptsize {escape_latex(ends)}"
        return f"\\shortstack[r]{{{escape_latex(column.cells[row])}\\\\{{{below}}}}}"
    return escape_latex(column.line(row))
