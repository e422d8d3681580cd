"""A Table as it is printed: the text of every cell, the same in the page and in LaTeX."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from headscope.core.document import Table

NEGLIGIBLE = 1e-4
"""Of the largest number of a column with intervals; what is less is 0 there."""

LONG = 40
"""Letters from which a cell is a sentence."""

NOTHING = "–"
"""Where there is no number."""


@dataclass(frozen=True)
class Column:
    """A heading with its cells; `ends` are their intervals, where they have some."""

    name: str
    cells: Sequence[str]
    ends: Sequence[str] = ()
    number: bool = False
    theirs: bool = False
    header: bool = False

    @property
    def long(self) -> bool:
        """Whether its cells hold sentences, which must be broken into lines."""
        return not self.number and max(map(len, self.cells), default=0) > LONG


def printed(table: Table) -> list[list[Column]]:
    """The columns of one grid, or of two where a paper's figures do not fit beside ours: ours, then theirs."""
    ours = _keyed(table.frame)
    if table.theirs is None:
        return [_columns(ours)]
    theirs = _keyed(table.theirs)
    if _fits(ours, theirs):
        return [_beside(_columns(ours), theirs.reindex(ours.index))]
    return [_columns(ours), [replace(each, theirs=True) for each in _columns(theirs)]]


def number(value: Any, after: int) -> str:
    """A number with that many digits after the point, and a real minus; a tiny one in powers of ten.

    >>> number(-0.25, 2), number(1234, 0), number(3e-9, 3), number(float("nan"), 2)
    ('−0.25', '1,234', '3e−09', '–')
    """
    if pd.isna(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    tiny = value != 0 and abs(value) < 0.5 * 10**-after
    text = f"{value:.0e}" if tiny else f"{value:,.{after}f}"
    return text.replace("-", "−")


def digits_of(values: pd.Series) -> int:
    """How many digits after the point a column has: enough for its largest number.

    >>> digits_of(pd.Series([0.4213, 0.05])), digits_of(pd.Series([31.7])), digits_of(pd.Series([3, 4]))
    (3, 1, 0)
    """
    if pd.api.types.is_integer_dtype(values):
        return 0
    there = values.dropna().astype(float).abs()
    return digits(there[there < math.inf].max())


def digits(size: float) -> int:
    """Three digits that count, or two of a number from 0.01 to 0.1; four after the point at most."""
    if not size > 0:  # also where there is no number at all
        return 2
    return min(3 if size >= 0.01 else 4, max(0, 2 - math.floor(math.log10(size))))


def _keyed(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with what names its rows as its index."""
    if any(name is not None for name in frame.index.names) or len(frame.columns) < 2:
        return frame
    if not isinstance(frame.index, pd.RangeIndex):
        return frame.rename_axis("")
    return frame.set_index(frame.columns[0])


def _fits(ours: pd.DataFrame, theirs: pd.DataFrame) -> bool:
    """Whether every row and column of theirs is one of ours."""
    rows = ours.index.is_unique and theirs.index.is_unique and set(theirs.index) <= set(ours.index)
    return rows and set(theirs.columns) <= set(ours.columns)


def _columns(frame: pd.DataFrame) -> list[Column]:
    """What names the rows, then the numbers; x_low and x_high go into the cells of x."""
    bare = isinstance(frame.index, pd.RangeIndex) and frame.index.names == [None]
    levels = [] if bare else [frame.index.get_level_values(place) for place in range(frame.index.nlevels)]
    keys = [
        replace(_column(level.name or "", pd.Series(level), plain=True), header=True)
        for level in levels
    ]  # fmt: skip
    return keys + [_column(name, frame[name], ends=_ends(frame, name)) for name in _shown(frame)]


def _shown(frame: pd.DataFrame) -> list[Hashable]:
    """The columns that are not an end of another one's interval."""
    ends = {f"{name}{end}" for name in frame.columns if _has_ends(frame, name) for end in ("_low", "_high")}
    return [name for name in frame.columns if name not in ends]


def _has_ends(frame: pd.DataFrame, name: Hashable) -> bool:
    return f"{name}_low" in frame.columns and f"{name}_high" in frame.columns


def _ends(frame: pd.DataFrame, name: Hashable) -> tuple[pd.Series, pd.Series] | None:
    return (frame[f"{name}_low"], frame[f"{name}_high"]) if _has_ends(frame, name) else None


def _column(
    name: Hashable, values: pd.Series, *, ends: tuple[pd.Series, pd.Series] | None = None, plain: bool = False
) -> Column:
    """The texts of one column; `plain` numbers are names, such as those of layers, and keep their form."""
    head = " · ".join(map(str, name)) if isinstance(name, tuple) else str(name)
    head = f"−{head[1:]}" if head[:1] == "-" and head[1:2].isdigit() else head
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return Column(head, [NOTHING if pd.isna(each) else str(each) for each in values])
    if plain:
        return Column(head, [NOTHING if pd.isna(each) else f"{each:g}".replace("-", "−") for each in values])
    return Column(head, *_numbers(values, ends), number=True)


def _numbers(values: pd.Series, ends: tuple[pd.Series, pd.Series] | None) -> tuple[list[str], list[str]]:
    """The cells of a column and their intervals, all with the same digits but where that would leave only one of more.

    With intervals, what is nothing beside the column's largest number is 0; alone, as a p-value is, it keeps its size.
    """
    usual, whole = digits_of(values), pd.api.types.is_integer_dtype(values)
    known = values.dropna().astype(float).abs()
    known = known[known < math.inf]
    least = NEGLIGIBLE * float(known.max()) if ends and len(known) else 0.0
    rows = list(zip(values, *(ends or ()), strict=True))
    cells, intervals = [], []
    for value, *bounds in rows:
        size = max((abs(each) for each in (value, *bounds) if not pd.isna(each)), default=0)
        if pd.isna(value):
            cells.append(NOTHING)
            intervals.append(_interval(bounds[0], bounds[1], usual) if bounds else "")
            continue
        cut = abs(value) > least and round(value, usual) != value
        few = not whole and cut and size < 10 ** (1 - usual)
        after = digits(size) if few else usual
        cells.append(number(0.0 if abs(value) < least else value, after))
        intervals.append(_interval(bounds[0], bounds[1], after) if bounds else "")
    return cells, intervals if ends else []


def _interval(low: Any, high: Any, after: int) -> str:
    if pd.isna(low) or pd.isna(high):
        return ""
    return f"[{low:,.{after}f}, {high:,.{after}f}]".replace("-", "−")


def _beside(ours: list[Column], theirs: pd.DataFrame) -> list[Column]:
    """Theirs right of ours, column by column."""
    others = {each.name: each for each in _columns(theirs) if not each.header}
    found = []
    for each in ours:
        found.append(each)
        if not each.header and each.name in others:
            found.append(replace(others[each.name], name=f"{each.name}, paper", theirs=True))
    return found
