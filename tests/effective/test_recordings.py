"""What is recorded and when; a stand-in records, so that no GPU is needed."""

import pytest
import torch

from headscope.effective import recordings
from headscope.effective.recordings import MOST, PATIENCE, WASTED, WORTH, Recordings
from tests.gpu import gpu


class OnGpu(torch.Tensor):
    """A tensor that says it lies on a GPU."""

    is_cuda = True


def tensor(size):
    return torch.arange(float(size)).as_subclass(OnGpu)


def doubled(given):
    return (2 * given,)


class StandIn:
    """Notes what is recorded and replayed, and gives what the work gives."""

    def __init__(self, work, given, fixed):
        self.work, self.size = work, len(given[0])
        RECORDED.append(self.size)

    def __call__(self, given, fixed):
        REPLAYED.append(self.size)
        return self.work(*given, *fixed)


RECORDED, REPLAYED = [], []


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch):
    monkeypatch.setattr(recordings, "_Recording", StandIn)
    RECORDED.clear()
    REPLAYED.clear()


def run(kept, size, times=1):
    for _ in range(times):
        (made,) = kept.run("doubled", doubled, tensor(size))
        assert torch.equal(made, 2 * tensor(size))


def test_work_is_recorded_when_it_came_often_enough_and_then_replayed():
    kept = Recordings()
    run(kept, 3, PATIENCE)
    assert not RECORDED
    run(kept, 3, 5)
    assert (RECORDED, REPLAYED) == ([3], [3] * 5)


def test_elsewhere_than_on_a_gpu_nothing_is_recorded():
    kept = Recordings()
    for _ in range(PATIENCE + 5):
        kept.run("doubled", doubled, torch.ones(3))
    assert not RECORDED


def test_shapes_that_take_turns_are_not_recorded_again_and_again():
    kept, sizes = Recordings(), range(1, MOST + 2)
    for _ in range(50 * PATIENCE):
        for size in sizes:
            run(kept, size)
    assert len(RECORDED) <= MOST + WASTED
    REPLAYED.clear()
    for size in sizes:
        run(kept, size)
    assert len(REPLAYED) == MOST  # those that were kept are still of use


def test_shapes_that_never_come_again_are_soon_no_longer_recorded():
    kept = Recordings()
    for size in range(1, 100):  # as when a model writes, and every token adds a key
        run(kept, size, 2 * PATIENCE)
    assert len(RECORDED) == MOST + WASTED


def test_shapes_that_stay_for_long_are_all_recorded():
    kept = Recordings()
    for size in range(1, 30):
        run(kept, size, PATIENCE + WORTH)
    assert list(range(1, 30)) == RECORDED


def test_a_shape_that_was_dropped_must_come_often_again():
    kept = Recordings()
    for size in range(1, MOST + 2):
        run(kept, size, PATIENCE + WORTH)
    RECORDED.clear()
    run(kept, 1, PATIENCE)
    assert not RECORDED
    run(kept, 1)
    assert RECORDED == [1]


@pytest.mark.parametrize("error", [RuntimeError, ValueError, torch.OutOfMemoryError])
def test_work_that_cannot_be_recorded_is_simply_done_from_then_on(monkeypatch, error):
    tried = []

    def failing(work, given, fixed):
        tried.append(len(given[0]))
        if len(given[0]) == 3:
            raise error("operation not permitted when stream is capturing")
        return StandIn(work, given, fixed)

    monkeypatch.setattr(recordings, "_Recording", failing)
    kept = Recordings()
    run(kept, 3, 3 * PATIENCE)
    run(kept, 4, 3 * PATIENCE)
    assert (tried, RECORDED) == ([3, 4], [4])


def test_where_nothing_can_be_recorded_it_is_soon_not_tried_any_more(monkeypatch):
    tried = []

    def failing(work, given, fixed):
        tried.append(len(given[0]))
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(recordings, "_Recording", failing)
    kept = Recordings()
    for size in range(1, 20):
        run(kept, size, 2 * PATIENCE)
    assert tried == list(range(1, WASTED + 1))


def test_work_that_does_not_fit_says_so_itself(monkeypatch):
    monkeypatch.setattr(recordings, "_Recording", lambda work, given, fixed: work(*given))
    kept = Recordings()
    run(kept, 3, PATIENCE)

    def too_large(given):
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        kept.run("doubled", too_large, tensor(3))


@gpu
def test_a_gpu_goes_on_after_work_that_it_cannot_record(monkeypatch):
    monkeypatch.undo()
    kept, given = Recordings(), torch.arange(3.0, device="cuda")
    stream = torch.cuda.current_stream()
    for _ in range(PATIENCE + 3):
        (made,) = kept.run("asking", lambda each: (each * each.sum().item(),), given)  # the host may not ask
        assert torch.equal(made.cpu(), 3 * torch.arange(3.0))
        assert torch.cuda.current_stream() == stream
