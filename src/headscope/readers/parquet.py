"""Parquet files."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

from headscope.core.errors import InputError, first_line, require_package
from headscope.core.reader import Reader, Record, RecordTable
from headscope.data.reading.files import find_file


@dataclass(frozen=True)
class Parquet(Reader):
    """Parquet, the table format of hubs and data frames."""

    endings: ClassVar[tuple[str, ...]] = ("parquet",)

    def __call__(self, path: str) -> RecordTable:
        """Read the rows of a file, batch by batch."""
        name = str(find_file(path))
        parquet = require_package("pyarrow.parquet", "parquet", f"Reading {name}")
        try:
            file = parquet.ParquetFile(name)
        except Exception as error:  # pyarrow raises errors of many types
            raise InputError(
                f"{name} is not a complete Parquet file: {first_line(error)}. Was it written completely?"
            ) from error
        return RecordTable(name, _rows(file, name), header=tuple(file.schema_arrow.names), unit="row")


def _rows(file: Any, name: str) -> Iterator[Record]:
    count = 0
    with file:
        rows = chain.from_iterable(batch.to_pylist() for batch in file.iter_batches())
        try:
            for count, values in enumerate(rows, 1):
                yield Record(count - 1, values)
        except OSError as error:
            raise InputError(f"{name} cannot be read from row {count} on: {first_line(error)}.") from error
