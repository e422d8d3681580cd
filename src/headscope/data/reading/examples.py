"""Make examples from the rows of a table."""

import warnings
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from headscope.core.errors import DataWarning, InputError, suggest_name
from headscope.core.example import Example
from headscope.core.prose import join_words
from headscope.core.reader import Columns, Malformed, Record, RecordTable, Unreadable
from headscope.data.labels import ALPHABETICAL, GIVEN, LABEL_NAME, LABEL_ORDER
from headscope.data.reading.values import (
    parse_choices,
    parse_id,
    parse_label,
    parse_rest,
    parse_text,
    parse_words,
    type_name,
)

Label = int | float | str | None
Draft = dict[str, Any]
"""The fields of an example, with the label as it is in the data."""

SHOWN_PROBLEMS = 3

TEXT_PAIRS = (
    ("text", "pair"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("question", "sentence"),
    ("question", "context"),
    ("question", "passage"),
)
"""Common names of text and pair; the first that both exist are used, before any of SINGLE_TEXTS."""

SINGLE_TEXTS = ("text", "sentence", "question", "content", "document")
WORDS = ("words", "tokens")
LABELS = ("label", "gold_label")
IDS = ("id", "idx", "index", "sent_id")


@dataclass(frozen=True)
class Parsing:
    """What the user says of rows: the columns, the number of each label, and whether to skip what cannot be read."""

    columns: Columns
    label_numbers: Mapping[str, int] | None = None
    skip: bool = False


def make_examples(table: RecordTable, how: Parsing) -> list[Example]:
    """Return each row as an example; rows that are skipped are counted in a warning."""
    parser = RowParser(table, how, {})
    drafts = list(parser)
    parser.report(len(drafts), stacklevel=5)
    return [parser.finish(draft) for draft in drafts]


class RowParser:
    """Parses rows, and checks each against those before: the same columns, the same kind of label, a new id.

    `ids` remembers the row of each id.
    """

    def __init__(self, table: RecordTable, how: Parsing, ids: MutableMapping[str, int]) -> None:
        self.table, self.skip, self.ids = table, how.skip, ids
        self.requested, self.label_numbers = how.columns, how.label_numbers
        self.columns: Columns | None = None
        self.headers: set[tuple[str, ...]] = set()
        self.label: tuple[int, str] | None = None
        self.labels = LabelKinds()
        self.skipped = 0
        self.problems: list[str] = []  # the first ones

    def __iter__(self) -> Iterator[Draft]:
        """Yield the fields of each example, with labels as they are in the data."""
        if self.table.header is not None:
            try:
                choose_columns(self.requested, self.table.columns, dict.fromkeys(self.table.header))
            except Unreadable as problem:
                raise InputError(f"{self.table.name}: {problem}.") from None
        for index, row in enumerate(self.table.rows):
            try:
                draft = self.parse(index, row)
            except Unreadable as problem:
                if not self.skip:
                    raise InputError(
                        f"{self.table.name}, {self.table.unit} {row.number}: {problem}. Correct it, or skip and count "
                        "such rows: hs.read(…, malformed='skip'), in the shell --malformed skip."
                    ) from None
                self.skipped += 1
                if len(self.problems) < SHOWN_PROBLEMS:
                    self.problems.append(f"{self.table.unit} {row.number}: {problem}")
            else:
                yield draft

    def report(self, count: int, *, stacklevel: int) -> None:
        """Raise InputError if no row could be read, and warn of those that were skipped."""
        shown = "; ".join(self.problems) + ("; …" if self.skipped > SHOWN_PROBLEMS else "")
        if not count:
            reason = f"none of its {self.skipped:,} rows can be read: {shown}" if self.skipped else "it has no rows"
            raise InputError(f"There are no examples in {self.table.name}: {reason}.")
        if self.skipped:
            message = f"skipped {self.skipped:,} of {self.skipped + count:,} rows of {self.table.name}: {shown}."
            warnings.warn(message, DataWarning, stacklevel=stacklevel)

    def finish(self, draft: Draft) -> Example:
        """Return the example of a draft, when all rows were seen."""
        return Example(**draft | {"label": self.labels.number(draft["label"])})

    def parse(self, index: int, row: Record | Malformed) -> Draft:
        """Return the fields of one row; raise Unreadable if it cannot be read."""
        if isinstance(row, Malformed):
            raise Unreadable(row.problem)
        row = self._add_nested(row)
        columns, values = self._columns(row), row.values
        words = parse_words(values, columns.words) if columns.words else None
        text = parse_text(values, columns.text, "text") if columns.text else " ".join(words or ())
        has_pair = columns.pair is not None and values[columns.pair] is not None
        pair = parse_text(values, columns.pair, "second text") if columns.pair and has_pair else None
        rest = parse_rest(values, columns, words)
        if columns.choices:
            rest["choices"] = parse_choices(values, columns.choices)
        label = self._label(row, columns, rest)
        name = parse_id(values, columns.id) if columns.id else str(index)
        if name in self.ids:
            first = f"{self.table.unit} {self.ids[name]}"
            raise Unreadable(f"the id '{name}' is already that of {first}; to number the rows instead: id='row'")
        self.ids[name] = row.number
        self.columns = columns
        fields = {"id": name, "text": text, "pair": pair, "words": words, "label": label}
        return fields | {"columns": MappingProxyType(rest)}

    def _add_nested(self, row: Record) -> Record:
        """Return the row with the requested fields of objects as columns of their own."""
        names = [name for name in self.requested.used if is_nested(name, row.values)]
        if not names:
            return row
        return Record(row.number, {**row.values, **{name: read_nested(name, row.values) for name in names}})

    def _columns(self, row: Record) -> Columns:
        """Return the columns of this row, which must be those of the first row."""
        header = tuple(row.values)
        if self.columns is not None:
            if header in self.headers:
                return self.columns
            for name in self.columns.used:
                if name not in row.values:
                    raise Unreadable(describe_missing(name, row.values))
        columns = choose_columns(self.requested, self.table.columns, row.values)
        if self.columns is not None and columns != self.columns:
            raise Unreadable(describe_difference(self.columns, columns))
        self.headers.add(header)
        return columns

    def _label(self, row: Record, columns: Columns, rest: dict[str, Any]) -> Label:
        if columns.label is None:
            if self.label_numbers is not None:
                raise Unreadable("labels numbers the labels, but no column holds them; name it: label=…")
            return None
        classes = columns.labels.get(columns.label)
        label = parse_label(row.values[columns.label], columns.label, classes)
        if label is None:
            return None
        name = label if isinstance(label, str) else classes[int(label)] if classes else None
        if self.label_numbers is not None:
            return self._number(label, name, columns.label, rest)
        if name is not None:
            rest.setdefault(LABEL_NAME, name)
        if isinstance(label, str):
            rest[LABEL_ORDER] = ALPHABETICAL
        kind = "a name" if isinstance(label, str) else "a number"
        number, first = self.label or (row.number, kind)
        if first != kind:
            raise Unreadable(f"the label {label!r} is {kind}, but that of {self.table.unit} {number} is {first}")
        self.label = number, first
        self.labels.add(label)
        return label

    def _number(self, label: Label, name: str | None, column: str, rest: dict[str, Any]) -> int:
        """Return the number that the user gave a label, by its name or as it is in the data."""
        assert self.label_numbers is not None
        key = next((key for key in (name, str(label)) if key in self.label_numbers), None)
        if key is None:
            raise Unreadable(
                f"the label (column '{column}') is {name or label!r}, but labels has {join_words(self.label_numbers)}"
            )
        rest.setdefault(LABEL_NAME, name or str(label))
        rest[LABEL_ORDER] = GIVEN
        return self.label_numbers[key]


class LabelKinds:
    """What the labels of all rows are: names, which get their index in sorted order, floats, or whole numbers."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.floats = False

    def add(self, label: int | float | str) -> None:
        """Take note of a label."""
        if isinstance(label, str):
            self.names.add(label)
        elif isinstance(label, float):
            self.floats = True

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(sorted(self.names))}

    def number(self, label: Label) -> int | float | None:
        """Return the number of a label, when all were added."""
        if isinstance(label, str):
            return self._indices[label]
        return float(label) if self.floats and label is not None else label


def choose_columns(requested: Columns, of_format: Columns, values: Mapping[str, Any]) -> Columns:
    """Return the requested columns, otherwise those that the format knows, otherwise those with common names."""
    values = {**values, **{name: None for name in requested.used if is_nested(name, values)}}
    by_number = requested.id == "row" and "row" not in values
    requested = replace(requested, id=None) if by_number else requested
    for name in requested.used:
        if name not in values:
            raise Unreadable(describe_missing(name, values))
    free = {name.lower(): name for name in reversed(list(values)) if name not in requested.used}
    if requested.text == "":
        if not (requested.choices or of_format.choices or "choices" in values):
            raise Unreadable("text='' reads choices without a text before them, but there are no choices. Name them")
        texts = replace(requested, text=None)
    elif requested.text or requested.words:
        texts = requested
    else:
        texts = of_format if of_format.text or of_format.words else _guess_texts(free, values)
        texts = replace(texts, pair=requested.pair or texts.pair)
    return Columns(
        text=texts.text,
        pair=texts.pair,
        words=texts.words,
        label=requested.label or of_format.label or _first(free, LABELS),
        id=None if by_number else requested.id or of_format.id or _first(free, IDS),
        choices=requested.choices or of_format.choices,
        labels=of_format.labels,
    )


def is_nested(name: str, values: Mapping[str, Any]) -> bool:
    """Return whether a name such as data.review.text is that of a field in a column, and not of a column."""
    return name not in values and "." in name and name.partition(".")[0] in values


def read_nested(name: str, values: Mapping[str, Any]) -> Any:
    """Return a field of an object in a column; a column may have dots in its own name, too.

    >>> read_nested("data.review.text", {"data": {"review": {"text": "Good."}}})
    'Good.'
    """
    if name in values:
        return values[name]
    first, _, rest = name.partition(".")
    if not rest or first not in values:
        raise Unreadable(describe_missing(name, values))
    if not isinstance(values[first], Mapping):
        raise Unreadable(f"'{rest}' should be a field of '{first}', but that is {type_name(values[first])}")
    return read_nested(rest, values[first])


def describe_difference(first: Columns, columns: Columns) -> str:
    """Say how the columns of a row differ from those of the first row."""
    for field in ("text", "pair", "label", "words", "id"):
        before, name = getattr(first, field), getattr(columns, field)
        if before != name:
            was = f"is '{before}'" if before else "is missing"
            return f"its {field} would be the column '{name}', but in the first row it {was}; name it: {field}='{name}'"
    return "its columns differ from those of the first row"


def describe_missing(name: str, values: Mapping[str, Any]) -> str:
    """Say that a column is missing, with the closest name and all names."""
    return f"there is no column '{name}'. {suggest_name(name, values)}Columns: {join_words(values)}"


def _guess_texts(free: Mapping[str, str], values: Mapping[str, Any]) -> Columns:
    lists = {name for name in free if isinstance(values[free[name]], list | tuple)}
    words = next((free[name] for name in WORDS if name in lists), None)
    for text, pair in TEXT_PAIRS:
        if text in free and pair in free:
            return Columns(text=free[text], pair=free[pair], words=words)
    if single := _first(free, SINGLE_TEXTS):
        return Columns(text=single, words=words)
    if words := words or _first(free, WORDS):
        return Columns(words=words)
    raise Unreadable(
        f"no column has a common name of a text ({', '.join((*SINGLE_TEXTS, *WORDS))}, sentence1, premise, …). "
        f"Columns: {join_words(values)}. Name one: hs.read(…, text='{next(iter(values), 'name')}'), in the shell --text"
    )


def _first(free: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((free[name] for name in names if name in free), None)
