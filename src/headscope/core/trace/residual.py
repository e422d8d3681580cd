"""What is around the heads of a layer: the residual connection, normalizations, and the way to a prediction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Normalization:
    """A normalization at the scale that it had, which makes it linear: weight ⊙ (t − mean t) / scale + bias.

    A multiplication by a vector is one too, with a scale of 1.

    >>> norm = Normalization(torch.tensor([1.0, 3.0]), torch.tensor([[2.0]]), centered=True)
    >>> norm.apply(torch.tensor([[[0.0, 4.0]]])).tolist()
    [[[-1.0, 3.0]]]
    """

    weight: Float[Tensor, " hidden"]
    scale: Float[Tensor, "batch query"]  # what each vector was divided by; 1 where it was zero
    centered: bool  # whether the mean is taken away (LayerNorm; RMSNorm has no mean)
    bias: Float[Tensor, " hidden"] | None = None

    def apply(self, vectors: Float[Tensor, "batch query *more hidden"]) -> Float[Tensor, "batch query *more hidden"]:
        """Return what vectors become, without the bias: of a sum, the sum of what its parts become."""
        return self.apply_weight(vectors) / self._expand_scale(vectors)

    def apply_weight(self, vectors: Float[Tensor, "*more hidden"]) -> Float[Tensor, "*more hidden"]:
        """Return what vectors become but for the scale: the part that is the same for all queries."""
        return self._center(vectors) * self.weight.to(vectors)

    def pull_back(self, directions: Float[Tensor, "batch query hidden"]) -> Float[Tensor, "batch query hidden"]:
        """Return the directions before the normalization that are read by directions after it, its transpose."""
        return self._center(directions * self.weight.to(directions)) / self._expand_scale(directions)

    def _center(self, vectors: Tensor) -> Tensor:
        return vectors - vectors.mean(-1, keepdim=True) if self.centered else vectors

    def _expand_scale(self, vectors: Tensor) -> Tensor:
        return self.scale.to(vectors).reshape(*self.scale.shape, *[1] * (vectors.ndim - self.scale.ndim))


@dataclass(frozen=True)
class Residual:
    """What happens around the heads of one layer: x + written(Σ heads + bias) is y, and norm(y) goes on.

    A model without a normalization at a place has None there.
    """

    inputs: Float[Tensor, "batch query hidden"]  # x, what the residual connection carries past the heads
    outputs: Float[Tensor, "batch query hidden"]  # y, before `norm`
    bias: Float[Tensor, " hidden"] | None = None  # of the output projection, which no head writes
    written: Normalization | None = None  # of what the heads write, before it is added (Gemma 2)
    norm: Normalization | None = None  # of the sum (post-LN, as in BERT)

    @property
    def normalizations(self) -> tuple[Normalization, ...]:
        """What happens to the vectors that heads write, in order."""
        return tuple(norm for norm in (self.written, self.norm) if norm is not None)

    def normalize(self, vectors: Float[Tensor, "batch query hidden"]) -> Float[Tensor, "batch query hidden"]:
        """Return parts of the sum, such as x, as they go on: normalized, without its bias."""
        return vectors if self.norm is None else self.norm.apply(vectors)

    @property
    def result(self) -> Float[Tensor, "batch query hidden"]:
        """What goes on: y, normalized, with the bias."""
        if self.norm is None:
            return self.outputs
        normalized = self.norm.apply(self.outputs)
        return normalized if self.norm.bias is None else normalized + self.norm.bias.to(normalized)


@dataclass(frozen=True)
class DirectPath:
    """How a prediction reads what the heads write, through residual connections and normalizations alone.

    Σ over layers, heads and keys of A·(V·W_O)·u, plus all `parts`, is the `score`.
    """

    directions: Sequence[Float[Tensor, "batch query hidden"]]  # u of each layer: times what its heads write
    parts: Mapping[str, Float[Tensor, " batch"]]  # what else adds to the score: input, others, biases, head
    score: Float[Tensor, " batch"]  # the logit of the target, or what its function returned
    linear: bool  # whether the model's head is linear; if not, the directions are those of its gradient


@dataclass(frozen=True)
class Unembedding:
    """How the logit of each token's own word reads what the heads write, above the mean of all words.

    What a head writes at query i, times the direction of key j, times the factor of i, is what it adds to the logit of
    the word at j there, directly.
    """

    directions: Sequence[Float[Tensor, "batch key hidden"]]  # of each layer
    factors: Sequence[Float[Tensor, "batch query"]]  # what normalizations make of a query's vectors, above 0


def measure_normalization(
    vectors: Float[Tensor, "*batch hidden"],
    result: Float[Tensor, "*batch hidden"],
    weight: Float[Tensor, " hidden"] | None,
    bias: Float[Tensor, " hidden"] | None,
) -> Normalization | None:
    """Return the normalization that made `result` of vectors, at the scale that it had; None if it is none.

    It is recognised by its numbers: row by row, the result is a multiple of weight ⊙ vector, of its difference from its
    mean, or of the same with 1 + weight (Gemma).

    >>> vectors = torch.randn(1, 3, 8)
    >>> norm = torch.nn.LayerNorm(8)
    >>> found = measure_normalization(vectors, norm(vectors).detach(), norm.weight.detach(), None)
    >>> found.centered, bool(torch.allclose(found.scale, vectors.std(-1, correction=0), rtol=1e-3))
    (True, True)
    """
    tolerance = 2e-2 if result.dtype in (torch.float16, torch.bfloat16) else 1e-5
    dtype = torch.promote_types(result.dtype, torch.float32)
    vectors, result = vectors.to(dtype), result.to(dtype)
    target = result if bias is None else result - bias.to(dtype)
    ones = torch.ones(vectors.shape[-1], dtype=dtype, device=vectors.device)
    weights = (ones,) if weight is None else (weight.to(dtype), 1 + weight.to(dtype))
    for centered in (True, False):
        base = vectors - vectors.mean(-1, keepdim=True) if centered else vectors
        for factors in weights:
            found = _fit_scale(base * factors, target, tolerance)
            if found is not None:
                return Normalization(factors, found, centered, bias)
    return None


def _fit_scale(vectors: Tensor, target: Tensor, tolerance: float) -> Float[Tensor, "*batch"] | None:
    """Return the numbers that vectors must be divided by to give the target; None if no numbers do."""
    power, product = (vectors * vectors).sum(-1), (vectors * target).sum(-1)
    rows = (power > 0) & (product > 0)
    factor = torch.where(rows, product / power.where(rows, 1), 0)
    off = torch.linalg.vector_norm(target - vectors * factor[..., None])
    if not bool(off <= tolerance * torch.linalg.vector_norm(target)):
        return None
    return torch.where(rows, 1 / factor.where(rows, 1), 1)
