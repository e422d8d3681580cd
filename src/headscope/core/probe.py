"""Interface of probes, which predict linguistic structure from attention."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from headscope.core.catalog import probes
from headscope.core.example import Example
from headscope.core.spec import check_choices

if TYPE_CHECKING:
    import xarray as xr

    from headscope.core.maps import Maps


@runtime_checkable
class WordStream(Protocol):
    """The maps between words of many examples, batch by batch.

    It can be iterated any number of times, with the same batches each time, and holds none of them in memory.
    """

    @property
    def examples(self) -> Sequence[Example]:
        """All examples, in the order of the data; reading them runs no model."""

    def __iter__(self) -> "Iterator[Maps]":
        """Yield the maps of one batch after another, as `hs.to_words` returns them."""

    def batches(self, start: int) -> "Iterator[Maps]":
        """Yield the maps of the batches from number `start` on; those before are not computed."""

    def embed(self, words: Sequence[str]) -> Float[Tensor, "word hidden"]:
        """Return the model's input embedding of each word: the mean over its tokens, without positions."""


class Probe(ABC):
    """Frozen parameters, and a fit to the attention between words.

    A subclass is a frozen dataclass, in a notebook, in a script or in a file of its own. Its name is that of the class
    in small letters. Whatever is chosen or trained is chosen on `train` and reported on `test`, which are texts of
    different documents.

    >>> from headscope.probes import Dependency
    >>> isinstance(Dependency(), hs.Probe)
    True
    """

    cites: ClassVar[tuple[str, ...]] = ()
    """The papers it comes from, as keys of `headscope cite` or BibTeX entries."""

    def __post_init__(self) -> None:
        """Check the values of fields that are choices."""
        check_choices(self)

    def prepare(self, examples: Sequence[Example]) -> list[Example]:
        """Return the texts that the model reads, made of the examples of the data, such as sentences joined.

        Parameters
        ----------
        examples
            The examples of the data.
        """
        return list(examples)

    @abstractmethod
    def fit(self, train: WordStream, test: WordStream) -> "xr.Dataset":
        """Return what was chosen on `train`, and how good it is on `test`.

        `accuracy` has the axes task (what is predicted, and a control), predictor (the probe first, then baselines)
        and one for groups of words, such as `relation`; `results/accuracies.py` makes it, with intervals.

        Parameters
        ----------
        train
            The maps of the examples to fit.
        test
            The maps of the examples to report on.
        """

    @classmethod
    def from_spec(cls, spec: str) -> "Probe":
        """Build a probe from its spec.

        Parameters
        ----------
        spec
            A name, or a name with parameters: name:parameter=value.
        """
        probe: Probe = probes.make(spec)
        return probe
