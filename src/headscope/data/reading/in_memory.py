"""Data that Python holds already: lists, pandas frames, `datasets` objects."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.reader import Columns, Malformed, Record, RecordTable
from headscope.data.reading.values import type_name


def table_from_object(source: Any) -> RecordTable:
    """The rows of a list, a frame or a dataset."""
    owner = type(source).__module__.partition(".")[0]
    if owner == "pandas" and hasattr(source, "columns"):
        return frame_table(source)
    if owner == "datasets":
        return table_from_dataset(source, "the dataset")
    if isinstance(source, Iterable) and not isinstance(source, Mapping | str | bytes):
        return RecordTable("the list", _items(source), counts="row")
    raise InputError(
        f"Cannot read {type_name(source)}. Give a path, 'format:parameters@PATH', a list of texts, pairs, dicts or "
        "examples, a pandas frame, or a dataset of the package datasets."
    )


def frame_table(frame: Any, name: str = "the frame") -> RecordTable:
    """The rows of a pandas frame; what pandas calls missing is None."""
    header = tuple(map(str, frame.columns))
    if len(set(header)) < len(header):
        raise InputError(f"Two columns of {name} have the same name: {', '.join(header)}. Give every column its own.")
    held = [frame.iloc[:, place] for place in range(len(header))]
    lists = [[_plain(each) for each in column.astype(object).where(column.notna(), None)] for column in held]
    rows = (
        Record(place, dict(zip(header, values, strict=True))) for place, values in enumerate(zip(*lists, strict=True))
    )
    return RecordTable(name, rows, header=header, counts="row")


def table_from_dataset(dataset: Any, name: str) -> RecordTable:
    """The rows of a dataset of the package `datasets`; class labels by their names, whose order is kept."""
    if isinstance(dataset, Mapping):
        splits = ", ".join(map(str, dataset))
        raise InputError(f"{name} has several splits ({splits}), where one is expected. Take one: dataset['…'].")
    features = getattr(dataset, "features", None) or {}
    orders = {column: tuple(names) for column, each in features.items() if (names := _class_names(each))}
    plain = dataset.with_format(None) if hasattr(dataset, "with_format") else dataset
    rows = (
        Record(place, {column: _named(value, orders.get(column)) for column, value in values.items()})
        for place, values in enumerate(plain)
    )
    return RecordTable(name, rows, Columns(labels=orders), tuple(features) or None, "row")


def _items(source: Iterable[Any]) -> Iterator[Record | Malformed]:
    for place, item in enumerate(source):
        if isinstance(item, str):
            yield Record(place, {"text": item, "pair": None})
        elif isinstance(item, Mapping):
            yield Record(place, {str(name): value for name, value in item.items()})
        elif isinstance(item, tuple | list) and len(item) == 2 and all(isinstance(part, str) for part in item):
            yield Record(place, {"text": item[0], "pair": item[1]})
        elif isinstance(item, Example):
            yield Malformed(place, "it is an Example among other things; give a list of examples only")
        else:
            shown = f"{item!r:.60}"
            yield Malformed(place, f"{shown} is neither a text nor a pair of texts nor a dict of named columns")


def _class_names(feature: Any) -> list[str] | None:
    """The names of a class label, or of a list of them."""
    feature = getattr(feature, "feature", feature)
    names: list[str] | None = getattr(feature, "names", None)
    return names


def _named(value: Any, names: tuple[str, ...] | None) -> Any:
    """Class numbers as names; -1 stands for none."""
    if names is None or value is None:
        return value
    if isinstance(value, list):
        return [_named(each, names) for each in value]
    return names[value] if 0 <= value < len(names) else None


def _plain(value: Any) -> Any:
    """A value of numpy's as Python's own."""
    return value.tolist() if hasattr(value, "tolist") else value
