"""A published experiment that anyone can repeat."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from headscope.core.catalog import HasCard
from headscope.core.options import option as option

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.document import Document

Results = Mapping[str, "xr.Dataset"]
"""The results of a study by name; `numbers` is the main one, and is the same whenever the study is repeated."""


@dataclass(frozen=True)
class Progress:
    """The step that a study starts now."""

    part: str  # such as the task
    step: int
    total: int
    text: str

    def __str__(self) -> str:
        return f"{self.part}, step {self.step} of {self.total}: {self.text}"


ProgressCallback = Callable[[Progress], None]


class Study(ABC):
    """The parameters of an experiment, its steps, and the report on its results.

    A subclass is a frozen dataclass. In a package of studies, which the entry point `headscope.studies` names, it has a
    package or file named after it. Its fields, best declared with `option`, are the options of `headscope study`.

    >>> class CountWords(hs.Study):
    ...     def run(self, model, out, **options): ...
    ...     def document(self, results): ...
    >>> isinstance(CountWords(), hs.Study)
    True
    """

    cites: ClassVar[tuple[str, ...]] = ()
    """The papers it repeats, as keys of `headscope cite`."""

    display_options: ClassVar[tuple[str, ...]] = ()
    """Parameters that change no number, only what the report shows. They may differ when a study is run again."""

    @abstractmethod
    def run(
        self,
        model: Any,
        out: Path,
        *,
        device: str | None = None,
        progress: ProgressCallback | None = None,
        overwrite: bool = False,
    ) -> Results:
        """Run every step. A finished step is stored in `out`, and read from there in later runs.

        Steps that were run with other settings are an error unless `overwrite` is set.

        Parameters
        ----------
        model
            A model, or anything that `hs.load` loads.
        out
            The folder of the steps.
        device
            cpu or cuda. Default: cuda if available.
        progress
            Called with every step that starts.
        overwrite
            Replace steps that were run with other settings.
        """

    @abstractmethod
    def document(self, results: Results) -> "Document":
        """Return the report on the results of `run`.

        Parameters
        ----------
        results
            The results by name.
        """


@dataclass(frozen=True)
class StudyResult(HasCard):
    """The results of a study, and the report on them."""

    results: Results
    document: "Document"

    @property
    def data(self) -> "xr.Dataset":
        """The main result."""
        return self.results["numbers"]
