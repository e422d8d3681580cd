"""How much each token of a text matters for a prediction: the interface of the methods, and their results."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from headscope.core.catalog import HasCard
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.prose import count_noun
from headscope.core.spec import check_choices
from headscope.core.tokens import Tokens
from headscope.core.trace import CaptureSource

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Array = np.ndarray[Any, np.dtype[Any]]


@runtime_checkable
class Scorer(Protocol):
    """A model and one batch of texts, as a method sees them: what it can change, and the score of the target."""

    @property
    def tokens(self) -> Tokens:
        """The tokens of the texts."""

    @property
    def ids(self) -> Int[Tensor, "batch token"]:
        """The ids of the tokens."""

    @property
    def scores(self) -> Float[Tensor, " batch"]:
        """The scores of the target, with nothing changed."""

    def embed(self, ids: Int[Tensor, "row token"] | None = None) -> Float[Tensor, "row token hidden"]:
        """Return the word embeddings of the texts, or of other ids."""

    def find_id(self, name: str, parameter: str = "replace") -> int:
        """Return the id of a special token: "mask", "unk" or "pad"; an error advises on the parameter that names it."""

    def score(self, rows: Sequence[int], ids: Int[Tensor, "row token"]) -> Float[Tensor, " row"]:
        """Return the scores of examples with other tokens, in several forward passes where memory is short."""

    def score_embeddings(self, row: int, embeddings: Float[Tensor, "copy token hidden"]) -> Float[Tensor, " copy"]:
        """Return the scores of copies of one example with other embeddings, as part of a graph."""

    def differentiate(
        self, at: Literal["words", "embeddings"] = "words"
    ) -> tuple[Float[Tensor, "batch token hidden"], Float[Tensor, "batch token hidden"]]:
        """Return the word embeddings, or what the first layer reads, and each example's gradient with respect to it."""


class Importance(ABC):
    """Frozen parameters and a call that says how much each token matters for the score of a target.

    A subclass is a frozen dataclass in a file of its own under `importance_methods/`, named after it.

    >>> class Position(hs.Importance):
    ...     def __call__(self, scorer):
    ...         return scorer.tokens.real.cumsum(-1).double()
    >>> result = hs.importances(model, "The cat sat.", Position(), target=lambda output: output.pooler_output[:, 0])
    >>> result.scores[0].tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    """

    cites: ClassVar[tuple[str, ...]] = ()
    """The papers that define this method, as keys of `headscope cite` or BibTeX entries."""

    quantity: ClassVar[str] = "importance"
    """What its scores are, for a colour bar."""

    def __post_init__(self) -> None:
        """Check the values of fields that are choices."""
        check_choices(self)

    @property
    def signed(self) -> bool:
        """Whether scores can be negative: tokens that speak against the target."""
        return True

    @abstractmethod
    def __call__(
        self, scorer: Scorer
    ) -> Float[Tensor, "batch token"] | tuple[Float[Tensor, "batch token"], Mapping[str, Float[Tensor, " batch"]]]:
        """Return the scores of all tokens, NaN where not defined; with diagnostics per example where there are any."""


@dataclass(frozen=True)
class Importances(HasCard):
    """How much each token of each text matters for a prediction, as `hs.importances` returns it.

    Scores are arrays with one number for each token of an example, NaN where the method defines none (special tokens,
    for blank-out).

    >>> result = hs.importances(model, "It rained.", "input_gradient", target=lambda output: output.pooler_output[:, 0])
    >>> result.tokens[0], result.scores[0].shape
    (('[CLS]', 'it', 'rained', '.', '[SEP]'), (5,))
    """

    examples: tuple[Example, ...]
    tokens: tuple[tuple[str, ...], ...]
    pieces: tuple[tuple[str, ...], ...]  # the texts as written, cut at tokens; together the running text
    scores: tuple[Float[np.ndarray, " _"], ...]  # one number for each token
    special: tuple[Array, ...]  # which tokens are special
    words: tuple[Array, ...]  # index of each token's word, -1 = none
    method: str
    target: str
    answers: tuple[str, ...]  # the class or word whose score it is, for each example
    score: Float[np.ndarray, " example"]  # of the unchanged texts
    signed: bool = True
    quantity: str = "importance"
    diagnostics: Mapping[str, Float[np.ndarray, " example"]] = field(default_factory=dict)
    source: CaptureSource | None = None  # the model, for the provenance of saved results

    def __repr__(self) -> str:
        tokens = sum(map(len, self.tokens))
        return (
            f"Importances({self.method}, target {self.target}, of {count_noun(len(self.examples), 'example')}, "
            f"{count_noun(tokens, 'token')})"
        )

    def __len__(self) -> int:
        return len(self.examples)

    def sel(self, example: Any) -> "Importances":
        """Return some examples, by position, by id, by a list of these or by a slice, in the order given.

        Parameters
        ----------
        example
            Positions, ids, a list of these, or a slice.
        """
        if isinstance(example, slice):
            example = range(*example.indices(len(self)))
        single = isinstance(example, str) or not isinstance(example, Iterable)
        wanted = [example] if single else example
        rows = [self._find_row(which) for which in wanted]
        fields = ("examples", "tokens", "pieces", "scores", "special", "words", "answers")
        changes: dict[str, Any] = {name: tuple(getattr(self, name)[row] for row in rows) for name in fields}
        changes["diagnostics"] = {name: table[rows] for name, table in self.diagnostics.items()}
        return replace(self, score=self.score[rows], **changes)

    def _find_row(self, which: Any) -> int:
        ids = [example.id for example in self.examples]
        if isinstance(which, str) and which in ids:
            return ids.index(which)
        if isinstance(which, Integral) and -len(ids) <= int(which) < len(ids):
            return int(which)
        raise InputError(f"There is no example {which!r}: these importances are of {len(ids)}, counted from 0.")

    def dataset(self, example: int = 0) -> "xr.Dataset":
        """Return one example as an xarray Dataset with dimensions method and token: what figures draw.

        Parameters
        ----------
        example
            The position of the example.
        """
        from headscope.core.importance.dataset import make_dataset

        return make_dataset(self, self._find_row(example))

    def to_dataset(self) -> "xr.Dataset":
        """Return all examples as an xarray Dataset: `importance(method, example, token)`, NaN behind shorter texts."""
        from headscope.core.importance.dataset import make_batch_dataset

        return make_batch_dataset(self)

    def to_dataframe(self) -> "pd.DataFrame":
        """Return a table with a row for each token."""
        from headscope.core.importance.dataset import make_dataframe

        return make_dataframe(self)
