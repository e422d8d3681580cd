"""Unambiguous maps are classified correctly at any size, with and without noise."""

import numpy as np
import pytest
import torch

from headscope.core.errors import InputError
from headscope.patterns import CLASSES
from headscope.patterns.classify.classify import classify

LENGTHS = [20, 64, 128, 300]


def column(n, random):
    return np.tile(np.eye(n)[0], (n, 1)), "vertical"


def two_columns(n, random):
    return np.tile(0.5 * np.eye(n)[n // 2] + 0.5 * np.eye(n)[-1], (n, 1)), "vertical"


def main_diagonal(n, random):
    return np.eye(n), "diagonal"


def next_token(n, random):
    return np.roll(np.eye(n), -1, axis=1), "diagonal"


def distant_diagonal(n, random):
    return np.roll(np.eye(n), 3, axis=1), "diagonal"


def column_and_diagonal(n, random):
    return 0.5 * np.tile(np.eye(n)[0], (n, 1)) + 0.5 * np.roll(np.eye(n), 1, axis=1), "vertical_diagonal"


def two_squares(n, random):
    same = make_segments(n)[:, None] == make_segments(n)
    return same / same.sum(-1, keepdims=True), "block"


def uniform(n, random):
    return np.full((n, n), 1 / n), "block"


def spots(n, random):
    weights = np.exp(3 * random.normal(size=(n, n)))
    return weights / weights.sum(-1, keepdims=True), "heterogeneous"


def make_segments(n):
    return (np.arange(n) >= 2 * n // 5).astype(int)


MAKERS = [
    column,
    two_columns,
    main_diagonal,
    next_token,
    distant_diagonal,
    column_and_diagonal,
    two_squares,
    uniform,
    spots,
]


@pytest.mark.parametrize("classifier", ["rules", "cnn", "both"])
@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_an_unambiguous_map_is_classified_correctly(maker, n, noise, classifier):
    random = np.random.default_rng(n)
    clean, expected = maker(n, random)
    grain = random.random((n, n))
    noisy = (1 - noise) * clean + noise * grain / grain.sum(-1, keepdims=True)
    weights = torch.from_numpy(noisy.astype(np.float32))[None]
    segments = torch.from_numpy(make_segments(n))[None]
    probabilities = classify(weights, torch.ones(1, n, dtype=torch.bool), segments, classifier)
    assert (*CLASSES, "unsure")[int(probabilities.argmax())] == expected


def test_rules_classify_two_squares_as_block_without_segments():
    for n in LENGTHS:
        weights = torch.from_numpy(two_squares(n, None)[0].astype(np.float32))[None]
        probabilities = classify(weights, torch.ones(1, n, dtype=torch.bool), None, "rules")
        assert CLASSES[int(probabilities.argmax())] == "block"


def test_maps_that_require_gradients_are_classified():
    weights = torch.rand(2, 8, 8, requires_grad=True)
    for classifier in ("rules", "cnn", "both"):
        assert not classify(weights, torch.ones(2, 8, dtype=torch.bool), None, classifier).requires_grad


def test_an_empty_batch_has_no_probabilities():
    assert classify(torch.zeros(0, 8, 8), torch.ones(0, 8, dtype=torch.bool), None, "both").shape == (0, 6)


def test_an_unknown_classifier_raises():
    with pytest.raises(InputError, match="No classifier of patterns is called 'cnm'"):
        classify(torch.rand(1, 5, 5), torch.ones(1, 5, dtype=torch.bool), None, "cnm")


@pytest.mark.parametrize("classifier", ["rules", "cnn", "both"])
def test_blocks_of_a_batch_hold_whole_maps(classifier, monkeypatch):
    weights, real = torch.rand(5, 12, 12), torch.ones(5, 12, dtype=torch.bool)
    expected = classify(weights, real, None, classifier)
    monkeypatch.setattr("headscope.patterns.classify.classify.BLOCK_CELLS", 1)
    torch.testing.assert_close(classify(weights, real, None, classifier), expected)
