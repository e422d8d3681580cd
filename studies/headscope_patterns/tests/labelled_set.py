"""A synthetic labelled set: heads with fixed mixtures of patterns, over texts, labelled by these mixtures.

python -m headscope_patterns.tests.labelled_set FOLDER [MAPS]
"""

import sys
from dataclasses import replace

import numpy as np

from headscope.patterns import CLASSES
from headscope_patterns.labels.labelled_maps import LabelledMaps, PatternMap, Source, save_labels, save_maps
from headscope_patterns.train.synthetic import band, blocks, columns, content, mix, softmax

CONCENTRATION = (0.6, 0.5, 0.35, 0.6)
"""Of the Dirichlet distribution of the heads' shares of columns, band, blocks and content."""


def choose_label(shares):
    """Return the class for shares of columns, band, blocks and content."""
    column, diagonal, block, rest = shares
    if column + diagonal > 0.45:
        return CLASSES[0] if diagonal < 0.35 * column else CLASSES[1] if column < 0.35 * diagonal else CLASSES[2]
    return CLASSES[3] if block > rest else CLASSES[4]


def make_labelled_set(count=120, *, seed=0, tokens=(20, 128), heads=60, texts=None, noise=0.05) -> LabelledMaps:
    """Return maps of several heads and texts; the labels of the two passes differ by noise."""
    random = np.random.default_rng(seed)
    head_shares = random.dirichlet(CONCENTRATION, size=heads)
    lengths = np.exp(random.uniform(*np.log(tokens), size=texts or count)).astype(int)
    cuts = [int(n * random.uniform(0.25, 0.75)) if random.random() < 0.6 else n for n in lengths]
    maps, passes = [], {"first": {}, "second": {}}
    for index in range(count):
        head, text = int(random.integers(heads)), index % len(lengths)
        n, shares = int(lengths[text]), softmax(np.log(head_shares[head] + 1e-3) + random.normal(0, 0.3, 4))
        segments = np.arange(n) >= cuts[text]
        weights = make_weights(n, segments, shares, random)
        lens = "effective" if random.random() < 0.4 else "raw"
        if lens == "effective":
            weights = weights + random.normal(0, random.uniform(0.1, 0.8) / n, (n, n))
        source = Source(
            id=f"s{index:04d}",
            part="random" if index % 4 else "topped_up",
            lens=lens,
            model="synthetic",
            tuned="",
            layer=head // 12,
            head=head % 12,
            data="texts",
            text=str(text),
            tokens=("[CLS]", *["word"] * (n - 2), "[SEP]"),
            segments=tuple(segments.astype(int).tolist()),
        )
        maps.append(PatternMap(source, weights.astype(np.float32)))
        for labels in passes.values():
            labels[source.id] = choose_label(shares + random.normal(0, noise, 4))
    passes["second"] = dict(list(passes["second"].items())[: count // 2])
    return LabelledMaps(tuple(maps), passes)


def make_weights(n, segments, shares, random):
    """Return a mixture of patterns whose rows differ."""
    parts = [columns(n, segments, random), band(n, random), blocks(n, segments, random)]
    parts.append(content(n, random, random.uniform(1.2, 3.5)))
    return mix(parts, shares.tolist(), random, spread=random.uniform(0.2, 1.2))


def drop_second_pass(labelled):
    """Return the same set with the first pass only."""
    return replace(labelled, passes={"first": labelled.passes["first"]})


if __name__ == "__main__":
    labelled_set = make_labelled_set(int(sys.argv[2]) if len(sys.argv) > 2 else 650, heads=300)
    save_maps(labelled_set.maps, sys.argv[1])
    save_labels(labelled_set.passes, sys.argv[1])
