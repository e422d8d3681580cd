"""Maps of which everybody would say the same, at any size, with and without noise."""

import numpy as np
import pytest
import torch

from headscope.patterns.classes import CLASSES
from headscope.patterns.classify.classify import classify
from headscope.patterns.train.hand_built import hand_built

SIZES = [20, 64, 128, 300]


def column(n, random):
    return np.tile(np.eye(n)[0], (n, 1)), "vertical"


def last_columns(n, random):
    return np.tile(0.5 * np.eye(n)[n // 2] + 0.5 * np.eye(n)[-1], (n, 1)), "vertical"


def own(n, random):
    return np.eye(n), "diagonal"


def previous(n, random):
    return np.roll(np.eye(n), -1, axis=1), "diagonal"


def further(n, random):
    return np.roll(np.eye(n), 3, axis=1), "diagonal"


def column_and_diagonal(n, random):
    return 0.5 * np.tile(np.eye(n)[0], (n, 1)) + 0.5 * np.roll(np.eye(n), 1, axis=1), "vertical_diagonal"


def two_squares(n, random):
    same = texts(n)[:, None] == texts(n)
    return same / same.sum(-1, keepdims=True), "block"


def even(n, random):
    return np.full((n, n), 1 / n), "block"


def spots(n, random):
    raised = np.exp(3 * random.normal(size=(n, n)))
    return raised / raised.sum(-1, keepdims=True), "heterogeneous"


def texts(n):
    return (np.arange(n) >= 2 * n // 5).astype(int)


MAKERS = [column, last_columns, own, previous, further, column_and_diagonal, two_squares, even, spots]


@pytest.mark.parametrize("classifier", ["rules", "cnn", "both"])
@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("maker", MAKERS, ids=lambda each: each.__name__)
def test_a_plain_map_is_seen_as_what_it_is(maker, n, noise, classifier):
    random = np.random.default_rng(n)
    weights, wanted = maker(n, random)
    grain = random.random((n, n))
    weights = (1 - noise) * weights + noise * grain / grain.sum(-1, keepdims=True)
    given = torch.from_numpy(weights.astype(np.float32))[None]
    segments = torch.from_numpy(texts(n))[None]
    likely = classify(given, torch.ones(1, n, dtype=torch.bool), segments, classifier)
    assert (*CLASSES, "unsure")[int(likely.argmax())] == wanted


def test_two_squares_are_blocks_to_the_rules_without_being_told_of_a_pair():
    for n in SIZES:
        given = torch.from_numpy(two_squares(n, None)[0].astype(np.float32))[None]
        likely = classify(given, torch.ones(1, n, dtype=torch.bool), None, "rules")
        assert CLASSES[int(likely.argmax())] == "block"


def test_maps_built_for_training_are_the_same_for_the_same_seed_and_of_every_class_in_turn():
    one, other = hand_built(10, seed=4), hand_built(10, seed=4)
    assert [each.label for each in one] == [*CLASSES, *CLASSES]
    assert all(np.array_equal(a.weights, b.weights) for a, b in zip(one, other, strict=True))
    assert not np.array_equal(hand_built(1, seed=5)[0].weights, one[0].weights)
