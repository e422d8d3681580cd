"""Measuring with Ray gives the same result, also when a worker dies."""

import os
import signal
import sys
from functools import reduce

import pytest
import torch
import xarray as xr

import headscope as hs
from headscope.core.errors import InputError
from headscope.measuring.checkpoint import add_states
from headscope.measuring.job import prepare_job
from headscope.measuring.merge import to_dataset
from headscope.measuring.ray import distribute
from headscope.measuring.settings import make_measure_settings
from tests.measuring.data import LENSES, STATISTICS, examples, saved_model
from tests.models import tiny

pytestmark = pytest.mark.timeout(1200)  # on a busy machine each worker takes a minute to start


@pytest.fixture(scope="module")
def cluster():
    """Two CPUs of this machine."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved_model(tmp_path_factory.mktemp("model"))


def measured(folder, **options):
    return hs.measure(
        hs.load(folder),
        examples(24),
        lens=LENSES,
        statistics=STATISTICS,
        batch_size=2,
        progress=False,
        rows=True,
        **options,
    )


def test_two_workers_give_the_result_of_one_process(cluster, folder, tmp_path):
    result = measured(folder, engine="ray", workers=2, out=tmp_path / "heads.nc")
    xr.testing.assert_allclose(result, measured(folder), atol=1e-6)
    assert list(result["text"].values) == [example.text for example in examples(24)]
    assert [path.name for path in tmp_path.iterdir()] == ["heads.nc"]


@pytest.mark.soak
def test_a_killed_worker_is_replaced_and_no_batch_is_lost(cluster, folder):
    job = prepare_job(hs.load(folder), examples(24), make_measure_settings(LENSES, STATISTICS, batch_size=2))
    states = distribute(job, 2)(job.plan.batches())
    whole = next(states)
    for process in workers():
        os.kill(process, signal.SIGKILL)
    whole = reduce(add_states, states, whole)
    local = reduce(add_states, job.observe(job.plan.batches()))
    xr.testing.assert_allclose(to_dataset(whole, job.facts), to_dataset(local, job.facts), atol=1e-6)


def workers():
    import psutil

    processes = psutil.Process().children(recursive=True)  # of this cluster, and of no other
    ids = [process.pid for process in processes if "ray::_Worker" in " ".join(process.cmdline())]
    assert ids, "no worker was running"
    return ids[:1]


def test_workers_cannot_load_a_model_passed_as_an_object(cluster):
    with pytest.raises(InputError, match="The workers cannot load .*: it was passed to hs.load as an object"):
        hs.measure(tiny("bert"), examples(4), statistics="entropy", engine="ray", progress=False)


def test_a_model_that_was_changed_after_it_was_loaded_is_refused(cluster, folder):
    model = hs.load(folder)
    model.network.encoder.layer[0].intermediate.intermediate_act_fn = torch.nn.ReLU()
    with pytest.raises(
        InputError, match=r"loaded another model from '.*' than yours: they differ in their modules\. A"
    ):
        hs.measure(model, examples(2), statistics="entropy", engine="ray", workers=1, progress=False)


def test_without_ray_the_error_names_the_pip_command(monkeypatch, folder):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(hs.HeadscopeError, match=r"pip install 'headscope\[ray\]'"):
        measured(folder, engine="ray")
