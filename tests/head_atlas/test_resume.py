"""A run that was interrupted continues, and gives the same bytes; so do several workers."""

import signal
import subprocess
import sys
import time

import pytest

import headscope as hs
from headscope.core.errors import DataWarning, InputError
from headscope.core.example import ExampleStream
from headscope.measuring import measure
from headscope.measuring.checkpoint import Checkpoint, read_checkpoint
from headscope.measuring.job import MeasureJob
from tests.head_atlas.data import examples, make_atlas, read_files
from tests.measuring.data import saved_model


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return saved_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def expected(saved, tmp_path_factory):
    """All files of an atlas that was written in one go."""
    out = tmp_path_factory.mktemp("whole") / "atlas"
    make_atlas(hs.load(saved), out)
    return read_files(out)


def interrupt_after(monkeypatch, batches):
    """Let a measurement fail after some batches, each of which is saved."""
    observe = MeasureJob.observe

    def fail(self, planned):
        for index, states in enumerate(observe(self, planned)):
            if index == batches:
                raise KeyboardInterrupt
            yield states

    monkeypatch.setattr(measure, "MIN_INTERVAL", 0)
    monkeypatch.setattr(measure, "WRITE_FACTOR", 0)
    monkeypatch.setattr(MeasureJob, "observe", fail)


def test_a_run_that_was_interrupted_while_it_measured_gives_the_same_bytes(saved, expected, tmp_path):
    model = hs.load(saved)
    for done in (2, 1):  # interrupted twice
        with pytest.MonkeyPatch.context() as patch:
            interrupt_after(patch, done)
            with pytest.raises(
                KeyboardInterrupt, match=r"^Stopped. What is done so far is in .*atlas.unfinished: start it again"
            ):
                make_atlas(model, tmp_path / "atlas")
    assert read_checkpoint(tmp_path / "atlas.unfinished" / "measure.state").done == 12
    assert not (tmp_path / "atlas").exists()
    make_atlas(model, tmp_path / "atlas")
    assert read_files(tmp_path / "atlas") == expected
    assert [path.name for path in tmp_path.iterdir()] == ["atlas"]


def test_a_corpus_that_is_read_as_a_stream_gives_the_same_bytes(saved, expected, tmp_path):
    corpus = examples(20)
    stream = ExampleStream(lambda: iter(corpus), range(20))
    make_atlas(hs.load(saved), tmp_path / "atlas", stream)
    assert read_files(tmp_path / "atlas") == expected


def test_a_run_that_was_killed_while_it_stored_maps_gives_the_same_bytes(saved, expected, tmp_path):
    maps = tmp_path / "atlas.unfinished" / "maps"
    process = subprocess.Popen([sys.executable, "-m", "tests.head_atlas.killed", saved, tmp_path / "atlas"])
    while len(list(maps.glob("*.zip"))) < 2:
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "atlas").exists()
    with pytest.warns(DataWarning, match=r"was locked by process \d+ .* Its lock is taken over"):
        make_atlas(hs.load(saved), tmp_path / "atlas")
    assert read_files(tmp_path / "atlas") == expected
    assert [path.name for path in tmp_path.iterdir()] == ["atlas"]


def test_other_options_do_not_continue_a_run_unless_it_may_be_discarded(saved, tmp_path, monkeypatch):
    model = hs.load(saved)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            make_atlas(model, tmp_path / "atlas")
    for option in ({"keys": 3}, {"statistics": "entropy"}, {"examples": 2}, {"seed": 4}):
        with pytest.raises(
            InputError, match=r"cannot be resumed: its .* Measure as before, start over \(overwrite=True"
        ):
            make_atlas(model, tmp_path / "atlas", **option)
    make_atlas(model, tmp_path / "atlas", keys=3, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["atlas"]


def test_states_as_a_worker_sends_them_give_the_same_bytes(saved, expected, tmp_path, monkeypatch):
    observe = MeasureJob.observe

    def send(self, batches):
        for states in observe(self, batches):
            yield Checkpoint.from_bytes(Checkpoint({}, 0, 0, states).to_bytes()).states

    monkeypatch.setattr(MeasureJob, "observe", send)
    make_atlas(hs.load(saved), tmp_path / "atlas")
    assert read_files(tmp_path / "atlas") == expected


@pytest.mark.soak
def test_two_workers_of_ray_give_the_same_bytes(saved, expected, tmp_path):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        make_atlas(hs.load(saved), tmp_path / "atlas", engine="ray", workers=2)
    finally:
        ray.shutdown()
    assert read_files(tmp_path / "atlas") == expected
