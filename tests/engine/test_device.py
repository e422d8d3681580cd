import torch

from headscope.engine.device import single_thread


def test_the_number_of_threads_is_restored():
    torch.set_num_threads(2)
    with single_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
