"""From the rows of a table to examples; a row that cannot be read stops it, or is skipped and counted."""

import warnings
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.core.reader import Columns, Malformed, Record, RecordTable, Unreadable
from headscope.data.reading.columns import absent, choose, differs
from headscope.data.reading.values import choices_in, id_in, label_in, rest_of, text_in, words_in

Label = int | float | str | None


class Draft(NamedTuple):
    """An example whose label may still be a name."""

    id: str
    text: str
    pair: str | None
    words: tuple[str, ...] | None
    label: Label
    columns: dict[str, Any]


def examples_of(table: RecordTable, asked: Columns, *, skip: bool = False) -> list[Example]:
    """Every row as an example; `skip` leaves out those that cannot be read, and a warning counts them."""
    if table.header is not None:
        _check_header(table, asked)
    reading = _Reading(table, asked)
    drafts: list[Draft] = []
    bad: list[str] = []
    for number, row in enumerate(table.rows):
        try:
            drafts.append(reading.draft(number, row))
        except Unreadable as problem:
            if not skip:
                raise InputError(
                    f"{table.name}, {table.counts} {row.line}: {problem}. "
                    "Mend it, or leave such rows out and count them: malformed='skip', in the shell --skip-malformed."
                ) from None
            bad.append(f"{table.counts} {row.line}: {problem}")
    if not drafts:
        many = f"none of its {len(bad):,} rows can be read: {_some(bad)}" if bad else "it holds no rows"
        raise InputError(f"There are no examples in {table.name}: {many}.")
    if bad:
        total = len(bad) + len(drafts)
        note = f"skipped {len(bad):,} of {total:,} rows of {table.name}: {_some(bad)}."
        warnings.warn(note, DataWarning, stacklevel=3)
    return _finished(drafts)


class _Reading:
    """What later rows are held against: the columns of the first, the kind of its label, the ids so far."""

    def __init__(self, table: RecordTable, asked: Columns) -> None:
        self.table, self.asked = table, asked
        self.columns: Columns | None = None
        self.known: set[tuple[str, ...]] = set()
        self.ids: dict[str, int] = {}
        self.label: tuple[int, str] | None = None

    def draft(self, number: int, row: Record | Malformed) -> Draft:
        if isinstance(row, Malformed):
            raise Unreadable(row.problem)
        columns, values = self._columns(row), row.values
        words = words_in(values, columns.words) if columns.words else None
        text = text_in(values, columns.text, "text") if columns.text else " ".join(words or ())
        second = columns.pair is not None and values[columns.pair] is not None
        pair = text_in(values, columns.pair, "second text") if columns.pair and second else None
        rest = rest_of(values, columns, words)
        if columns.choices:
            rest["choices"] = choices_in(values, columns.choices)
        label = self._label(row, columns, rest)
        name = id_in(values, columns.id) if columns.id else str(number)
        self._keep_id(name, row.line)
        self.columns = columns
        return Draft(name, text, pair, words, label, rest)

    def _columns(self, row: Record) -> Columns:
        """How this row is read, which must be how the first one was."""
        shape = tuple(row.values)
        if self.columns is not None and shape in self.known:
            return self.columns
        if self.columns is not None:
            for name in self.columns.used:
                if name not in row.values:
                    raise Unreadable(absent(name, row.values))
        found = choose(self.asked, self.table.columns, row.values)
        if self.columns is not None and found != self.columns:
            raise Unreadable(differs(self.columns, found))
        self.known.add(shape)
        return found

    def _label(self, row: Record, columns: Columns, rest: dict[str, Any]) -> Label:
        if columns.label is None:
            return None
        order = columns.labels.get(columns.label)
        label = label_in(row.values[columns.label], columns.label, order)
        if label is None:
            return None
        if order is not None:
            rest.setdefault("label_name", order[int(label)])
        kind = "a name" if isinstance(label, str) else "a number"
        line, first = self.label or (row.line, kind)
        if first != kind:
            raise Unreadable(
                f"the label {label!r} is {kind}, but the first one, on {self.table.counts} {line}, is {first}"
            )
        self.label = line, first
        return label

    def _keep_id(self, name: str, line: int) -> None:
        if name in self.ids:
            raise Unreadable(
                f"the id '{name}' is that of {self.table.counts} {self.ids[name]} already; ids by row number: id='row'"
            )
        self.ids[name] = line


def _check_header(table: RecordTable, asked: Columns) -> None:
    try:
        choose(asked, table.columns, dict.fromkeys(table.header or ()))
    except Unreadable as problem:
        raise InputError(f"{table.name}: {problem}.") from None


def _finished(drafts: Sequence[Draft]) -> list[Example]:
    """Names of labels become numbers, in their sorted order."""
    labels = [each.label for each in drafts]
    names = sorted({label for label in labels if isinstance(label, str)})
    order = {name: place for place, name in enumerate(names)}
    real = any(isinstance(label, float) for label in labels)
    found = []
    for each in drafts:
        label = each.label
        if isinstance(label, str):
            each.columns.setdefault("label_name", label)
            label = order[label]
        elif real and label is not None:
            label = float(label)
        columns = MappingProxyType(each.columns)
        found.append(Example(each.id, each.text, each.pair, each.words, label, columns))
    return found


def _some(bad: Sequence[str]) -> str:
    return "; ".join(bad[:3]) + ("; …" if len(bad) > 3 else "")
