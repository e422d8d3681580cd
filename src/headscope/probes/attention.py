"""A parser that adds up attention: one trained weight for each attention head and direction."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.core.probe import Probe, WordStream
from headscope.probing.trained import ProbeTrainingOptions, check_training, train_probe


@dataclass(frozen=True)
class Attention(Probe):
    """Syntactic heads from all attention heads together, without words (Clark et al., 2019).

    The probability that word j is the head of word i is softmax_j Σ_k w_k A^k_ij + u_k A^k_ji over all other words j,
    with two weights for each attention head k. They minimize the mean loss per word of the training documents plus
    l2/2 times their squares, by L-BFGS with at most this number of `iterations`. The accuracy of `all` relations is the
    unlabeled attachment score (UAS), over all words but roots, punctuation included.

    Baselines: the best fixed offset of each relation, chosen on the training documents, and the next word
    (right-branching). The control task gives every word form an offset to its head at random, by `seed`, and trains
    weights of its own.
    """

    l2: float = 1e-5
    iterations: int = 100
    min_count: int = 100
    seed: int = 0

    cites = ("clark2019", "hewitt2019")

    def __post_init__(self) -> None:
        check_training("attention", self.l2, self.iterations, self.min_count)

    def fit(self, train: WordStream, test: WordStream) -> xr.Dataset:
        """Train on `train`, and count right answers in `test`."""
        options = ProbeTrainingOptions(2, self.l2, self.iterations, self.min_count, self.seed)
        return train_probe(train, test, lambda forms: np.ones((len(forms), 1), np.float32), options)
