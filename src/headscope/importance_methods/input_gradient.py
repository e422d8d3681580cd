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
    2014); `norm1` is the sum of its absolute values. `times_input` is its dot product with the embedding, the
    first-order estimate of what the score would lose if the embedding were zero; `absolute` is the absolute value of
    that. The plain sum over dimensions is no choice: layer norms make it 0 for every token.
    """

    kind: Literal["norm", "norm1", "times_input", "absolute"] = "norm"

    cites = ("simonyan2014",)
    quantity = "input gradient"

    @property
    def signed(self) -> bool:
        """Whether scores can be negative."""
        return self.kind == "times_input"

    def __call__(self, scorer: Scorer) -> Float[Tensor, "batch token"]:
        """Return one number for each token, from one backward pass."""
        gradient = scorer.find_gradient().double()
        if self.kind in ("norm", "norm1"):
            norms: Tensor = torch.linalg.vector_norm(gradient, 1 if self.kind == "norm1" else 2, dim=-1)
            return norms
        product = (gradient * scorer.embed().double()).sum(-1)
        return product.abs() if self.kind == "absolute" else product
