"""Large tensors lie in memory of their own."""

import gc
import mmap

import pytest
import torch

from headscope.core import huge_pages as module
from headscope.core.huge_pages import LARGE, room
from headscope.core.maps import Factored


@pytest.mark.parametrize("rows", [3, LARGE // 4000 + 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_room_is_an_ordinary_tensor(rows, dtype):
    made = room((rows, 1000), dtype)
    assert (made.shape, made.dtype) == ((rows, 1000), dtype)
    made.fill_(2)
    copied = made.clone()
    part = made[-1]
    del made
    gc.collect()
    assert part.sum() == 2000  # a view keeps the memory
    assert copied.sum() == 2000 * rows
    assert part.numpy()[0] == 2


def test_where_there_are_no_huge_pages_room_is_made_all_the_same(monkeypatch):
    class Refusing(mmap.mmap):
        def madvise(self, *_):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(module.mmap, "mmap", Refusing)
    assert room((LARGE // 4 + 1,), torch.float32).fill_(1).sum() == LARGE // 4 + 1
    monkeypatch.delattr(module.mmap, "MADV_HUGEPAGE", raising=False)
    assert room((LARGE // 4 + 1,), torch.float32).shape == (LARGE // 4 + 1,)


@pytest.mark.parametrize("tokens", [7, 1700])
def test_a_factored_map_is_the_product_of_its_factors(tokens):
    left, right = torch.randn(1, 3, tokens, 4), torch.randn(3, 1, tokens, 4).transpose(0, 1)
    assert torch.equal(Factored(left, right).weights, left @ right.mT)


def test_a_factored_map_of_factors_with_gradients_has_one_too():
    left, right = torch.randn(1, 2, 5, 4, requires_grad=True), torch.randn(1, 2, 5, 4)
    Factored(left, right).weights.sum().backward()
    assert torch.allclose(left.grad, right.sum(-2, keepdim=True).expand_as(left))
