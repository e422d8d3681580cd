"""Scores of words as heads of one another: weighted sums of the attention between them, and the best weights."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.core.errors import InputError
from headscope.uncertainty.intervals import Array

Attention = Float[np.ndarray, "word other head"]
"""The weights of all heads of all layers, between the words of a sentence."""

Factors = Float[np.ndarray, "word kind head"]
"""What a head counts for a word, by kind of use.

0: as dependent, for its attention to another word; 1: as dependent, for the attention of another word to it; 2: as
possible head, for the attention to it; 3: as possible head, for its attention to another word. Factors of two kinds
leave out those of the possible head.
"""

TOLERANCE = 1e-6
"""Relative change of the loss below which L-BFGS has converged."""

ArcWeights = Float[np.ndarray, "dim kind head"]
"""A word's factors are its vector times the weights."""


@dataclass(frozen=True)
class Sentence:
    """The attention between the words of a sentence, and the heads to predict."""

    attention: Attention
    forms: Int[np.ndarray, " word"]  # rows in a table of vectors
    heads: Int[np.ndarray, "task word"]  # number of the head, -1 where nothing is to predict
    groups: Bool[np.ndarray, "word relation"]
    document: int

    def count_hits(self, predicted: Int[np.ndarray, "*axes word"], task: int) -> Int[np.ndarray, "*axes relation"]:
        """Return how many words of each relation have these heads."""
        heads = self.heads[task]
        right = (predicted == heads) & (heads >= 0)
        return np.asarray(right.astype(int) @ self.groups.astype(int))


def score_arcs(attention: Attention, factors: Factors) -> Float[np.ndarray, "word other"]:
    """Return the score of every word, along `other`, as the head of every word.

    The score of j as the head of i is Σ_k A^k_ij (f0_ki + f2_kj) + A^k_ji (f1_ki + f3_kj) over all attention heads k.
    """
    rows = attention @ factors[:, 0::3].swapaxes(1, 2)  # kinds 0 and 3: of the word that attends
    columns = attention.swapaxes(0, 1) @ factors[:, 1:3].swapaxes(1, 2)  # kinds 1 and 2: of the word attended to
    scores = rows[..., 0] + columns[..., 0]
    return np.asarray(scores if factors.shape[1] == 2 else scores + rows[..., 1].T + columns[..., 1].T)


def differentiate_arcs(attention: Attention, gradient: Float[np.ndarray, "word other"], factor_kinds: int) -> Factors:
    """Return the gradient with respect to the factors from that with respect to the scores."""
    sides = (gradient,) if factor_kinds == 2 else (gradient, gradient.T)
    stacked = np.stack(sides, -1)  # word other side
    rows = attention.swapaxes(1, 2) @ stacked
    columns = attention.transpose(1, 2, 0) @ stacked
    order = (
        [rows[..., 0], columns[..., 0]]
        if factor_kinds == 2
        else [rows[..., 0], columns[..., 0], columns[..., 1], rows[..., 1]]
    )
    return np.stack(order, 1)


def predict_heads(scores: Float[np.ndarray, "word other"]) -> Int[np.ndarray, " word"]:
    """Return the best-scored other word of each word; of a sentence of one word, that word."""
    others = scores.copy()
    np.fill_diagonal(others, -np.inf)
    return np.asarray(others.argmax(-1))


def find_loss(
    scores: Float[np.ndarray, "word other"], heads: Int[np.ndarray, " word"]
) -> tuple[float, Float[np.ndarray, "word other"]]:
    """Return the summed negative log-likelihood of the heads, among all other words, and its gradient."""
    has_head = np.flatnonzero(heads >= 0)
    others = scores.astype(np.float64)
    np.fill_diagonal(others, -np.inf)
    others = others[has_head]
    others -= others.max(-1, keepdims=True)
    probability = np.exp(others)
    total = probability.sum(-1, keepdims=True)
    index = np.arange(len(has_head)), heads[has_head]
    loss = float((np.log(total[:, 0]) - others[index]).sum())
    gradient = np.zeros(scores.shape)
    probability /= total
    probability[index] -= 1
    gradient[has_head] = probability
    return loss, gradient.astype(scores.dtype)


def fit_weights(
    sentences: Iterable[Sentence],
    vectors: Float[np.ndarray, "form dim"],
    *,
    task: int,
    factor_kinds: int,
    l2: float,
    iterations: int,
) -> tuple[ArcWeights, bool]:
    """Return the weights of the lowest mean loss per word + l2/2 · |weights|², and whether L-BFGS converged.

    The loss is convex, so that there is one optimum; an iteration reads all sentences once, rarely more often.
    """
    from scipy.optimize import minimize

    shape = (vectors.shape[1], factor_kinds, next(iter(sentences)).attention.shape[-1])

    def evaluate(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(shape[0], -1).astype(vectors.dtype)
        factors = (vectors @ weights).reshape(len(vectors), *shape[1:])
        gradient, loss, count = np.zeros_like(factors), 0.0, 0
        for sentence in sentences:
            scores = score_arcs(sentence.attention, factors[sentence.forms])
            sentence_loss, slope = find_loss(scores, sentence.heads[task])
            np.add.at(gradient, sentence.forms, differentiate_arcs(sentence.attention, slope, factor_kinds))
            loss, count = loss + sentence_loss, count + int((sentence.heads[task] >= 0).sum())
        slopes = (vectors.T @ gradient.reshape(len(vectors), -1)).astype(np.float64).ravel() / count
        return loss / count + l2 / 2 * float(flat @ flat), slopes + l2 * flat

    options = {"maxiter": iterations, "maxcor": 20, "ftol": TOLERANCE}
    result = minimize(evaluate, np.zeros(int(np.prod(shape))), jac=True, method="L-BFGS-B", options=options)
    if not np.isfinite(result.fun):
        raise InputError("The loss of the probe is not finite: its attention or its vectors hold NaN or infinity.")
    return result.x.reshape(shape), bool(result.success)
