import numpy as np
import pytest
import torch

from headscope.patterns import CLASSES
from headscope.patterns.classify.normalize import normalize_maps
from headscope.patterns.classify.profiles import compute_profiles
from headscope.patterns.classify.rules import classify_by_rules, compute_scores
from headscope_patterns.train.synthetic import make_synthetic_maps
from headscope_patterns.train.training_set import pad_maps
from tests.oracles import patterns as oracle

COLUMN, BLOCKS = 0, 3  # indices of scores


def normalize(weights, segments=None):
    return normalize_maps(weights, torch.ones(weights.shape[:2], dtype=torch.bool), segments)


def test_scores_and_probabilities_equal_the_oracle():
    synthetic = [item for item in make_synthetic_maps(80, seed=3) if len(item.segments) < 32]
    maps = normalize_maps(*pad_maps(synthetic))
    for item, scores, probabilities in zip(synthetic, compute_scores(maps), classify_by_rules(maps), strict=True):
        absolute = np.abs(item.weights).astype(float)
        table = (absolute / absolute.sum(-1, keepdims=True)).tolist()
        np.testing.assert_allclose(scores, oracle.scores(table, item.segments), atol=2e-5)  # float32 sums of roots
        np.testing.assert_allclose(probabilities, oracle.by_rules(table, item.segments), atol=2e-3)  # steep sigmoids


def test_a_uniform_map_is_even_without_columns_or_band():
    assert compute_scores(normalize(torch.full((1, 10, 10), 0.1)))[0].tolist() == pytest.approx([0, 0, 1, 0], abs=5e-5)


def test_a_column_shared_by_half_of_the_rows_counts_a_quarter():
    weights = torch.zeros(1, 10, 10)
    weights[0, ::2, 3] = 1
    weights[0, 1::2] = 0.1
    columns = compute_profiles(normalize(weights)).columns
    assert float(columns[0, 3]) == pytest.approx((0.5 * 1 + 0.5 * 0.1**0.5) ** 2, abs=1e-5)
    weights[0, 1::2] = 0.0
    weights[0, range(1, 10, 2), range(1, 10, 2)] = 1
    weights[0, 3] = torch.eye(10)[5]
    assert float(compute_profiles(normalize(weights)).columns[0, 3]) == pytest.approx(0.25)


def test_rows_without_weight_do_not_count():
    weights = torch.zeros(1, 12, 12)
    weights[0, :6, 0] = 1
    assert float(compute_scores(normalize(weights))[0, COLUMN]) == pytest.approx(1 - 1 / 12)


def test_two_squares_are_found_without_segments_and_refused_with_other_ones():
    weights = torch.block_diag(torch.full((8, 8), 1 / 8), torch.full((12, 12), 1 / 12))[None]

    def blocks(cut=None):
        segments = None if cut is None else (torch.arange(20) >= cut).long()[None]
        return float(compute_scores(normalize(weights, segments))[0, BLOCKS])

    assert blocks() == pytest.approx(1, abs=1e-4)
    assert blocks(cut=8) == pytest.approx(1, abs=1e-4)
    assert blocks(cut=14) < 0.5


def test_probabilities_sum_to_one_and_are_nan_for_maps_without_a_pattern():
    weights, real = torch.rand(3, 6, 6), torch.ones(3, 6, dtype=torch.bool)
    real[1, 3:], weights[2] = False, 0
    probabilities = classify_by_rules(normalize_maps(weights, real))
    assert probabilities.shape == (3, len(CLASSES))
    assert float(probabilities[0].sum()) == pytest.approx(1)
    assert probabilities[1:].isnan().all()
