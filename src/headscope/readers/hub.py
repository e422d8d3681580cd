"""Datasets of a hub."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from headscope.core.errors import InputError, MissingExtra
from headscope.core.reader import Reader, RecordTable
from headscope.data.reading.in_memory import table_from_dataset

SPLITS = ("train", "validation", "dev", "test")


@dataclass(frozen=True)
class Hub(Reader):
    """A dataset of a hub, by its id: hub:OWNER/NAME:CONFIG:SPLIT, or hub:NAME:SPLIT where it has one config.

    It is loaded by the package `datasets`, which keeps what it has loaded. No code from a hub is ever run.
    """

    name: str = ""
    config: str | None = None
    split: str | None = None

    needs_place: ClassVar[bool] = False

    def __call__(self, place: str) -> RecordTable:  # noqa: ARG002  (the parameters say where it is)
        """The rows of one split."""
        if not self.name:
            raise InputError("Which dataset? Write hub:OWNER/NAME:CONFIG:SPLIT, such as hub:glue:rte:validation.")
        alone = self.split is None and self.config in SPLITS
        config, split = (None, self.config) if alone else (self.config, self.split)
        found = self._loaded(config, split)
        if isinstance(found, Mapping):
            if len(found) > 1:
                known = ", ".join(map(str, found))
                raise InputError(f"The dataset '{self.name}' has the splits {known}. Name one: hub:{self.name}:split=…")
            (found,) = found.values()
        return table_from_dataset(found, ":".join(filter(None, ("hub", self.name, config, split))))

    def _loaded(self, config: str | None, split: str | None) -> Any:
        try:
            datasets = import_module("datasets")
        except ImportError:
            raise MissingExtra(
                f"Reading 'hub:{self.name}' needs the package datasets. "
                "Install it with: pip install 'headscope[datasets]'"
            ) from None
        try:
            return datasets.load_dataset(self.name, config, split=split)
        except ConnectionError as error:
            raise InputError(
                f"The hub cannot be reached for the dataset '{self.name}', and no copy of it is kept here ({error}). "
                "Check the network, or give a file: hs.read('data.parquet')."
            ) from error
        except Exception as error:  # the package raises whatever its parts raise
            first = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            raise InputError(f"The dataset '{self.name}' cannot be read: {first}.") from error
