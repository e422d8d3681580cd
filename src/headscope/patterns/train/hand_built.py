"""Maps built by hand for every class, from softmax attention with sinks, bands, blocks and content.

They stand beside labelled maps in training, with less weight, and are marked so: nobody looked at them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.patterns.classes import CLASSES

Array = np.ndarray[Any, np.dtype[Any]]
Random = np.random.Generator


@dataclass(frozen=True)
class HandBuilt:
    """One map of a known class."""

    weights: Array  # query key
    segments: tuple[int, ...]
    label: str


def hand_built(many: int, *, seed: int = 0) -> list[HandBuilt]:
    """So many maps, of every class in turn, of 16 to 128 tokens, about half of them of pairs."""
    random = np.random.default_rng(seed)
    return [one_map(CLASSES[place % len(CLASSES)], random) for place in range(many)]


def one_map(label: str, random: Random, *, tokens: int | None = None) -> HandBuilt:
    """A map of this class, of any or so many tokens; every seventh or so signed and noisy, as effective maps are."""
    n = tokens if tokens is not None else round(np.exp(random.uniform(np.log(16), np.log(128))))
    cut = int(n * random.uniform(0.25, 0.75)) if random.random() < 0.6 else n
    segments = np.arange(n) >= cut
    weights = _MAKERS[label](n, segments, random)
    if random.random() < 0.15:
        weights = weights + random.normal(0, random.uniform(0.05, 0.3) / n, (n, n))
    return HandBuilt(weights.astype(np.float32), tuple(segments.astype(int).tolist()), label)


def content(n: int, random: Random, strength: float) -> Array:
    """Rows that differ from one another: queries and keys of a few dimensions, through a softmax."""
    inner = int(random.integers(3, 9))
    scores = random.normal(size=(n, inner)) @ random.normal(size=(inner, n)) / np.sqrt(inner)
    return softmax(strength * (0.8 * scores + 0.6 * random.normal(size=(n, n))))


def columns(n: int, segments: Array, random: Random, spread: float = 0.3) -> Array:
    """All mass in one to three columns, the first, the last, that before the second text or any; or rarely in many."""
    ends = [0, n - 1, max(1, int((~segments).sum()) - 1), *random.integers(0, n, 2).tolist()]
    few = random.choice(ends, size=int(random.integers(1, 4)), replace=False)
    many = np.flatnonzero(random.random(n) < 0.2)
    chosen = many if len(many) and random.random() < 0.15 else few
    scores = np.full((n, n), -np.inf)
    scores[:, chosen] = random.normal(0, 0.7, len(chosen)) + random.normal(0, spread, (n, len(chosen)))
    return softmax(scores)


def band(n: int, random: Random) -> Array:
    """All mass near one offset, in a narrow band or a wider one."""
    offset = int(random.choice([-1, 1, 0, -2, 2, int(random.integers(-6, 7))], p=[0.3, 0.25, 0.15, 0.1, 0.1, 0.1]))
    wide = random.choice([0.3, random.uniform(0.3, 2.0)])
    apart = np.arange(n) - np.arange(n)[:, None] - offset
    return softmax(-(apart**2) / (2 * wide**2) + random.normal(0, 0.3, (n, n)))


def blocks(n: int, segments: Array, random: Random) -> Array:
    """Even weight within each text of a pair, or rarely across; even over all where there is no pair; more or less
    grainy.
    """
    scores = random.normal(0, random.uniform(0, 0.9), (n, n))
    same = segments[:, None] == segments
    across = random.random() < 0.1
    far = random.uniform(2.0, 6.0) if segments.any() and random.random() < 0.7 else 0.0
    return softmax(np.where(same ^ across, scores, scores - far))


def softmax(scores: Array) -> Array:
    """Rows that add up to one."""
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    found: Array = raised / raised.sum(-1, keepdims=True)
    return found


def _mixed(parts: list[Array], shares: list[float], random: Random, *, spread: float = 0.4) -> Array:
    """Parts in these shares on the whole; row by row they differ."""
    logs = np.log(np.maximum(shares, 1e-6)) + random.normal(0, spread, (len(parts[0]), len(parts)))
    found: Array = np.einsum("qp,pqk->qk", softmax(logs), np.stack(parts))
    return found


def _vertical(n: int, segments: Array, random: Random) -> Array:
    share, slight = random.uniform(0.55, 0.97), random.uniform(0, 0.1)
    parts = [columns(n, segments, random), band(n, random), content(n, random, random.uniform(0.3, 2))]
    return _mixed(parts, [share, slight, max(0.02, 1 - share - slight)], random)


def _diagonal(n: int, segments: Array, random: Random) -> Array:
    share, slight = random.uniform(0.55, 0.97), random.uniform(0, 0.1)
    parts = [band(n, random), columns(n, segments, random), content(n, random, random.uniform(0.3, 2))]
    return _mixed(parts, [share, slight, max(0.02, 1 - share - slight)], random)


def _both(n: int, segments: Array, random: Random) -> Array:
    share, part = random.uniform(0.6, 0.97), random.uniform(0.33, 0.67)
    parts = [columns(n, segments, random), band(n, random), content(n, random, random.uniform(0.3, 2))]
    return _mixed(parts, [share * part, share * (1 - part), 1 - share], random, spread=random.uniform(0.2, 1.5))


def _block(n: int, segments: Array, random: Random) -> Array:
    shares = [1.0, random.uniform(0, 0.3) * (random.random() < 0.5), random.uniform(0, 0.1)]
    return _mixed([blocks(n, segments, random), columns(n, segments, random), band(n, random)], shares, random)


def _heterogeneous(n: int, segments: Array, random: Random) -> Array:
    shares = [1.0, random.uniform(0, 0.3), random.uniform(0, 0.25)]
    near = softmax(-(((np.arange(n) - np.arange(n)[:, None]) / (n * random.uniform(0.15, 0.4))) ** 2))
    spots = content(n, random, random.uniform(1.5, 4))
    if random.random() < 0.3:  # a broad band is none
        spots = spots * near / (spots * near).sum(-1, keepdims=True)
    parts = [spots, columns(n, segments, random), band(n, random)]
    return _mixed(parts, shares, random, spread=0.8)


_MAKERS = dict(zip(CLASSES, (_vertical, _diagonal, _both, _block, _heterogeneous), strict=True))
