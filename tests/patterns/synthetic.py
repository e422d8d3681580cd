"""A labelled set that nobody looked at: heads with habits of their own, over texts, labelled by what they are made of.

python -m tests.patterns.synthetic FOLDER [MAPS]
"""

import sys
from dataclasses import replace

import numpy as np

from headscope.patterns.classes import CLASSES
from headscope.patterns.labels.labelled import Labelled, PatternMap, Source, save_labels, save_maps
from headscope.patterns.train.hand_built import band, blocks, columns, content, softmax

HABITS = (0.6, 0.5, 0.35, 0.6)
"""How the shares of columns, band, blocks and content are spread over heads."""


def label_of(shares):
    """What somebody would say who knew the shares of columns, band, blocks and content."""
    column, along, block, rest = shares
    if column + along > 0.45:
        return CLASSES[0] if along < 0.35 * column else CLASSES[1] if column < 0.35 * along else CLASSES[2]
    return CLASSES[3] if block > rest else CLASSES[4]


def synthetic(many=120, *, seed=0, tokens=(20, 128), heads=60, texts=None, noise=0.05) -> Labelled:
    """So many maps of some heads and texts; two passes differ by noise in what they see."""
    random = np.random.default_rng(seed)
    habits = random.dirichlet(HABITS, size=heads)
    lengths = np.exp(random.uniform(*np.log(tokens), size=texts or many)).astype(int)
    cuts = [int(n * random.uniform(0.25, 0.75)) if random.random() < 0.6 else n for n in lengths]
    maps, passes = [], {"first": {}, "second": {}}
    for place in range(many):
        head, text = int(random.integers(heads)), place % len(lengths)
        n, shares = int(lengths[text]), softmax(np.log(habits[head] + 1e-3) + random.normal(0, 0.3, 4))
        weights, segments = made(n, np.arange(n) >= cuts[text], shares, random)
        lens = "effective" if random.random() < 0.4 else "raw"
        if lens == "effective":
            weights = weights + random.normal(0, random.uniform(0.1, 0.8) / n, (n, n))
        words = ("[CLS]", *["word"] * (n - 2), "[SEP]")
        part = "random" if place % 4 else "topped_up"
        source = Source(
            f"s{place:04d}", part, lens, "made", "", head // 12, head % 12, "texts", str(text), words, segments
        )
        maps.append(PatternMap(source, weights.astype(np.float32)))
        for given in passes.values():
            given[source.id] = label_of(shares + random.normal(0, noise, 4))
    passes["second"] = dict(list(passes["second"].items())[: many // 2])
    return Labelled(tuple(maps), passes)


def made(n, segments, shares, random):
    """A map of these parts, whose rows differ."""
    parts = [columns(n, segments, random), band(n, random), blocks(n, segments, random)]
    parts.append(content(n, random, random.uniform(1.2, 3.5)))
    logs = np.log(np.maximum(shares, 1e-6)) + random.normal(0, random.uniform(0.2, 1.2), (n, 4))
    return np.einsum("qp,pqk->qk", softmax(logs), np.stack(parts)), tuple(segments.astype(int).tolist())


def one_pass(labelled):
    """The same with the first pass alone."""
    return replace(labelled, passes={"first": labelled.passes["first"]})


if __name__ == "__main__":
    found = synthetic(int(sys.argv[2]) if len(sys.argv) > 2 else 650, heads=300)
    save_maps(found.maps, sys.argv[1])
    save_labels(found.passes, sys.argv[1])
