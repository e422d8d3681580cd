"""A parser that adds up attention, with weights that depend on the two words."""

from collections.abc import Sequence
from dataclasses import dataclass

import xarray as xr

from headscope.core.probe import Probe, WordStream
from headscope.probing.trained import ProbeTrainingOptions, check_training, train_probe
from headscope.probing.word_vectors import Vectors, read_vectors, scale_vectors

MODEL = "model"
"""The vectors that are the model's input embeddings."""


@dataclass(frozen=True)
class AttentionAndWords(Probe):
    """Syntactic heads from all attention heads together, weighted by the words (Clark et al., 2019).

    The probability that word j is the head of word i is softmax_j Σ_k (W_k·[v_i; v_j]) A^k_ij + (U_k·[v_i; v_j]) A^k_ji
    over all other words j, where v are vectors of word forms without context, with a constant: by default the model's
    input embeddings, the mean over the tokens of a word, or `vectors` of a text file with a word and its numbers on
    every line, as GloVe's. Vectors are scaled to a mean squared length of 1. The rest is as for `attention`.
    """

    vectors: str = MODEL
    l2: float = 1e-4
    iterations: int = 100
    min_count: int = 100
    seed: int = 0

    cites = ("clark2019", "hewitt2019")

    def __post_init__(self) -> None:
        check_training("attention_and_words", self.l2, self.iterations, self.min_count)

    def fit(self, train: WordStream, test: WordStream) -> xr.Dataset:
        """Train on `train`, and count right answers in `test`."""
        coverage = 1.0

        def embed(forms: Sequence[str]) -> Vectors:
            nonlocal coverage
            if self.vectors == MODEL:
                return scale_vectors(train.embed(forms).double().cpu().numpy())
            table, coverage = read_vectors(self.vectors, forms)
            return scale_vectors(table)

        options = ProbeTrainingOptions(4, self.l2, self.iterations, self.min_count, self.seed)
        result = train_probe(train, test, embed, options)
        return result.assign(coverage=((), coverage, {"long_name": "share of word forms that have a vector"}))
