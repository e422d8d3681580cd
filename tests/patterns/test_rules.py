import numpy as np
import pytest
import torch

from headscope.patterns.classes import CLASSES
from headscope.patterns.classify.classify import classify
from headscope.patterns.classify.profiles import profiles_of
from headscope.patterns.classify.row_weights import sizes_of
from headscope.patterns.classify.rules import rules, scores_of
from headscope.patterns.train.fit import padded
from headscope.patterns.train.hand_built import hand_built
from tests.oracles import patterns as oracle


def whole(weights):
    return sizes_of(weights, torch.ones(weights.shape[:2], dtype=torch.bool))


def test_scores_and_rules_equal_their_literal_version():
    maps = [each for each in hand_built(80, seed=3) if len(each.segments) < 32]
    sizes = sizes_of(*padded(maps))
    found, likely = scores_of(sizes), rules(sizes)
    for place, each in enumerate(maps):
        size = np.abs(each.weights).astype(float)
        table = (size / size.sum(-1, keepdims=True)).tolist()
        scores = [float(one[place]) for one in (found.column, found.band, found.uniform, found.blocks)]
        np.testing.assert_allclose(scores, oracle.scores(table, each.segments), atol=2e-5)  # float32 sums of roots
        np.testing.assert_allclose(likely[place], oracle.by_rules(table, each.segments), atol=2e-3)  # odds are steep


def test_a_uniform_map_is_even_and_has_no_columns_and_no_band():
    found = scores_of(whole(torch.full((1, 10, 10), 0.1)))
    assert [round(float(each), 4) for each in (found.column, found.band, found.uniform, found.blocks)] == [0, 0, 1, 0]


def test_a_column_that_half_of_the_rows_share_counts_a_quarter():
    weights = torch.zeros(1, 10, 10)
    weights[0, ::2, 3] = 1
    weights[0, 1::2] = 0.1
    columns = profiles_of(whole(weights)).columns
    assert float(columns[0, 3]) == pytest.approx((0.5 * 1 + 0.5 * 0.1**0.5) ** 2, abs=1e-5)
    weights[0, 1::2] = 0.0
    weights[0, range(1, 10, 2), range(1, 10, 2)] = 1
    weights[0, 3] = torch.eye(10)[5]
    assert float(profiles_of(whole(weights)).columns[0, 3]) == pytest.approx(0.25)


def test_rows_without_any_weight_do_not_count():
    weights = torch.zeros(1, 12, 12)
    weights[0, :6, 0] = 1
    found = scores_of(whole(weights))
    assert float(found.column) == pytest.approx(1 - 1 / 12)


def test_two_squares_are_found_without_being_told_of_a_pair():
    weights = torch.block_diag(torch.full((8, 8), 1 / 8), torch.full((12, 12), 1 / 12))[None]
    assert float(scores_of(whole(weights)).blocks) == pytest.approx(1, abs=1e-4)
    told = sizes_of(weights, torch.ones(1, 20, dtype=torch.bool), (torch.arange(20) >= 8).long()[None])
    assert float(scores_of(told).blocks) == pytest.approx(1, abs=1e-4)
    elsewhere = sizes_of(weights, torch.ones(1, 20, dtype=torch.bool), (torch.arange(20) >= 14).long()[None])
    assert float(scores_of(elsewhere).blocks) < 0.5


def test_probabilities_add_up_to_one_and_maps_without_a_pattern_have_none():
    weights, real = torch.rand(3, 6, 6), torch.ones(3, 6, dtype=torch.bool)
    real[1, 3:], weights[2] = False, 0
    found = rules(sizes_of(weights, real))
    assert found.shape == (3, len(CLASSES))
    assert float(found[0].sum()) == pytest.approx(1)
    assert found[1:].isnan().all()


def test_maps_that_carry_gradients_are_classified_too():
    weights = torch.rand(2, 8, 8, requires_grad=True)
    for classifier in ("rules", "cnn", "both"):
        assert not classify(weights, torch.ones(2, 8, dtype=torch.bool), None, classifier).requires_grad
    assert classify(weights[:0], torch.ones(0, 8, dtype=torch.bool), None, "both").shape == (0, 6)
