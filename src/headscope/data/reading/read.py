"""Read examples from files, folders, hubs and Python objects."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from importlib.resources import as_file
from pathlib import Path
from typing import Any, cast

from headscope.core.catalog import readers
from headscope.core.errors import InputError
from headscope.core.example import Example, ExampleStream
from headscope.core.options import takes_options
from headscope.core.prose import count_noun, join_words
from headscope.core.reader import Columns, Reader, RecordTable
from headscope.core.spec import canonical_name
from headscope.data.bundled.files import bundled_file
from headscope.data.labels import parse_labels, renumber_examples
from headscope.data.reading.examples import Parsing, make_examples
from headscope.data.reading.files import find_file
from headscope.data.reading.in_memory import table_from_object
from headscope.data.reading.options import ReadOptions


@takes_options(ReadOptions)
def read(options: ReadOptions) -> list[Example]:
    """Read examples from a path, from `format:parameters@PATH`, or from a list, a pandas DataFrame or a dataset.

    A row that cannot be read raises an error with its file, line and problem. All columns that are not named are kept
    in `Example.columns`. `data.review.text` is a field of an object in a column. `text=""` reads choices without a text
    before them. A row whose label is empty is unlabeled. Without `labels`, functions that need labels compare names
    with those of the model's classes; a mapping such as {"worst": 0, "best": 1} numbers them.

    >>> rows = [{"review": "Good.", "stars": 5}, {"review": "Bad.", "stars": 1}]
    >>> [(example.id, example.text, example.label) for example in read(rows, text="review", label="stars")]
    [('0', 'Good.', 5), ('1', 'Bad.', 1)]
    """
    how = parse_options(options)
    source = options.source
    if isinstance(source, Iterator | ExampleStream):
        source = list(source)
    if isinstance(source, list | tuple) and source and all(isinstance(item, Example) for item in source):
        return _check_examples(source, how.columns, how.label_numbers)
    if isinstance(source, str) and source == "sample":
        with as_file(bundled_file("gap_sample.tsv")) as path:
            return make_examples(find_table(f"gap@{path}"), how)
    return make_examples(open_table(source, options.encoding), how)


def parse_options(options: ReadOptions) -> Parsing:
    """Return what the options say about columns, labels and rows that cannot be read."""
    if options.malformed not in ("error", "skip"):
        raise InputError(f"malformed={options.malformed!r} is neither 'error' nor 'skip'.")
    choices = options.choices
    choices = choices if choices is None or isinstance(choices, str) else tuple(choices)
    columns = Columns(options.text, options.pair, options.label, options.words, options.id, choices)
    return Parsing(columns, parse_labels(options.labels), options.malformed == "skip")


def open_table(source: Any, encoding: str | None) -> RecordTable:
    """Return the table at a path, behind `name:parameters@PATH`, or of an object."""
    if isinstance(source, str | os.PathLike):
        return find_table(os.fspath(source), encoding)
    if encoding is None:
        return table_from_object(_wrap_pair(source))
    raise InputError(f"encoding={encoding!r} is that of a file, but the texts are in memory. Leave it out.")


def read_texts(text: Any, pair: Any = None) -> list[Example]:
    """Return examples from a text, or from anything that `read` takes; `pair` holds a second text for each.

    A string is the text itself, unless it names a data file (reviews.csv) or a format (glue:rte:dev@DIR). A tuple of
    two strings is one pair.

    >>> [(example.id, example.text, example.pair) for example in read_texts("The cat sat.", "It slept.")]
    [('0', 'The cat sat.', 'It slept.')]
    """
    if _is_text(text) and not text.strip():
        raise InputError("The text is empty. Give it at least one word.")
    examples = read([text] if isinstance(text, Example) or _is_text(text) else text)
    if pair is None:
        return examples
    pairs = read([pair] if _is_text(pair) else pair)
    if any(second.pair is not None for second in pairs):
        raise InputError(
            "pair holds second texts, but pairs of texts were given there. Give one text for each, as a list."
        )
    if len(pairs) != len(examples):
        raise InputError(f"There are {len(examples)} texts but {len(pairs)} second texts. Give one for each.")
    for example in examples:
        if example.pair is not None:
            raise InputError(f"pair was given, but example '{example.id}' has a second text already. Leave pair out.")
    return [replace(first, pair=second.text) for first, second in zip(examples, pairs, strict=True)]


def find_table(source: str, encoding: str | None = None) -> RecordTable:
    """Read the table at a path or behind `name:parameters@PATH`; an existing path is always read as a path."""
    if not os.path.exists(source) and (parsed := _parse(source)):  # noqa: PTH110  (False for a text too long for a path)
        reader, path = parsed
        return _set_encoding(reader, encoding)(path)
    file = find_file(source)
    by_ending = {f".{ending}": reader for reader in readers for ending in reader.endings}
    if file.suffix.lower() not in by_ending:
        raise InputError(
            f"The format of {file} is not known from its ending '{file.suffix}'. Known: "
            f"{join_words(sorted(by_ending))}. Or name the format: 'jsonl@{file}'."
        )
    return _set_encoding(by_ending[file.suffix.lower()](), encoding)(str(file))


def _set_encoding(reader: Any, encoding: str | None) -> Reader:
    """Return the reader with this encoding; raise InputError for a format with a fixed encoding."""
    if encoding is not None and "encoding" not in {field.name for field in fields(reader)}:
        name = type(reader).__name__.lower()
        raise InputError(f"encoding={encoding!r} was given, but the format '{name}' has its own. Leave it out.")
    with_encoding: Reader = reader if encoding is None else replace(reader, encoding=encoding)
    return with_encoding


def _wrap_pair(source: Any) -> Any:
    """Return a pair of texts as a list of one pair; raise InputError for a tuple that is no pair."""
    if not isinstance(source, tuple) or not source or not all(isinstance(item, str) for item in source):
        return source
    if len(source) != 2:
        raise InputError(
            f"A tuple of two texts is a pair, but this one has {count_noun(len(source), 'text')}. Give several texts "
            "as a list: [text, text]."
        )
    return [source]


def _is_text(source: Any) -> bool:
    """Return whether a source is a text: a string that names neither a data file nor a format."""
    if not isinstance(source, str):
        return False
    if "\n" in source or ("@" not in source and " " in source.strip()):
        return not os.path.isfile(os.path.expanduser(source))  # noqa: PTH111, PTH113  (False for a text too long)
    name = canonical_name(re.split("[:@]", source, maxsplit=1)[0])
    if name != source and name in readers.names():
        return False
    return Path(source).suffix.lower().removeprefix(".") not in {
        ending for reader in readers for ending in reader.endings
    }


def _check_examples(
    examples: Sequence[Example], columns: Columns, label_numbers: Mapping[str, int] | None
) -> list[Example]:
    """Check that the ids of examples are unique, and that no columns are named for them; renumber their labels."""
    if columns.used:
        raise InputError(f"Columns are named ({', '.join(columns.used)}), but the list holds examples. Leave them out.")
    rows: dict[str, int] = {}
    for row, example in enumerate(examples):
        if example.id in rows:
            raise InputError(f"The list, row {row}: the id '{example.id}' is already that of row {rows[example.id]}.")
        rows[example.id] = row
    return list(examples) if label_numbers is None else renumber_examples(examples, label_numbers)


def _parse(source: str) -> tuple[Reader, str] | None:
    """Return the reader and the path of `name:parameters@PATH`, or None for a source of another form."""
    spec, at, path = source.partition("@")
    name, *values = re.split("[:,]", spec)
    is_reader = canonical_name(name) in readers.names()
    reader_class = cast("type[Reader]", readers.find(name)) if is_reader else None
    bundled = reader_class is not None and (reader_class.bundled or not reader_class.needs_path)
    if not (at or values or bundled) or not canonical_name(name).isidentifier():
        return None
    if len(name) == 1 and not at:  # C:\\ is a drive
        return None
    if " " in source and not is_reader:  # the source is a text
        return None
    reader_class = cast("type[Reader]", readers.find(name))
    reader: Reader = readers.make(reader_class, **_parameters(reader_class, name, values))
    if reader.needs_path and not path and (at or not reader.bundled):
        raise InputError(f"'{source}' does not say where the data are. Write {spec}@PATH, with a folder or a file.")
    if not reader.needs_path and at:
        raise InputError(f"'{source}' has a path, '{path}', but the reader '{name}' takes none. Write {spec}.")
    return reader, path


def _parameters(reader_class: Any, name: str, values: Sequence[str]) -> dict[str, str]:
    """Parse parameters by position or by name: `rte:dev` or `task=rte:split=dev`."""
    names = [field.name for field in fields(reader_class)]
    if len(values) > len(names):
        takes = f"{len(names)} ({', '.join(names)})" if names else "no parameters"
        raise InputError(
            f"The reader '{name}' takes {takes}, but got {count_noun(len(values), 'parameter')}: {values}."
        )
    pairs = (value.split("=", 1) if "=" in value else (key, value) for key, value in zip(names, values, strict=False))
    return {canonical_name(key): value for key, value in pairs if value}
