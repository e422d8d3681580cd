"""A published experiment that anyone can run again."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.document import Document

Found = Mapping[str, "xr.Dataset"]
"""What a study found, by name; `numbers` is the main result, the same whenever the study is run again."""


class Study(ABC):
    """Frozen parameters, the steps of an experiment, and the report on what they found.

    A subclass is a frozen dataclass in a file of its own under `studies/`, named after it.
    """

    cites: ClassVar[tuple[str, ...]] = ()
    """The papers it comes from, as keys of `headscope cite`."""

    @abstractmethod
    def run(self, model: Any, out: Path, *, device: str | None = None, progress: bool = True) -> Found:
        """Every step, each kept in `out` as soon as it is done, and taken from there where it was done before."""

    @abstractmethod
    def document(self, found: Found) -> "Document":
        """The report on what `run` found; it needs nothing else."""


@dataclass(frozen=True)
class Studied:
    """What a study found, and the report on it before it is written."""

    found: Found
    document: "Document"

    @property
    def data(self) -> "xr.Dataset":
        """The main result."""
        return self.found["numbers"]
