"""A number about attention that adds up over examples."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from headscope.core.catalog import statistics
from headscope.core.errors import InputError
from headscope.core.lens import Lens
from headscope.core.spec import file_name, to_spec
from headscope.core.state import State

if TYPE_CHECKING:
    import xarray as xr
    from torch import Tensor

    from headscope.core.batch import Batch
    from headscope.core.example import Example
    from headscope.core.tokens import Tokens


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


class PerExample(Statistic):
    """A statistic that gives every example one number for each layer and head, and maybe along further axes.

    Its result is the mean over examples, with their spread, count and confidence interval: the unit is the example,
    so that long texts do not count for more.
    """

    units: ClassVar[str] = ""
    """What its values are counted in, for the labels of figures."""

    def axes(self, batch: "Batch") -> Mapping[str, Sequence[Any]]:  # noqa: ARG002
        """Further axes after layer and head, with the labels along them.

        One called `head` says that the values are for other heads than those of the maps that are measured.
        """
        return {}

    def tokens(
        self,
        examples: "Sequence[Example]",  # noqa: ARG002
        queries: "Tokens",  # noqa: ARG002
        keys: "Tokens",  # noqa: ARG002
    ) -> "tuple[Tensor, ...]":
        """What it must know of the tokens, as small tensors of the host, found once for all layers.

        On a GPU they are found while the model is still at work.
        """
        return ()

    def known(self, batch: "Batch") -> tuple["Tensor", ...]:
        """What `tokens` gives for a batch, where its maps lie."""
        from headscope.core.transfer import copy_to_device

        maps, ready = batch.focus, batch.known.get(to_spec(self))
        if ready is not None:
            return ready
        return copy_to_device(maps.visible[0].device, self.tokens(batch.examples, maps.queries, maps.keys))

    @abstractmethod
    def values(self, batch: "Batch") -> Mapping[str, "Tensor"]:
        """For each variable, batch layer head and the further axes; NaN where an example has no value.

        The first variable has the statistic's own name; others are called `name_something`.
        """

    def observe(self, batch: "Batch") -> State:
        """The moments of every variable over the examples of a batch."""
        from headscope.core.per_example import make_state

        labels = {"layer": batch.focus.layers, "head": batch.focus.heads, **self.axes(batch)}
        ids = [example.id for example in batch.examples]
        return make_state(self, self.values(batch), ids, labels)

    def finish(self, state: State) -> "xr.Dataset":
        """For each variable x: x (the mean), x_sd, x_n, x_low and x_high, over layer, head and the further axes."""
        from headscope.core.per_example import summarize_state

        return summarize_state(state, units=self.units)


def check_fraction(statistic: Statistic, name: str) -> None:
    """Refuse a parameter that is no fraction of one, 0 ≤ x < 1; for use in `__post_init__`."""
    if not 0 <= (value := getattr(statistic, name)) < 1:
        kind = file_name(type(statistic))
        raise InputError(f"The parameter '{name}' of '{kind}' must be at least 0 and less than 1, but got {value}.")
