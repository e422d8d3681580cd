"""Texts of a file are measured in windows: the numbers are those of texts in memory, to the bit."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from functools import reduce
from types import SimpleNamespace

import pytest
import torch
import xarray as xr

import headscope as hs
from headscope.core.errors import DataWarning, InputError
from headscope.measuring import job as jobs
from headscope.measuring import ray
from headscope.measuring.checkpoint import Checkpoint, add_states, read_checkpoint
from headscope.measuring.job import prepare_job
from headscope.measuring.settings import make_measure_settings
from tests.measuring.data import LENSES, STATISTICS, examples, saved_model
from tests.models import text, tiny


def write_texts(path, count=20):
    rows = [
        {"id": example.id, "text": example.text, "label": "ab"[len(example.text) % 2]} for example in examples(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return write_texts(tmp_path_factory.mktemp("texts") / "texts.jsonl")


def measured(data, **options):
    arguments = {"lens": LENSES, "statistics": STATISTICS, "window": 6, "batch_size": 4, "progress": False}
    return hs.measure(tiny("bert"), data, **arguments | options)


@pytest.mark.parametrize("options", [{}, {"rows": True}, {"limit": 11, "seed": 2}, {"statistics": "token_types"}])
def test_a_file_gives_the_bits_of_a_list(texts, options):
    streamed, listed = measured(texts, **options), measured(hs.read(texts), **options)
    xr.testing.assert_identical(streamed, listed)  # with its stamp
    xr.testing.assert_allclose(streamed, measured(texts, window=1000, **options), atol=1e-6)


def test_only_a_window_of_a_file_is_in_memory(texts, monkeypatch):
    monkeypatch.setattr("headscope.data.reading.scan.read", lambda **_: pytest.fail("everything was read"))
    seen = []
    count = jobs.count_tokens
    monkeypatch.setattr(jobs, "count_tokens", lambda *args: seen.append(len(args[1])) or count(*args))
    measured(texts)
    assert seen == [6, 6, 6, 2]


def test_shards_of_a_file_merge_to_the_bits_of_those_of_a_list(texts, tmp_path):
    merged = []
    for name, data in (("file", texts), ("list", hs.read(texts))):
        paths = [tmp_path / f"{name}-{part}.state" for part in (1, 2, 3)]
        for part, path in enumerate(paths, 1):
            measured(data, shard=(part, 3), out=path, rows=True)
        merged.append(hs.merge(*paths))
    xr.testing.assert_identical(*merged)
    xr.testing.assert_allclose(merged[0], measured(texts, rows=True), atol=1e-6)


@pytest.mark.parametrize("done", [5, 12, 15])
def test_a_run_that_was_stopped_anywhere_resumes_to_the_same_bits(texts, tmp_path, monkeypatch, done):
    options = {"lens": "raw", "statistics": "entropy", "batch_size": 1, "window": 6, "limit": 16}
    whole, path = measured(texts, **options), tmp_path / "heads.nc"
    added = []

    def add(first, second):
        added.append(1)
        if len(added) > done:
            raise KeyboardInterrupt
        return add_states(first, second)

    with monkeypatch.context() as patch:
        patch.setattr("headscope.measuring.measure.add_states", add)
        with pytest.raises(KeyboardInterrupt, match=f"Stopped after {done} of 16 examples"):
            measured(texts, out=path, **options)
    xr.testing.assert_identical(measured(texts, out=path, resume=True, **options), whole)


@pytest.mark.parametrize("change", [{"window": 7}, {"batch_size": 5}])
def test_a_run_with_another_plan_is_not_resumed(texts, tmp_path, change):
    measured(texts, out=tmp_path / "heads.state")
    with pytest.raises(InputError, match="cannot be resumed: (its window is|the plan changed)"):
        measured(texts, out=tmp_path / "heads.state", resume=True, **change)


class Actor:
    """A worker of Ray, without Ray: it computes when its result is asked for."""

    def __init__(self, observer):
        self.worker = ray._Worker.__new__(ray._Worker)
        self.worker.observer = observer
        self.observe = self

    def remote(self, batch):
        return lambda: self.worker.observe(batch)


def test_workers_give_the_bits_of_one_process_and_read_no_further_than_needed(texts):
    settings = make_measure_settings(LENSES, STATISTICS, window=6, batch_size=1)
    job = prepare_job(tiny("bert"), texts, settings)
    whole, taken = reduce(add_states, job.observe(job.plan.batches())), []

    def batches():
        for batch in job.plan.batches():
            taken.append(batch)
            yield batch

    actors = [Actor(job.observer), Actor(job.observer)]
    states = ray._observe_in_order(SimpleNamespace(get=lambda result: result(), exceptions=None), actors, batches())
    first = next(states)
    assert len(taken) == 2 * ray.QUEUED + 1 < 20
    added = reduce(add_states, states, first)
    assert len(taken) == 20
    assert Checkpoint({}, 0, 0, added).to_bytes() == Checkpoint({}, 0, 0, whole).to_bytes()


def test_what_is_wrong_in_a_later_window_is_said_once(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(text(20 if index in (7, 11) else 3) for index in range(12)))
    sentence = "Examples 7 to 9 of 12: 1 of 3 texts are longer than 8 tokens and will be truncated: .* Later ones are"
    with pytest.warns(DataWarning, match=sentence) as warnings:
        measured(path, max_length=8, window=3)
    assert len(warnings) == 1


def test_memory_does_not_grow_with_the_number_of_texts(tmp_path, monkeypatch):
    """Without the model, which takes the same for each batch."""
    monkeypatch.setattr("headscope.measuring.job.observe_batches", lambda _, batches: ({} for _ in batches))
    peaks = []
    for count in (300, 900):  # all texts of the second would be twice the peak
        path = write_texts(tmp_path / f"{count}.jsonl", count)
        settings = make_measure_settings("raw", "entropy", window=50)
        gc.collect()
        tracemalloc.start()
        job = prepare_job(tiny("bert"), path, settings)
        assert (
            sum(len(batch) for batch, _ in zip(job.plan.batches(), job.observe(job.plan.batches()), strict=True))
            == count
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0], peaks


KILLED = """
import sys, time
import headscope as hs
from headscope.measuring import measure
from headscope.measuring.job import MeasureJob

