"""Pattern classifiers as loops over rows, columns, offsets, cuts and pixels, in float64."""

from math import ceil, exp, log, log1p, nan, sqrt

import numpy as np
import torch

from headscope.patterns import CLASSES
from headscope.patterns.classify import rules as thresholds
from headscope.patterns.classify.cnn import BUNDLED, read_cnn, read_metadata
from tests.oracles.statistics import over_maps, rows, shares


def patterns(statistic, batch):
    """Return 1 for the class of each map and 0 for the others; NaN where a map has none."""
    maps, classes = batch.focus, len(CLASSES) + (statistic.classifier == "both")

    def classify_map(example, layer, head):
        real = maps.keys.real[example].nonzero()[:, 0].tolist()
        by_query = {query: shares(row) for query, row in rows(maps, example, layer, head).items()}
        table = [[(by_query.get(query) or {}).get(key, 0.0) for key in real] for query in real]
        if maps.site == "cross" or len(real) < 4 or not any(map(any, table)):
            return [nan] * classes
        segments = [int(maps.keys.segment[example, key] == 1) for key in real]
        predicted = predict(statistic.classifier, table, segments)
        return [float(index == predicted) for index in range(classes)]

    return {"patterns": over_maps(maps, classify_map)}


def predict(classifier, table, segments):
    """Return the index of the class; the last one is unsure."""
    if classifier != "both":
        return int(np.argmax({"rules": by_rules, "cnn": by_cnn}[classifier](table, segments)))
    first, second = (int(np.argmax(function(table, segments))) for function in (by_cnn, by_rules))
    return first if first == second else len(CLASSES)


def profiles(table):
    """Return columns, their excess, the rest without it, and offsets from −(n−1) to n−1."""
    n, nonzero = len(table), [row for row in table if sum(row) > 0]
    columns = [(sum(sqrt(row[key]) for row in nonzero) / len(nonzero)) ** 2 for key in range(n)]
    excess = [max(0.0, column - 1 / n) for column in columns]
    rest = [[max(0.0, row[key] - excess[key]) for key in range(n)] for row in table]
    offsets = {}
    for offset in range(1 - n, n):
        cells = [rest[i][i + offset] for i in range(n) if 0 <= i + offset < n and sum(table[i]) > 0]
        mean = (sum(map(sqrt, cells)) / len(cells)) ** 2 if cells else 0.0
        offsets[offset] = mean * len(cells) / len(nonzero)
    return columns, excess, rest, offsets


def scores(table, segments):
    """Return column, band, uniform and blocks."""
    n, (_, excess, rest, offsets) = len(table), profiles(table)
    radius = max(1, n // thresholds.BAND_FRACTION)
    above = {offset: max(0.0, share - 1 / n) for offset, share in offsets.items()}
    band = max(sum(above.get(o, 0.0) for o in range(center - radius, center + radius + 1)) for center in above)
    nonzero = [row for row, full in zip(rest, table, strict=True) if sum(full) > 0]
    evenness = [sum(map(sqrt, row)) ** 2 / (n * sum(row)) if sum(row) else 0.0 for row in nonzero]
    second = sum(segments)
    cuts = [n - second] if 0 < second < n else [c for c in range(1, n) if min(c, n - c) >= thresholds.MIN_BLOCK * n]
    blocks = max([0.0, *(two_blocks(rest, cut) for cut in cuts)])
    return sum(excess), band, sum(evenness) / len(nonzero), blocks


def two_blocks(rest, cut):
    """Return the contrast of the two squares along the diagonal, or of the two others, times their evenness."""
    n, total = len(rest), sum(map(sum, rest))
    sides = (range(cut), range(cut, n))
    contrasts = []
    for pairs in ([(0, 0), (1, 1)], [(0, 1), (1, 0)]):
        observed = expected = evenness = 0.0
        for a, b in pairs:
            cells = [rest[i][j] for i in sides[a] for j in sides[b]]
            share = sum(cells) / total if total else 0.0
            observed, expected = observed + share, expected + len(cells) / n**2
            evenness += share * sum(map(sqrt, cells)) ** 2 / (len(cells) * sum(cells)) if sum(cells) else 0.0
        above = max(0.0, (observed - expected) / (1 - expected))
        contrasts.append(above * evenness / observed if observed else 0.0)
    return max(contrasts)


def by_rules(table, segments):
    """Return class probabilities from the thresholds."""
    column, band, uniform, blocks = scores(table, segments)
    structure = column + band
    part = column / max(structure, 1e-6)
    structured = soft_step(structure - thresholds.STRUCTURE)
    vertical, diagonal = soft_step(part - 1 + thresholds.PART), soft_step(thresholds.PART - part)
    block = soft_step(max(uniform - thresholds.UNIFORM, blocks - thresholds.BLOCKS))
    lines = [vertical, diagonal, max(0.0, 1 - vertical - diagonal)]
    return [*(structured * line for line in lines), (1 - structured) * block, (1 - structured) * (1 - block)]


def soft_step(above):
    return 1 / (1 + exp(-above / thresholds.SOFTNESS))


def make_image(table, segments, side):
    """Return the channels of a map, pixel by pixel."""
    n, (columns, _, _, offsets) = len(table), profiles(table)
    edges = [pixel * n // side for pixel in range(side + 1)]
    tokens = [range(edges[p], max(edges[p + 1], edges[p] + 1)) for p in range(side)]
    second = [max(segments[token] for token in tokens[p]) for p in range(side)]
    image = np.zeros((5, side, side))
    for q in range(side):
        for k in range(side):
            cells = [table[i][j] for i in tokens[q] for j in tokens[k]]
            low, high = (ceil((2 * (k - q) + end) * n / (2 * side) - 1e-9) for end in (-1, 1))
            nearest = (2 * (k - q) * n + side) // (2 * side)
            near = range(low, high) if high > low else [nearest]
            image[:, q, k] = [
                log1p(n * sum(cells) / len(cells)) / log(1 + side),
                sqrt(max(cells)),
                sqrt(max(columns[j] for j in tokens[k])),
                sqrt(max(offsets[min(max(o, 1 - n), n - 1)] for o in near)),
                float(second[q] == second[k]),
            ]
    return image


def by_cnn(table, segments):
    """Return class probabilities of the bundled networks, with each convolution written out."""
    metadata = read_metadata(BUNDLED)
    settings = metadata["settings"]
    image = make_image(table, segments, settings["side"])
    extra = [4 * score - 1 for score in scores(table, segments)]
    nets = [net.state_dict() for net in read_cnn(BUNDLED, torch.device("cpu")).nets]
    logits = [
        apply_network({key: tensor.double().numpy() for key, tensor in net.items()}, image, extra, settings)
        for net in nets
    ]
    exponentials = np.exp(np.mean(logits, axis=0) / metadata["temperature"])
    return (exponentials / exponentials.sum()).tolist()


def apply_network(weights, features, extra, settings):
    """Return the logits of one network."""
    for index, stride in enumerate(settings["strides"]):
        padded = np.pad(features, ((0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::stride, ::stride]
        kernel, bias = (weights[f"layers.{2 * index}.{name}"] for name in ("weight", "bias"))
        features = np.tensordot(kernel, windows, axes=([1, 2, 3], [0, 3, 4])) + bias[:, None, None]
        features = np.maximum(features, 0)
    pooled = [*features.mean((1, 2)), *features.max((1, 2)), *extra]
    middle = np.maximum(weights["middle.weight"] @ pooled + weights["middle.bias"], 0)
    return weights["last.weight"] @ middle + weights["last.bias"]
