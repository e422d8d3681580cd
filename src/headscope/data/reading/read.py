"""Read examples from files, folders, hubs and Python objects."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from importlib.resources import as_file
from pathlib import Path
from typing import Any, Literal, cast

from headscope.core.catalog import readers
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.prose import count_noun, join_words
from headscope.core.reader import Columns, Reader, RecordTable
from headscope.core.spec import canonical_name
from headscope.data.bundled.files import bundled_file
from headscope.data.reading.examples import make_examples
from headscope.data.reading.files import find_file
from headscope.data.reading.in_memory import table_from_object


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
    """Read examples from a path, from `format:parameters@PATH`, or from a list, a pandas DataFrame or a dataset.

    `text`, `pair`, `label`, `words`, `id` and `choices` name columns; if they are not given, common names are tried.
    `text=""` reads choices without a text before them. All other columns are kept in `Example.columns`. A row that
    cannot be read raises an error with its file, line and problem; with `malformed="skip"` such rows are skipped, and a
    warning counts them. "sample" reads a hundred paragraphs that come with the package.

    >>> rows = [{"review": "Good.", "stars": 5}, {"review": "Bad.", "stars": 1}]
    >>> [(example.id, example.text, example.label) for example in read(rows, text="review", label="stars")]
    [('0', 'Good.', 5), ('1', 'Bad.', 1)]
    """
    if malformed not in ("error", "skip"):
        raise InputError(f"malformed={malformed!r} is neither 'error' nor 'skip'.")
    choices = choices if choices is None or isinstance(choices, str) else tuple(choices)
    columns, skip = Columns(text, pair, label, words, id, choices), malformed == "skip"
    if isinstance(source, Iterator):
        source = list(source)
    if isinstance(source, list | tuple) and source and all(isinstance(item, Example) for item in source):
        return _check_examples(source, columns)
    if isinstance(source, str) and source == "sample":
        with as_file(bundled_file("gap_sample.tsv")) as path:
            return make_examples(find_table(f"gap@{path}"), columns, skip=skip)
    named = isinstance(source, str | os.PathLike)
    return make_examples(find_table(os.fspath(source)) if named else table_from_object(source), columns, skip=skip)


def read_texts(text: Any, pair: Any = None) -> list[Example]:
    """Return examples from a text, or from anything that `read` takes; `pair` holds a second text for each.

    A string is the text itself, unless it names a data file (reviews.csv) or a format (glue:rte:dev@DIR).

    >>> [(example.id, example.text, example.pair) for example in read_texts("The cat sat.", "It slept.")]
    [('0', 'The cat sat.', 'It slept.')]
    """
    if _is_text(text) and not text.strip():
        raise InputError("The text is empty. Give it at least one word.")
    examples = read([text] if isinstance(text, Example) or _is_text(text) else text)
    if pair is None:
        return examples
    pairs = read([pair] if _is_text(pair) else pair)
    if len(pairs) != len(examples):
        raise InputError(f"There are {len(examples)} texts but {len(pairs)} second texts. Give one for each.")
    for example in examples:
        if example.pair is not None:
            raise InputError(f"pair was given, but example '{example.id}' has a second text already. Leave pair out.")
    return [replace(first, pair=second.text) for first, second in zip(examples, pairs, strict=True)]


def find_table(source: str) -> RecordTable:
    """Read the table at a path or behind `name:parameters@PATH`; an existing path is always read as a path."""
    if not os.path.exists(source) and (parsed := _parse(source)):  # noqa: PTH110  (False for a text too long for a path)
        reader, path = parsed
        return reader(path)
    file = find_file(source)
    kinds = {f".{ending}": kind for kind in readers for ending in kind.endings}
    if file.suffix.lower() not in kinds:
        raise InputError(
            f"The format of {file} is not known from its ending '{file.suffix}'. Known: {join_words(sorted(kinds))}. "
            f"Or name the format: 'jsonl@{file}'."
        )
    table: RecordTable = kinds[file.suffix.lower()]()(str(file))
    return table


def _is_text(source: Any) -> bool:
    """Return whether a source is a text: a string that names neither a data file nor a format."""
    if not isinstance(source, str):
        return False
    if "\n" in source or ("@" not in source and " " in source.strip()):
        return not os.path.isfile(os.path.expanduser(source))  # noqa: PTH111, PTH113  (False for a text too long)
    name = canonical_name(re.split("[:@]", source, maxsplit=1)[0])
    if name != source and name in readers.names():
        return False
    return Path(source).suffix.lower().removeprefix(".") not in {ending for kind in readers for ending in kind.endings}


def _check_examples(examples: Sequence[Example], columns: Columns) -> list[Example]:
    """Check that the ids of examples are unique, and that no columns are named for them."""
    if columns.used:
        raise InputError(f"Columns are named ({', '.join(columns.used)}), but the list holds examples. Leave them out.")
    rows: dict[str, int] = {}
    for row, example in enumerate(examples):
        if example.id in rows:
            raise InputError(f"The list, row {row}: the id '{example.id}' is already that of row {rows[example.id]}.")
        rows[example.id] = row
    return list(examples)


def _parse(source: str) -> tuple[Reader, str] | None:
    """Return the reader and the path of `name:parameters@PATH`, or None for a source of another form."""
    spec, at, path = source.partition("@")
    name, *parts = re.split("[:,]", spec)
    known = canonical_name(name) in readers.names()
    kind = cast("type[Reader]", readers.find(name)) if known else None
    bundled = kind is not None and (kind.bundled or not kind.needs_path)
    if not (at or parts or bundled) or not canonical_name(name).isidentifier():
        return None
    if len(name) == 1 and not at:  # C:\\ is a drive
        return None
    if " " in source and not known:  # the source is a text
        return None
    kind = cast("type[Reader]", readers.find(name))
    reader: Reader = readers.make(kind, **_parameters(kind, name, parts))
    if reader.needs_path and not path and (at or not reader.bundled):
        raise InputError(f"'{source}' does not say where the data are. Write {spec}@PATH, with a folder or a file.")
    if not reader.needs_path and at:
        raise InputError(f"'{source}' has a path, '{path}', but the reader '{name}' takes none. Write {spec}.")
    return reader, path


def _parameters(kind: Any, name: str, parts: Sequence[str]) -> dict[str, str]:
    """Parse parameters by position or by name: `rte:dev` or `task=rte:split=dev`."""
    names = [field.name for field in fields(kind)]
    if len(parts) > len(names):
        takes = f"{len(names)} ({', '.join(names)})" if names else "no parameters"
        raise InputError(f"The reader '{name}' takes {takes}, but got {count_noun(len(parts), 'parameter')}: {parts}.")
    pairs = (part.split("=", 1) if "=" in part else (key, part) for key, part in zip(names, parts, strict=False))
    return {canonical_name(key): value for key, value in pairs if value}
