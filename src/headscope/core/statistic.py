"""Interface of statistics of attention, which accumulate over examples."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from headscope.core.catalog import statistics
from headscope.core.errors import InputError
from headscope.core.lens import Lens
from headscope.core.spec import entry_name
from headscope.core.state import State

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.batch import Batch


class Statistic(ABC):
    """Parameters of a statistic, the state that one batch contributes, and the result of a state.

    A subclass is a frozen dataclass, in a notebook, in a script or in a file of its own. Its name is that of the class
    in small letters. Most are derived from `PerExample`.

    >>> from headscope.statistics import Entropy
    >>> isinstance(Entropy(), hs.Statistic)
    True
    """

    needs: ClassVar[frozenset[str]] = frozenset({"maps"})
    """What it observes: "maps", "tags" of words, "against" (a second model), or "text" alone, which loads no model."""

    scope: ClassVar[Literal["layer", "stack"]] = "stack"
    """Whether it needs all layers at once. "layer": each alone, so that `measure` frees one before the next."""

    row_wise: ClassVar[bool] = False
    """Whether it is a sum over queries, so that some queries are measured without others: see `RowWise`."""

    cites: ClassVar[tuple[str, ...]] = ()
    """The papers it comes from, as keys of `headscope cite` or BibTeX entries."""

    def lenses(self, lens: Lens) -> Sequence[Lens]:  # noqa: ARG002
        """Return other lenses whose maps it needs, beside the measured lens.

        Parameters
        ----------
        lens
            The measured lens.
        """
        return ()

    def files(self) -> Mapping[str, Path]:
        """Return files that decide its numbers, by name, such as the weights of a classifier."""
        return {}

    @abstractmethod
    def observe(self, batch: "Batch") -> State:
        """Return the state of one batch.

        Parameters
        ----------
        batch
            Examples and their maps.
        """

    @abstractmethod
    def finish(self, state: State) -> "xr.Dataset":
        """Return the result of a state; without examples it is NaN with n = 0.

        Parameters
        ----------
        state
            The sum of the states of all batches.
        """

    @classmethod
    def from_spec(cls, spec: str) -> "Statistic":
        """Build a statistic from its spec.

        Parameters
        ----------
        spec
            A name, or a name with parameters: name:parameter=value.
        """
        statistic: Statistic = statistics.make(spec)
        return statistic


def check_fraction(statistic: Statistic, name: str) -> None:
    """Raise InputError unless a parameter is in [0, 1); for use in `__post_init__`."""
    if not 0 <= (value := getattr(statistic, name)) < 1:
        statistic_name = entry_name(type(statistic))
        raise InputError(
            f"The parameter '{name}' of '{statistic_name}' must be at least 0 and less than 1, but got {value}."
        )
