"""Work in other processes gives what it gives here."""

import torch

from headscope.patterns.train.side_by_side import one_thread, side_by_side


def test_other_processes_answer_in_order():
    jobs = [(7, 2), (9, 4), (20, 6)]
    assert list(side_by_side(divmod, jobs)) == list(side_by_side(divmod, jobs, here=True)) == [(3, 1), (2, 1), (3, 2)]


def test_threads_are_given_back():
    torch.set_num_threads(2)
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
