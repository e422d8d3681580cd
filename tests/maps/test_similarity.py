import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from headscope.maps.similarity import rank_cells, rank_correlation


@given(st.lists(st.integers(-3, 3), min_size=9, max_size=9), st.lists(st.booleans(), min_size=9, max_size=9))
@settings(max_examples=60, deadline=None)
def test_ranks_and_rank_correlation_are_those_of_scipy_with_and_without_ties(numbers, visible):
    left, mask = torch.tensor(numbers).float(), torch.tensor(visible)
    right = torch.tensor(numbers[::-1]).float() ** 2
    assert rank_cells(left, mask)[mask].tolist() == [each - 1 for each in rankdata(left[mask])]
    correlation = rank_correlation(left.view(1, 1, 3, 3), right.view(1, 1, 3, 3), mask.view(1, 3, 3)).item()
    if len(set(left[mask].tolist())) > 1 and len(set(right[mask].tolist())) > 1:
        assert correlation == pytest.approx(spearmanr(left[mask], right[mask]).statistic)
    else:
        assert np.isnan(correlation)


def test_each_map_is_ranked_among_its_visible_cells():
    torch.manual_seed(0)
    left, right = torch.randn(2, 3, 2, 5, 5)
    visible = torch.rand(3, 5, 5) < 0.7
    for other in (right, left, right.round()):  # among rounded ones are ties, and -0
        correlation = rank_correlation(left, other, visible)
        for text in range(3):
            for head in range(2):
                pair = (each[text, head][visible[text]] for each in (left, other))
                assert correlation[text, head].item() == pytest.approx(spearmanr(*pair).statistic)
