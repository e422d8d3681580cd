"""Gradient of a prediction with respect to the embeddings of the tokens."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.importance import Importance, Scorer


@dataclass(frozen=True)
class InputGradient(Importance):
    """The gradient of the score with respect to each token's embedding, as one number.

    `kind=norm` is its Euclidean norm: how sensitive the score is to a small change of the token (Simonyan et al.,
    2014); `norm1` is the sum of its absolute values. `times_input` is its dot product with the embedding, the
    first-order estimate of what the score would lose if the embedding were zero; `absolute` is the absolute value of
    that. `sum` is the absolute value of its sum over dimensions, as in the code of Abnar & Zuidema (2020): how much the
    score changes if the same number is added to all dimensions.

    `at=words` differentiates by the word embedding; `at=embeddings` by what the first layer reads, with positions,
    segments and the embeddings' own layer norm. The two differ most for `sum`: a layer norm right above, or on all
    ways to the prediction, removes what is added to all dimensions alike, and leaves 0 but for rounding.
    """

    kind: Literal["norm", "norm1", "times_input", "absolute", "sum"] = "norm"
    at: Literal["words", "embeddings"] = "words"

    cites = ("simonyan2014",)
    quantity = "input gradient"

    @property
    def signed(self) -> bool:
        """Whether scores can be negative."""
        return self.kind == "times_input"

    def __call__(self, scorer: Scorer) -> Float[Tensor, "batch token"]:
        """Return one number for each token, from one backward pass."""
        embeddings, gradient = (tensor.double() for tensor in scorer.differentiate(self.at))
        if self.kind in ("norm", "norm1"):
            norms: Tensor = torch.linalg.vector_norm(gradient, 1 if self.kind == "norm1" else 2, dim=-1)
            return norms
        product = gradient.sum(-1) if self.kind == "sum" else (gradient * embeddings).sum(-1)
        return product if self.kind == "times_input" else product.abs()
