"""Synthetic maps of every class, from softmax attention with sinks, bands, blocks and content.

They are added to the labelled maps in training, with less weight.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import special

from headscope.patterns import CLASSES
from headscope_patterns.labels.labelled_maps import Array
from headscope_patterns.train.training_set import TrainingMap

Random = np.random.Generator
softmax: Callable[[Array], Array] = partial(special.softmax, axis=-1)


def make_synthetic_maps(count: int, *, seed: int = 0, sample_weight: float = 1.0) -> list[TrainingMap]:
    """Return maps of all classes in turn, of 16 to 128 tokens, more than half of them of pairs."""
    random = np.random.default_rng(seed)
    return [_make_map(CLASSES[index % len(CLASSES)], random, sample_weight) for index in range(count)]


def _make_map(label: str, random: Random, sample_weight: float) -> TrainingMap:
    """Return a map of a class; about one in seven is signed and noisy, like effective attention."""
    n = round(np.exp(random.uniform(np.log(16), np.log(128))))
    cut = int(n * random.uniform(0.25, 0.75)) if random.random() < 0.6 else n
    segments = np.arange(n) >= cut
    weights = _MAKERS[label](n, segments, random)
    if random.random() < 0.15:
        weights = weights + random.normal(0, random.uniform(0.05, 0.3) / n, (n, n))
    return TrainingMap(weights.astype(np.float32), tuple(segments.astype(int).tolist()), label, sample_weight)


def content(n: int, random: Random, strength: float) -> Array:
    """Return rows that differ: softmax attention of random queries and keys of few dimensions."""
    inner = int(random.integers(3, 9))
    scores = random.normal(size=(n, inner)) @ random.normal(size=(inner, n)) / np.sqrt(inner)
    return softmax(strength * (0.8 * scores + 0.6 * random.normal(size=(n, n))))


def columns(n: int, segments: Array, random: Random, spread: float = 0.3) -> Array:
    """Return a map with all mass in one to three columns, often at the start, the end or a [SEP]; rarely in many."""
    candidates = [0, n - 1, max(1, int((~segments).sum()) - 1), *random.integers(0, n, 2).tolist()]
    sinks = random.choice(candidates, size=int(random.integers(1, 4)), replace=False)
    stripes = np.flatnonzero(random.random(n) < 0.2)
    keys = stripes if len(stripes) and random.random() < 0.15 else sinks
    scores = np.full((n, n), -np.inf)
    scores[:, keys] = random.normal(0, 0.7, len(keys)) + random.normal(0, spread, (n, len(keys)))
    return softmax(scores)


def band(n: int, random: Random) -> Array:
    """Return a map with all mass near one offset, in a narrow or a wider band."""
    offset = int(random.choice([-1, 1, 0, -2, 2, int(random.integers(-6, 7))], p=[0.3, 0.25, 0.15, 0.1, 0.1, 0.1]))
    width = random.choice([0.3, random.uniform(0.3, 2.0)])
    distance = np.arange(n) - np.arange(n)[:, None] - offset
    return softmax(-(distance**2) / (2 * width**2) + random.normal(0, 0.3, (n, n)))


def blocks(n: int, segments: Array, random: Random) -> Array:
    """Return noisy uniform weight within the texts of a pair, rarely across them; without a pair, over the map."""
    scores = random.normal(0, random.uniform(0, 0.9), (n, n))
    same = segments[:, None] == segments
    across = random.random() < 0.1
    drop = random.uniform(2.0, 6.0) if segments.any() and random.random() < 0.7 else 0.0
    return softmax(np.where(same ^ across, scores, scores - drop))


def mix(parts: list[Array], shares: list[float], random: Random, *, spread: float = 0.4) -> Array:
    """Return a mixture of maps in these shares, which vary from row to row."""
    logits = np.log(np.maximum(shares, 1e-6)) + random.normal(0, spread, (len(parts[0]), len(parts)))
    mixture: Array = np.einsum("qp,pqk->qk", softmax(logits), np.stack(parts))
    return mixture


def _vertical(n: int, segments: Array, random: Random) -> Array:
    share, slight = random.uniform(0.55, 0.97), random.uniform(0, 0.1)
    parts = [columns(n, segments, random), band(n, random), content(n, random, random.uniform(0.3, 2))]
    return mix(parts, [share, slight, max(0.02, 1 - share - slight)], random)


def _diagonal(n: int, segments: Array, random: Random) -> Array:
    share, slight = random.uniform(0.55, 0.97), random.uniform(0, 0.1)
    parts = [band(n, random), columns(n, segments, random), content(n, random, random.uniform(0.3, 2))]
    return mix(parts, [share, slight, max(0.02, 1 - share - slight)], random)


def _both(n: int, segments: Array, random: Random) -> Array:
    share, part = random.uniform(0.6, 0.97), random.uniform(0.33, 0.67)
    parts = [columns(n, segments, random), band(n, random), content(n, random, random.uniform(0.3, 2))]
    return mix(parts, [share * part, share * (1 - part), 1 - share], random, spread=random.uniform(0.2, 1.5))


def _block(n: int, segments: Array, random: Random) -> Array:
    shares = [1.0, random.uniform(0, 0.3) * (random.random() < 0.5), random.uniform(0, 0.1)]
    return mix([blocks(n, segments, random), columns(n, segments, random), band(n, random)], shares, random)


def _heterogeneous(n: int, segments: Array, random: Random) -> Array:
    shares = [1.0, random.uniform(0, 0.3), random.uniform(0, 0.25)]
    near = softmax(-(((np.arange(n) - np.arange(n)[:, None]) / (n * random.uniform(0.15, 0.4))) ** 2))
    spots = content(n, random, random.uniform(1.5, 4))
    if random.random() < 0.3:  # a broad band is not diagonal
        spots = spots * near / (spots * near).sum(-1, keepdims=True)
    parts = [spots, columns(n, segments, random), band(n, random)]
    return mix(parts, shares, random, spread=0.8)


_MAKERS = dict(zip(CLASSES, (_vertical, _diagonal, _both, _block, _heterogeneous), strict=True))
