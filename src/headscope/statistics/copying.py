"""How much heads raise the logits of the words that they attend to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.catalog import lenses
from headscope.core.lens import Lens
from headscope.core.spec import to_spec
from headscope.maps.per_example import PerExample

LENS = "logit:of=keys"


@dataclass(frozen=True)
class Copying(PerExample):
    """What a head adds directly to the logits of the words that it attends to, by its own attention; mean over queries.

    Σ_j A_ij·(V_j·W_O)·u_j, u_j the direction of the word at key j in the unembedding, above the mean of all words,
    through the last normalization at its scale (after Elhage et al., 2021), whichever lens is measured. Ordinary tokens
    alone ask and count. `copying_shuffled` is the null: the mean over all ways to exchange the words of a text, with
    the same attention and values. Only for language models whose logits are linear in their residual stream.
    """

    scope = "layer"
    cites = ("elhage2021",)
    quantities: ClassVar = {
        "copying": "logits of attended words",
        "copying_shuffled": "logits of shuffled words",
    }

    def lenses(self, lens: Lens) -> Sequence[Lens]:
        """Return the lens whose diagnostic it is, unless that is measured."""
        wanted: Lens = lenses.make(LENS)
        return () if wanted == lens else (wanted,)

    def axes(self, batch: Batch) -> Mapping[str, Sequence[int]]:
        """Return all heads, also where the measured lens merges them."""
        return {"head": batch.maps["model", to_spec(lenses.make(LENS))].heads}

    def values(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the mean of each head, and its null, diagnostics of the lens."""
        diagnostics = batch.maps["model", to_spec(lenses.make(LENS))].diagnostics
        return {name: diagnostics[name] for name in self.quantities}