measure.MIN_INTERVAL = measure.WRITE_FACTOR = 0
observe = MeasureJob.observe

def observe_slowly(self, batches):
    for states in observe(self, batches):
        time.sleep(0.05)
        yield states

MeasureJob.observe = observe_slowly
hs.measure(hs.load(sys.argv[1]), sys.argv[2], statistics="entropy", window=12, batch_size=2, out=sys.argv[3])
"""


@pytest.mark.soak
def test_a_run_over_a_file_that_was_killed_resumes_to_the_same_bits_also_with_two_workers(tmp_path):
    from ray import init, shutdown

    folder, texts = saved_model(tmp_path / "model"), write_texts(tmp_path / "texts.jsonl", 120)
    model, threads = hs.load(folder), torch.get_num_threads()
    options = {"statistics": "entropy", "window": 12, "batch_size": 2, "progress": False}
    torch.set_num_threads(1)  # as in a worker
    whole = hs.measure(model, texts, **options)
    try:
        for resumed in ({}, {"engine": "ray", "workers": 2}):
            out = tmp_path / f"heads-{len(resumed)}.nc"
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            process = subprocess.Popen([sys.executable, "-c", KILLED, folder, texts, out], env=environment)
            state = out.with_name(f"{out.name}.state")
            while not state.exists() or not read_checkpoint(state).done:
                assert process.poll() is None, "it ended before it was killed"
                time.sleep(0.02)
            time.sleep(0.5)
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert 0 < read_checkpoint(state).done < 120
            if resumed:
                init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
            with pytest.warns(DataWarning, match="Its lock is taken over"):
                again = hs.measure(model, texts, out=out, resume=True, **options, **resumed)
            xr.testing.assert_identical(again, whole)
    finally:
        shutdown()
        torch.set_num_threads(threads)
