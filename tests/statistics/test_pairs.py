"""Two maps set beside each other, worked out by hand."""

from math import log, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy.stats import rankdata, spearmanr

from headscope.core.batch import Batch
from headscope.core.catalog import lenses, statistics
from headscope.core.errors import InputError
from headscope.maps.similarity import rank_cells, rank_correlation
from headscope.statistics import head_distance
from headscope.statistics.head_distance import HeadDistance
from headscope.statistics.lens_agreement import LensAgreement
from headscope.statistics.similarity import Similarity
from tests.batches import build_maps, one_lens

ROW = ["noun", "verb"]


def two(left, right, roles=(("model", "raw"), ("model", "norm")), **options):
    """A batch of two maps."""
    found = {
        (role, lens): build_maps([torch.as_tensor(each).view(1, -1, 2, 2)], [ROW], lens=lens, **options)
        for (role, lens), each in zip(roles, (left, right), strict=True)
    }
    return Batch(next(iter(found.values())).examples, found, "raw")


SAME = [[0.5, 0.1], [0.3, 0.2]]
OTHER = [[1.0, 0.0], [0.0, 0.0]]


def test_a_lens_agrees_with_itself():
    found = LensAgreement().values(two(SAME, SAME))
    assert found["lens_agreement"].item() == pytest.approx(1)
    assert found["lens_agreement_rank"].item() == pytest.approx(1)


def test_agreement_does_not_depend_on_scale_and_turns_with_the_sign():
    found = LensAgreement().values(two(SAME, -3 * torch.tensor(SAME)))
    assert found["lens_agreement"].item() == pytest.approx(-1)
    assert found["lens_agreement_rank"].item() == pytest.approx(-1)


def test_the_cosine_is_that_of_the_cells():
    found = LensAgreement().values(two(SAME, OTHER))
    assert found["lens_agreement"].item() == pytest.approx(0.5 / sqrt(0.25 + 0.01 + 0.09 + 0.04))


def test_without_weight_there_is_no_agreement():
    found = LensAgreement().values(two(SAME, torch.zeros(2, 2)))
    assert all(each.isnan().all() for each in found.values())


def test_a_merged_lens_is_compared_with_every_head():
    many = torch.rand(3, 2, 2)
    for batch in (two(many, SAME), two(SAME, many)):
        statistic = LensAgreement()
        assert statistic.axes(batch) == {"head": (0, 1, 2)}
        assert statistic.values(batch)["lens_agreement"].shape == (1, 1, 3)
        assert statistic.observe(batch).labels["head"] == [0, 1, 2]


def test_the_other_lens_is_a_parameter():
    statistic = statistics.make("lens_agreement:other=(effective:keys=paper)")
    assert statistic.other == lenses.make("effective:keys=paper")
    assert statistic.lenses(lenses.make("raw")) == (statistic.other,)
    assert statistic.lenses(statistic.other) == ()


@given(some.lists(some.integers(-3, 3), min_size=9, max_size=9), some.lists(some.booleans(), min_size=9, max_size=9))
@settings(max_examples=60, deadline=None)
def test_ranks_and_their_correlation_are_scipys_with_and_without_ties(numbers, seen):
    left, there = torch.tensor(numbers).float(), torch.tensor(seen)
    right = torch.tensor(numbers[::-1]).float() ** 2
    assert rank_cells(left, there)[there].tolist() == [each - 1 for each in rankdata(left[there])]
    found = rank_correlation(left.view(1, 1, 3, 3), right.view(1, 1, 3, 3), there.view(1, 3, 3)).item()
    if len(set(left[there].tolist())) > 1 and len(set(right[there].tolist())) > 1:
        assert found == pytest.approx(spearmanr(left[there], right[there]).statistic)
    else:
        assert np.isnan(found)


def test_every_map_of_a_batch_is_ranked_among_its_own_cells():
    torch.manual_seed(0)
    left, right = torch.randn(2, 3, 2, 5, 5)
    seen = torch.rand(3, 5, 5) < 0.7
    for other in (right, left, right.round()):  # among rounded ones are ties, and -0
        found = rank_correlation(left, other, seen)
        for text in range(3):
            for head in range(2):
                pair = (each[text, head][seen[text]] for each in (left, other))
                assert found[text, head].item() == pytest.approx(spearmanr(*pair).statistic)


def models(left, right, **options):
    return two(left, right, (("model", "raw"), ("against", "raw")), **options)


def test_the_same_head_in_two_models_is_compared():
    assert Similarity().values(models(SAME, SAME))["similarity"].item() == pytest.approx(1)
    assert Similarity().values(models([[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]))["similarity"].item() == 0


def test_what_lies_on_padding_counts_only_where_it_is_asked_for():
    batch = models([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], width=3)
    batch.maps["against", "raw"].parts[0][..., 0, 2] = sqrt(2)
    assert Similarity().values(batch)["similarity"].item() == pytest.approx(1)
    assert Similarity(padded=True).values(batch)["similarity"].item() == pytest.approx(1 / sqrt(2))


def test_models_with_different_heads_are_refused():
    batch = models(torch.rand(2, 2, 2), SAME)
    with pytest.raises(InputError, match="one has 1 layers × 2 heads, the other 1 × 1. Choose layers and heads"):
        Similarity().values(batch)


def heads(*maps, row=ROW):
    return one_lens(build_maps([torch.tensor(maps)[None]], [row]))


def test_heads_that_share_no_key_are_log_2_apart_for_every_token():
    found = HeadDistance(smoothing=0.0).values(heads([[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]))
    table = found["head_distance"][0, 0, :, 0]
    assert table[0, 1].item() == table[1, 0].item() == pytest.approx(2 * log(2))
    assert table.diagonal().tolist() == [0, 0]


def test_the_mean_over_tokens_does_not_grow_with_the_text():
    maps = heads([[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]])
    found = HeadDistance(smoothing=0.0, reduce="mean").values(maps)["head_distance"]
    assert found[0, 0, 0, 0, 1].item() == pytest.approx(log(2))


def test_a_head_is_no_distance_from_itself_and_distances_are_the_same_both_ways():
    weights = torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    found = HeadDistance().values(one_lens(build_maps([weights], [["noun"] * 5])))["head_distance"].view(6, 6)
    assert found.diagonal().abs().max() < 1e-5
    torch.testing.assert_close(found, found.T)


def test_heads_are_compared_a_few_at_a_time(monkeypatch):
    weights = torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    batch = one_lens(build_maps([weights], [["noun"] * 5]))
    whole = HeadDistance().values(batch)["head_distance"]
    monkeypatch.setitem(head_distance.CELLS, "cpu", 50)
    torch.testing.assert_close(HeadDistance().values(batch)["head_distance"], whole)


def test_the_axes_of_a_head_distance_name_both_heads():
    batch = heads(SAME, OTHER)
    result = HeadDistance().finish(HeadDistance().observe(batch))
    assert result.head_distance.dims == ("layer", "head", "other_layer", "other_head")
