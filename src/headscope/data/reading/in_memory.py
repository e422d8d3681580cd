"""Read Python objects: lists, pandas DataFrames and objects of the package `datasets`."""

from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.prose import join_words
from headscope.core.reader import Columns, Malformed, Record, RecordTable
from headscope.data.reading.values import type_name


def table_from_object(source: Any) -> RecordTable:
    """Return the rows of a list, a DataFrame or a dataset."""
    packages = _list_packages(source)
    if "datasets" in packages:
        return table_from_dataset(source, "the dataset")
    if hasattr(source, "columns"):  # going through it would give the names of its columns
        if "pandas" not in packages and not hasattr(source, "to_pandas"):
            raise InputError(f"Cannot read a {type(source).__name__}. Convert it to a pandas DataFrame.")
        return table_from_frame(source if "pandas" in packages else source.to_pandas())
    if isinstance(source, Iterable) and not isinstance(source, Mapping | str | bytes):
        return RecordTable("the list", _parse_items(source), unit="row")
    source_type = "None" if source is None else type_name(source)
    raise InputError(
        f"Cannot read {source_type}. Give a path, 'format:parameters@PATH', a list of texts, pairs, dicts or examples, "
        "a pandas DataFrame, or a dataset of the package datasets."
    )


def is_kept_elsewhere(source: Any) -> bool:
    """Return whether an object gives its items one by one, whenever it is gone through, and does not hold them all."""
    if "datasets" in _list_packages(source):
        return not isinstance(source, Mapping)
    return isinstance(source, Iterable) and not isinstance(source, Iterator | Sized)


def _list_packages(source: Any) -> set[str]:
    return {base.__module__.partition(".")[0] for base in type(source).__mro__}


def table_from_frame(frame: Any) -> RecordTable:
    """Return the rows of a pandas DataFrame, with missing values as None."""
    header = tuple(map(str, frame.columns))
    if len(set(header)) < len(header):
        raise InputError(f"Two columns of the DataFrame have the same name: {join_words(header)}. Rename one of them.")
    columns = (frame.iloc[:, index] for index in range(len(header)))
    objects = (column.astype(object).where(column.notna(), None) for column in columns)
    lists = [[value.tolist() if hasattr(value, "tolist") else value for value in column] for column in objects]
    rows = (Record(row, dict(zip(header, values, strict=True))) for row, values in enumerate(zip(*lists, strict=True)))
    return RecordTable("the DataFrame", rows, header=header, unit="row")


def table_from_dataset(dataset: Any, name: str) -> RecordTable:
    """Return the rows of a dataset of the package `datasets`, with class labels as names."""
    if isinstance(dataset, Mapping):
        raise InputError(f"{name} has several splits ({join_words(dataset)}). Choose one: dataset['…'].")
    features = getattr(dataset, "features", None) or {}
    items = {column: getattr(feature, "feature", feature) for column, feature in features.items()}  # of lists
    classes = {column: tuple(item.names) for column, item in items.items() if getattr(item, "names", None)}
    plain = dataset.with_format(None) if hasattr(dataset, "with_format") else dataset
    rows = (
        Record(row, {column: _to_names(value, classes.get(column)) for column, value in values.items()})
        for row, values in enumerate(plain)
    )
    return RecordTable(name, rows, Columns(labels=classes), tuple(features) or None, "row")


def _parse_items(source: Iterable[Any]) -> Iterator[Record | Malformed]:
    for row, item in enumerate(source):
        if isinstance(item, str):
            yield Record(row, {"text": item, "pair": None})
        elif isinstance(item, Mapping):
            yield Record(row, {str(name): value for name, value in item.items()})
        elif isinstance(item, tuple | list) and len(item) == 2 and all(isinstance(text, str) for text in item):
            yield Record(row, {"text": item[0], "pair": item[1]})
        elif isinstance(item, Example):
            yield Malformed(row, "it is an Example, but other items are not; give a list of examples only")
        else:
            yield Malformed(row, f"{item!r:.60} is neither a text nor a pair of texts nor a dict of columns")


def _to_names(value: Any, names: tuple[str, ...] | None) -> Any:
    """Replace class indices by names; -1 means that there is no label."""
    if names is None or value is None:
        return value
    if isinstance(value, list):
        return [_to_names(item, names) for item in value]
    return names[value] if 0 <= value < len(names) else None
