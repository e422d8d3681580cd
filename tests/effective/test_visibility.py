"""What is known of a mask is known as long as the mask is used, and no longer."""

import gc
import weakref

import pytest
import torch

from headscope.effective.visibility import all_visible, analyze_mask

MASKS = {
    "hides nothing": lambda: all_visible((2, 5, 5), torch.device("cpu")),
    "shared": lambda: (torch.arange(5) < torch.tensor([[5], [3]]))[:, None].expand(2, 5, 5).clone(),
    "causal": lambda: torch.ones(2, 5, 5, dtype=torch.bool).tril(),
    "nested": lambda: torch.ones(2, 5, 5, dtype=torch.bool).tril().flip(2).contiguous(),
    "neither": lambda: torch.eye(5, dtype=torch.bool).repeat(2, 1, 1),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_that_nothing_uses_is_freed(name):
    mask = MASKS[name]()
    structure = analyze_mask(mask)
    assert analyze_mask(mask) is structure  # computed once
    alive = weakref.ref(mask)
    del mask, structure
    gc.collect()
    assert alive() is None
