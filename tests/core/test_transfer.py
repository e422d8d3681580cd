"""Small tensors travel in one parcel and arrive as they were."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from headscope.core.transfer import copy_to_device, copy_to_host_async, pack_bytes, unpack_bytes
from tests.gpu import gpu

shapes = st.lists(st.integers(0, 5), min_size=1, max_size=3)
kinds = st.sampled_from([torch.bool, torch.int64, torch.int32, torch.float32])


@given(st.lists(st.tuples(shapes, kinds), min_size=1, max_size=6))
def test_what_comes_out_of_a_parcel_is_what_went_in(given):
    tensors = [torch.randint(0, 2, shape).to(kind) for shape, kind in given]
    for sent, found in zip(tensors, unpack_bytes(pack_bytes(tensors), tensors), strict=True):
        assert found.dtype == sent.dtype
        assert torch.equal(found, sent)


def test_a_turned_tensor_keeps_its_order():
    turned = torch.arange(6).view(2, 3).mT
    (found,) = unpack_bytes(pack_bytes([turned]), [turned])
    assert torch.equal(found, turned)


def test_what_is_with_the_host_is_there_already():
    sent = (torch.arange(3), torch.ones(2, 2))
    assert all(found is each for found, each in zip(copy_to_host_async(sent)(), sent, strict=True))
    assert copy_to_host_async([])() == ()


@gpu
def test_what_goes_to_a_gpu_and_back_is_what_it_was():
    sent = (torch.arange(3), torch.rand(2, 2), torch.rand(3, 4).double().mT, torch.tensor([True, False]))
    back = copy_to_host_async(copy_to_device(torch.device("cuda"), sent))()
    assert all(torch.equal(found, each) and not found.is_cuda for found, each in zip(back, sent, strict=True))
