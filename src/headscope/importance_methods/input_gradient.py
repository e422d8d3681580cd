"""Gradient of a prediction with respect to the embeddings of the tokens."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.importance import Importance, Scorer


@dataclass(frozen=True)
class InputGradient(Importance):
    """The gradient of the score with respect to each token's word embedding, as one number.

    `kind=norm` is its Euclidean norm: how sensitive the score is to a small change of the token (Simonyan et al.,
    2014). `times_input` is its dot product with the embedding, the first-order estimate of what the score would lose if
    the embedding were zero; `absolute` is the absolute value of that. `sum` is |Σ ∂score/∂x| over the dimensions, as the
    code of Abnar & Zuidema (2020) computes it: it depends on the basis of the embeddings.
    """

    kind: Literal["norm", "times_input", "absolute", "sum"] = "norm"

    cites = ("simonyan2014",)
    quantity = "input gradient"

    @property
    def signed(self) -> bool:
        """Whether scores can be negative."""
        return self.kind == "times_input"

    def __call__(self, scorer: Scorer) -> Float[Tensor, "batch token"]:
        """Return one number for each token, from one backward pass."""
        gradient = scorer.find_gradient().double()
        if self.kind == "norm":
            norms: Tensor = torch.linalg.vector_norm(gradient, dim=-1)
            return norms
        if self.kind == "sum":
            return gradient.sum(-1).abs()
        product = (gradient * scorer.embeddings.double()).sum(-1)
        return product.abs() if self.kind == "absolute" else product
