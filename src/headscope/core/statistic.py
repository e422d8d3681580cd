"""A number about attention that adds up over examples."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from headscope.core.catalog import statistics
from headscope.core.errors import InputError
from headscope.core.lens import Lens
from headscope.core.spec import file_name
from headscope.core.state import State

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.batch import Batch


class Statistic(ABC):
    """Frozen parameters, what one batch contributes, and what all of it comes to.

    A subclass is a frozen dataclass in a file of its own under `statistics/`, named after it. Most are `PerExample`.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"maps"})
    """What it observes: maps; tags of words; against, a second model; text alone, for which no model is loaded."""

    scope: ClassVar[Literal["layer", "stack"]] = "layer"
    """Whether each layer is measured alone, or the whole stack at once."""

    cites: ClassVar[tuple[str, ...]] = ()
    """The papers it comes from, as keys of `headscope cite`."""

    def lenses(self, lens: Lens) -> Sequence[Lens]:  # noqa: ARG002
        """Other lenses whose maps it needs beside those of the lens that is measured."""
        return ()

    @abstractmethod
    def observe(self, batch: "Batch") -> State:
        """What one batch contributes."""

    @abstractmethod
    def finish(self, state: State) -> "xr.Dataset":
        """What a state comes to; nothing seen is NaN with n = 0."""

    @classmethod
    def from_spec(cls, spec: str) -> "Statistic":
        """A statistic from its spec."""
        made: Statistic = statistics.make(spec)
        return made


def check_fraction(statistic: Statistic, name: str) -> None:
    """Refuse a parameter that is no fraction of one, 0 ≤ x < 1; for use in `__post_init__`."""
    if not 0 <= (value := getattr(statistic, name)) < 1:
        kind = file_name(type(statistic))
        raise InputError(f"The parameter '{name}' of '{kind}' must be at least 0 and less than 1, but got {value}.")
