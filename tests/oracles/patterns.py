"""Classifiers of patterns as loops over rows, columns, offsets, cuts and pixels, in float64."""

from math import ceil, exp, log, log1p, nan, sqrt

import numpy as np
import torch

from headscope.patterns.classes import CLASSES
from headscope.patterns.classify import rules as named
from headscope.patterns.classify.cnn import BUNDLED, about_cnn, read_cnn
from tests.oracles.statistics import over_maps, rows, shares


def patterns(statistic, batch):
    """1 for the class of each map, 0 for the others; NaN where a map has none."""
    maps, many = batch.focus, len(CLASSES) + (statistic.classifier == "both")

    def one_map(example, layer, head):
        real = maps.keys.real[example].nonzero()[:, 0].tolist()
        found = {query: shares(row) for query, row in rows(maps, example, layer, head).items()}
        table = [[(found.get(query) or {}).get(key, 0.0) for key in real] for query in real]
        if maps.site == "cross" or len(real) < 4 or not any(map(any, table)):
            return [nan] * many
        segments = [int(maps.keys.segment[example, key] == 1) for key in real]
        said = chosen(statistic.classifier, table, segments)
        return [float(each == said) for each in range(many)]

    return {"patterns": over_maps(maps, one_map)}


def chosen(classifier, table, segments):
    """The place of the class; one more for unsure."""
    if classifier != "both":
        return int(np.argmax({"rules": by_rules, "cnn": by_cnn}[classifier](table, segments)))
    one, other = (int(np.argmax(each(table, segments))) for each in (by_cnn, by_rules))
    return one if one == other else len(CLASSES)


def profiles(table):
    """Columns, what is left without their excess, and offsets from −(n−1) to n−1."""
    n, held = len(table), [row for row in table if sum(row) > 0]
    columns = [(sum(sqrt(row[key]) for row in held) / len(held)) ** 2 for key in range(n)]
    excess = [max(0.0, each - 1 / n) for each in columns]
    rest = [[max(0.0, row[key] - excess[key]) for key in range(n)] for row in table]
    offsets = {}
    for offset in range(1 - n, n):
        cells = [rest[i][i + offset] for i in range(n) if 0 <= i + offset < n and sum(table[i]) > 0]
        mean = (sum(map(sqrt, cells)) / len(cells)) ** 2 if cells else 0.0
        offsets[offset] = mean * len(cells) / len(held)
    return columns, excess, rest, offsets


def scores(table, segments):
    """Column, band, uniform and blocks."""
    n, (_, excess, rest, offsets) = len(table), profiles(table)
    reach = max(1, n // named.NARROW)
    above = {offset: max(0.0, each - 1 / n) for offset, each in offsets.items()}
    band = max(sum(above.get(o, 0.0) for o in range(middle - reach, middle + reach + 1)) for middle in above)
    held = [row for row, given in zip(rest, table, strict=True) if sum(given) > 0]
    even = [sum(map(sqrt, row)) ** 2 / (n * sum(row)) if sum(row) else 0.0 for row in held]
    second = sum(segments)
    cuts = [n - second] if 0 < second < n else [c for c in range(1, n) if min(c, n - c) >= named.SMALLEST * n]
    return sum(excess), band, sum(even) / len(held), max([0.0, *(two_blocks(rest, cut) for cut in cuts)])


def two_blocks(rest, cut):
    """The contrast of the two squares along the diagonal, or of the two others, times how even they are."""
    n, whole = len(rest), sum(map(sum, rest))
    sides = (range(cut), range(cut, n))
    found = []
    for pairs in ([(0, 0), (1, 1)], [(0, 1), (1, 0)]):
        held = wanted = even = 0.0
        for a, b in pairs:
            cells = [rest[i][j] for i in sides[a] for j in sides[b]]
            share = sum(cells) / whole if whole else 0.0
            held, wanted = held + share, wanted + len(cells) / n**2
            even += share * sum(map(sqrt, cells)) ** 2 / (len(cells) * sum(cells)) if sum(cells) else 0.0
        found.append(max(0.0, (held - wanted) / (1 - wanted)) * even / held if held else 0.0)
    return max(found)


def by_rules(table, segments):
    column, band, uniform, blocks = scores(table, segments)
    structure = column + band
    part = column / max(structure, 1e-6)
    structured, vertical, diagonal = (
        odds(structure - named.STRUCTURE),
        odds(part - 1 + named.PART),
        odds(named.PART - part),
    )
    block = odds(max(uniform - named.UNIFORM, blocks - named.BLOCKS))
    given = [vertical, diagonal, max(0.0, 1 - vertical - diagonal)]
    return [*(structured * each for each in given), (1 - structured) * block, (1 - structured) * (1 - block)]


def odds(above):
    return 1 / (1 + exp(-above / named.SOFTNESS))


def picture(table, segments, side):
    """The channels of a map, pixel by pixel."""
    n, (columns, _, _, offsets) = len(table), profiles(table)
    edges = [place * n // side for place in range(side + 1)]
    tokens = [range(edges[p], max(edges[p + 1], edges[p] + 1)) for p in range(side)]
    second = [max(segments[each] for each in tokens[p]) for p in range(side)]
    found = np.zeros((5, side, side))
    for q in range(side):
        for k in range(side):
            cells = [table[i][j] for i in tokens[q] for j in tokens[k]]
            low, high = (ceil((2 * (k - q) + end) * n / (2 * side) - 1e-9) for end in (-1, 1))
            nearest = (2 * (k - q) * n + side) // (2 * side)
            near = range(low, high) if high > low else [nearest]
            found[:, q, k] = [
                log1p(n * sum(cells) / len(cells)) / log(1 + side),
                sqrt(max(cells)),
                sqrt(max(columns[j] for j in tokens[k])),
                sqrt(max(offsets[min(max(o, 1 - n), n - 1)] for o in near)),
                float(second[q] == second[k]),
            ]
    return found


def by_cnn(table, segments):
    """The mean of the bundled networks, each convolution written out."""
    about = about_cnn(BUNDLED)
    settings = about["settings"]
    seen = picture(table, segments, settings["side"])
    extra = [4 * each - 1 for each in scores(table, segments)]
    cnn = read_cnn(BUNDLED, torch.device("cpu"))
    found = [one_net({key: each.double().numpy() for key, each in net.state_dict().items()}, seen, extra, settings)
             for net in cnn.nets]  # fmt: skip
    raised = np.exp(np.mean(found, axis=0) / about["temperature"])
    return (raised / raised.sum()).tolist()


def one_net(weights, seen, extra, settings):
    for place, stride in enumerate(settings["strides"]):
        padded = np.pad(seen, ((0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::stride, ::stride]
        layer = weights[f"layers.{2 * place}.weight"]
        seen = (
            np.tensordot(layer, windows, axes=([1, 2, 3], [0, 3, 4]))
            + weights[f"layers.{2 * place}.bias"][:, None, None]
        )
        seen = np.maximum(seen, 0)
    features = [*seen.mean((1, 2)), *seen.max((1, 2)), *extra]
    middle = np.maximum(weights["middle.weight"] @ features + weights["middle.bias"], 0)
    return weights["last.weight"] @ middle + weights["last.bias"]
