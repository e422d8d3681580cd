"""Parquet files."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from headscope.core.errors import InputError, MissingExtra
from headscope.core.reader import Reader, Record, RecordTable
from headscope.data.reading.locate import find_file


@dataclass(frozen=True)
class Parquet(Reader):
    """Parquet, as hubs and data frames store tables."""

    endings: ClassVar[tuple[str, ...]] = ("parquet",)

    def __call__(self, place: str) -> RecordTable:
        """The rows of a file, batch by batch."""
        path = find_file(place)
        try:
            parquet = import_module("pyarrow.parquet")
        except ImportError:
            raise MissingExtra(
                f"Reading {path} needs the package pyarrow. Install it with: pip install 'headscope[parquet]'"
            ) from None
        try:
            file = parquet.ParquetFile(path)
        except Exception as error:  # pyarrow raises several kinds, some of them its own
            raise InputError(f"{path} is no whole Parquet file: {_first(error)}. Was it written to its end?") from error
        return RecordTable(str(path), _rows(file, str(path)), header=tuple(file.schema_arrow.names), counts="row")


def _rows(file: Any, name: str) -> Iterator[Record]:
    place = 0
    with file:
        try:
            for batch in file.iter_batches():
                for values in batch.to_pylist():
                    yield Record(place, values)
                    place += 1
        except OSError as error:
            raise InputError(f"{name}, row {place}: what follows cannot be read: {_first(error)}.") from error


def _first(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
