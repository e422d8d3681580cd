"""The texts of a table's cells, the same in HTML, Markdown and LaTeX."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from headscope.core.document import Table
from headscope.core.estimate import interval_names
from headscope.core.prose import format_signed

NEGLIGIBLE = 1e-4
"""Values below this share of the largest number of a column with intervals are printed as 0."""

MAX_CELL_LENGTH = 40
"""Longer cells are sentences, which are broken into lines."""

MISSING = "–"


@dataclass(frozen=True)
class TableColumn:
    """A heading and its cells; `ends` are the intervals of the cells, if any.

    `header` columns name the rows, and `theirs` are a paper's own numbers.
    """

    name: str
    cells: Sequence[str]
    ends: Sequence[str] = ()
    number: bool = False
    theirs: bool = False
    header: bool = False

    @property
    def long(self) -> bool:
        """Whether cells are sentences."""
        return not self.number and max(map(len, self.cells), default=0) > MAX_CELL_LENGTH

    def line(self, row: int) -> str:
        """Return a cell with its interval."""
        return " ".join(filter(None, (self.cells[row], self.ends[row] if self.ends else "")))


def format_table(table: Table) -> list[list[TableColumn]]:
    """Return the columns of one grid, or of two where a paper's numbers do not fit beside ours: ours, then theirs."""
    ours = _set_index(table.frame)
    if table.theirs is None:
        return [_format_columns(ours)]
    theirs = _set_index(table.theirs)
    if _is_subset(theirs, ours):
        return [_interleave(_format_columns(ours), theirs.reindex(ours.index))]
    return [_format_columns(ours), [replace(column, theirs=True) for column in _format_columns(theirs)]]


def format_number(value: Any, decimals: int) -> str:
    """Format a number with a typographic minus; a tiny one in scientific notation.

    >>> format_number(-0.25, 2), format_number(1234, 0), format_number(3e-9, 3), format_number(float("nan"), 2)
    ('−0.25', '1,234', '3e−09', '–')
    """
    if pd.isna(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    tiny = value != 0 and abs(value) < 0.5 * 10**-decimals
    return format_signed(value, ".0e" if tiny else f",.{decimals}f")


def column_decimals(values: pd.Series) -> int:
    """Return the number of decimals of a column, by its largest number.

    >>> column_decimals(pd.Series([0.4213, 0.05])), column_decimals(pd.Series([31.7])), column_decimals(pd.Series([3]))
    (3, 1, 0)
    """
    return 0 if pd.api.types.is_integer_dtype(values) else significant_decimals(_largest(values))


def significant_decimals(size: float) -> int:
    """Return decimals for three significant digits, or two between 0.01 and 0.1; at most four."""
    if not size > 0:  # also NaN
        return 2
    return min(3 if size >= 0.01 else 4, max(0, 2 - math.floor(math.log10(size))))


def _largest(values: pd.Series) -> float:
    """Return the largest finite absolute value, or NaN."""
    sizes = values.dropna().astype(float).abs()
    return float(sizes[sizes < math.inf].max())


def _set_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with the column that names its rows as index."""
    if any(name is not None for name in frame.index.names) or len(frame.columns) < 2:
        return frame
    if not isinstance(frame.index, pd.RangeIndex):
        return frame.rename_axis("")
    return frame.set_index(frame.columns[0])


def _is_subset(theirs: pd.DataFrame, ours: pd.DataFrame) -> bool:
    """Whether every row and column of theirs is one of ours."""
    rows = ours.index.is_unique and theirs.index.is_unique and set(theirs.index) <= set(ours.index)
    return rows and set(theirs.columns) <= set(ours.columns)


def _format_columns(frame: pd.DataFrame) -> list[TableColumn]:
    """Return the columns of the index, then those of the frame; x_low and x_high become the intervals of x."""
    unnamed = isinstance(frame.index, pd.RangeIndex) and frame.index.names == [None]
    levels = [] if unnamed else [frame.index.get_level_values(level) for level in range(frame.index.nlevels)]
    keys = [replace(_format_column(level.name or "", pd.Series(level), plain=True), header=True) for level in levels]
    pairs = {name: tuple(interval_names(name)[1:]) for name in frame.columns}
    ends = {name: pair for name, pair in pairs.items() if set(pair) <= set(frame.columns)}
    names = [name for name in frame.columns if not any(name in pair for pair in ends.values())]
    return keys + [_format_column(name, frame[name], [frame[end] for end in ends.get(name, ())]) for name in names]


def _format_column(
    name: Hashable, values: pd.Series, ends: Sequence[pd.Series] = (), *, plain: bool = False
) -> TableColumn:
    """Format one column; `plain` numbers are labels, such as layers, and keep their form."""
    head = " · ".join(map(str, name)) if isinstance(name, tuple) else str(name)
    head = f"−{head[1:]}" if head[:1] == "-" and head[1:2].isdigit() else head
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return TableColumn(head, [MISSING if pd.isna(value) else str(value) for value in values])
    if plain:
        return TableColumn(head, [MISSING if pd.isna(value) else f"{value:g}".replace("-", "−") for value in values])
    return TableColumn(head, *_format_numbers(values, ends), number=True)


def _format_numbers(values: pd.Series, ends: Sequence[pd.Series]) -> tuple[list[str], list[str]]:
    """Return the cells of a column and their intervals.

    All have the same number of decimals, except where that would leave a single significant digit. With intervals,
    negligible values are 0; without, as in a column of p-values, they keep their size.
    """
    usual, integers = column_decimals(values), pd.api.types.is_integer_dtype(values)
    least = NEGLIGIBLE * _largest(values) if ends else 0.0
    least = 0.0 if math.isnan(least) else least
    cells, intervals = [], []
    for value, *bounds in zip(values, *ends, strict=True):
        decimals = usual
        if not pd.isna(value):
            size = max((abs(number) for number in (value, *bounds) if not pd.isna(number)), default=0)
            rounded = abs(value) > least and round(value, usual) != value
            if not integers and rounded and size < 10 ** (1 - usual):
                decimals = significant_decimals(size)
            value = 0.0 if abs(value) < least else value
        cells.append(format_number(value, decimals))
        intervals.append(_format_interval(bounds[0], bounds[1], decimals) if bounds else "")
    return cells, intervals if ends else []


def _format_interval(low: Any, high: Any, decimals: int) -> str:
    if pd.isna(low) or pd.isna(high):
        return ""
    return f"[{format_signed(low, f',.{decimals}f')}, {format_signed(high, f',.{decimals}f')}]"


def _interleave(ours: list[TableColumn], theirs: pd.DataFrame) -> list[TableColumn]:
    """Put each of a paper's columns right of ours."""
    others = {column.name: column for column in _format_columns(theirs) if not column.header}
    columns = []
    for column in ours:
        columns.append(column)
        if not column.header and column.name in others:
            columns.append(replace(others[column.name], name=f"{column.name}, paper", theirs=True))
    return columns
