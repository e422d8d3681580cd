"""Reading examples from files, folders, hubs and Python objects."""

import os
from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from typing import Any, Literal

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.reader import Columns
from headscope.data.reading.examples import examples_of
from headscope.data.reading.in_memory import table_from_object
from headscope.data.reading.locate import find_table


def read(
    source: Any,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    words: str | None = None,
    id: str | None = None,  # noqa: A002  (the column's name everywhere)
    choices: str | Sequence[str] | None = None,
    malformed: Literal["error", "skip"] = "error",
) -> list[Example]:
    """Examples from a path, from `format:parameters@PATH`, from a list, a pandas frame or a dataset in hand.

    `text`, `pair`, `label`, `words`, `id` and `choices` name columns; without them, well-known names are looked for.
    All other columns travel in `Example.columns`. A row that cannot be read is an error that says its file, its line
    and what is wrong; with `malformed="skip"` it is left out, and a warning counts such rows. "sample" is a hundred
    paragraphs that come with the package.

    >>> rows = [{"review": "Good.", "stars": 5}, {"review": "Bad.", "stars": 1}]
    >>> [(each.id, each.text, each.label) for each in read(rows, text="review", label="stars")]
    [('0', 'Good.', 5), ('1', 'Bad.', 1)]
    """
    if malformed not in ("error", "skip"):
        raise InputError(f"malformed must be 'error' or 'skip', but got {malformed!r}.")
    several = choices if choices is None or isinstance(choices, str) else tuple(choices)
    asked = Columns(text, pair, label, words, id, several)
    if isinstance(source, Iterator):
        source = list(source)
    if isinstance(source, list | tuple) and source and all(isinstance(each, Example) for each in source):
        return _ready(source, asked)
    if isinstance(source, str) and source == "sample":
        with as_file(files("headscope.data.bundled") / "gap_sample.tsv") as path:
            return examples_of(find_table(f"gap@{path}"), asked, skip=malformed == "skip")
    at = isinstance(source, str | os.PathLike)
    table = find_table(os.fspath(source)) if at else table_from_object(source)
    return examples_of(table, asked, skip=malformed == "skip")


def _ready(examples: Sequence[Example], asked: Columns) -> list[Example]:
    """Examples that are examples already, if their ids are unique."""
    if asked.used:
        raise InputError(f"Columns are named ({', '.join(asked.used)}), but the list holds examples. Leave them out.")
    seen: dict[str, int] = {}
    for place, each in enumerate(examples):
        if each.id in seen:
            raise InputError(f"The list, row {place}: the id '{each.id}' is that of row {seen[each.id]} already.")
        seen[each.id] = place
    return list(examples)
