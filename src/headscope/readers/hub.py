"""Datasets of a hub."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from headscope.core.errors import InputError, first_line, require_package
from headscope.core.prose import join_words
from headscope.core.reader import Reader, RecordTable
from headscope.data.reading.in_memory import table_from_dataset

SPLITS = ("train", "validation", "dev", "test")


@dataclass(frozen=True)
class Hub(Reader):
    """A dataset of a hub by its id: hub:OWNER/NAME:CONFIG:SPLIT, or hub:NAME:SPLIT if it has one config.

    The package `datasets` loads and caches it; with streaming=true its rows are fetched as they are read, each time. No
    code from a hub is run.
    """

    name: str = ""
    config: str | None = None
    split: str | None = None
    streaming: bool = False

    needs_path: ClassVar[bool] = False

    def __call__(self, path: str) -> RecordTable:  # noqa: ARG002  (the parameters identify the data)
        """Read the rows of one split."""
        if not self.name:
            raise InputError("Which dataset? Write hub:OWNER/NAME:CONFIG:SPLIT, such as hub:glue:rte:validation.")
        only_split = self.split is None and self.config in SPLITS
        config, split = (None, self.config) if only_split else (self.config, self.split)
        dataset = self._load(config, split)
        if isinstance(dataset, Mapping):
            if len(dataset) > 1:
                splits = join_words(dataset)
                raise InputError(
                    f"The dataset '{self.name}' has the splits {splits}. Name one: hub:{self.name}:split=…"
                )
            (dataset,) = dataset.values()
        return table_from_dataset(dataset, ":".join(filter(None, ("hub", self.name, config, split))))

    def _load(self, config: str | None, split: str | None) -> Any:
        datasets = require_package("datasets", "datasets", f"Reading 'hub:{self.name}'")
        try:
            return datasets.load_dataset(self.name, config, split=split, streaming=self.streaming)
        except ConnectionError as error:
            raise InputError(
                f"The hub cannot be reached for the dataset '{self.name}', and there is no local copy ({error}). "
                "Check the network, or give a file: hs.read('data.parquet')."
            ) from error
        except Exception as error:  # the package raises errors of many types
            raise InputError(f"The dataset '{self.name}' cannot be read: {first_line(error)}.") from error
