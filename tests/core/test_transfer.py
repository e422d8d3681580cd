"""Copy small tensors in one transfer."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from headscope.core.transfer import copy_to_device, copy_to_host_async, pack_bytes, unpack_bytes
from tests.gpu import gpu

shapes = st.lists(st.integers(0, 5), min_size=1, max_size=3)
kinds = st.sampled_from([torch.bool, torch.int64, torch.int32, torch.float32])


@given(st.lists(st.tuples(shapes, kinds), min_size=1, max_size=6))
def test_unpacking_undoes_packing(sizes):
    tensors = [torch.randint(0, 2, shape).to(kind) for shape, kind in sizes]
    for sent, result in zip(tensors, unpack_bytes(pack_bytes(tensors), tensors), strict=True):
        assert result.dtype == sent.dtype
        assert torch.equal(result, sent)


def test_a_transposed_tensor_keeps_its_order():
    turned = torch.arange(6).view(2, 3).mT
    (result,) = unpack_bytes(pack_bytes([turned]), [turned])
    assert torch.equal(result, turned)


def test_tensors_on_the_host_are_returned_unchanged():
    sent = (torch.arange(3), torch.ones(2, 2))
    assert all(result is tensor for result, tensor in zip(copy_to_host_async(sent)(), sent, strict=True))
    assert copy_to_host_async([])() == ()


@gpu
def test_tensors_survive_a_round_trip_to_the_gpu():
    sent = (torch.arange(3), torch.rand(2, 2), torch.rand(3, 4).double().mT, torch.tensor([True, False]))
    back = copy_to_host_async(copy_to_device(torch.device("cuda"), sent))()
    assert all(torch.equal(result, tensor) and not result.is_cuda for result, tensor in zip(back, sent, strict=True))
