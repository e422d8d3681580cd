"""BLEU and chrF of translations, from counts that add up over examples."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from headscope.core.errors import require_package

ORDERS = 4  # of the n-grams of words that BLEU counts
CHARACTER_ORDERS = 6  # of the n-grams of characters that chrF counts
BETA = 2  # weight of recall in chrF


def count_matches(
    translations: Sequence[str], references: Sequence[str]
) -> tuple[Int[np.ndarray, "example 10"], Int[np.ndarray, "example 18"]]:
    """Return the counts of each translation that BLEU and chrF are computed from, as sacrebleu has them.

    For BLEU: the words of the translation and of the reference, then the matching n-grams of each order, then all
    n-grams of the translation. For chrF, for each order of n-grams of characters: those of the translation, those of
    the reference, and the matching ones.
    """
    metrics = require_package("sacrebleu", "translation", "Scoring translations").metrics
    bleu, chrf = (
        np.array(metric._extract_corpus_statistics(translations, [references]), dtype=np.int64)
        for metric in (metrics.BLEU(force=True), metrics.CHRF(char_order=CHARACTER_ORDERS, beta=BETA))
    )
    return bleu, chrf


def bleu_from_sums(sums: Float[np.ndarray, "*draws 10"]) -> Float[np.ndarray, "*draws"]:
    """Return BLEU in percent (Papineni et al., 2002) from summed counts, smoothed as sacrebleu does by default.

    The precision of an order without matches is 1 / (2 · total), that of the next such order 1 / (4 · total), and so
    on; BLEU is 0 where nothing matches, or where no translation is long enough for an order.
    """
    length, reference = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2 : 2 + ORDERS], sums[..., 2 + ORDERS :]
    missed = (matches == 0) & (totals > 0)
    smoothed = np.where(missed, 0.5 ** np.cumsum(missed, axis=-1), matches)
    precision = smoothed / np.where(totals > 0, totals, 1)
    defined = np.asarray(matches.any(-1) & (totals > 0).all(-1))
    logs = np.log(np.where(defined[..., None], precision, 1.0)).mean(-1)
    brevity = np.minimum(0.0, 1 - reference / np.where(length > 0, length, 1))
    return np.where(defined, 100 * np.exp(logs + brevity), 0.0)


def chrf_from_sums(sums: Float[np.ndarray, "*draws 18"]) -> Float[np.ndarray, "*draws"]:
    """Return chrF in percent (Popović, 2015) from summed counts: F of the mean precision and recall of all orders."""
    counts = sums.reshape(*sums.shape[:-1], CHARACTER_ORDERS, 3)
    written, expected, matches = counts[..., 0], counts[..., 1], counts[..., 2]
    defined = (written > 0) & (expected > 0)
    orders = np.maximum(defined.sum(-1), 1)
    precision = _divide(np.where(defined, matches, 0), written).sum(-1) / orders
    recall = _divide(np.where(defined, matches, 0), expected).sum(-1) / orders
    return np.asarray(100 * _divide((1 + BETA**2) * precision * recall, BETA**2 * precision + recall))


def _divide(numerator: Any, denominator: Any) -> Float[np.ndarray, "*shape"]:
    """Return part / whole, and 0 where whole is 0."""
    return np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1.0), 0.0)
