"""The same verbs and the same answer on a Ray cluster, also when a worker dies."""

import os
import signal
import sys
from functools import reduce

import pytest
import xarray as xr

import headscope as hs
from headscope.core.errors import InputError
from headscope.measuring import ray as engine
from headscope.measuring.checkpoint import added
from headscope.measuring.finish import finished
from headscope.measuring.prepare import prepared
from headscope.measuring.settings import settings_of
from tests.measuring.data import LENSES, STATISTICS, examples, saved_model
from tests.models import tiny


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
        hs.load(folder), examples(24), lens=LENSES, statistics=STATISTICS, batch_size=2, progress=False, rows=True,
        **options,
    )  # fmt: skip


def test_two_workers_give_the_answer_of_one_process(cluster, folder, tmp_path):
    found = measured(folder, engine="ray", workers=2, out=tmp_path / "heads.nc")
    xr.testing.assert_allclose(found, measured(folder), atol=1e-6)
    assert [each.name for each in tmp_path.iterdir()] == ["heads.nc"]


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost(cluster, folder):
    job = prepared(hs.load(folder), examples(24), settings_of(LENSES, STATISTICS), batch_size=2)
    states = engine.run(job, 2)(0)
    whole = next(states)
    for process in workers():
        os.kill(process, signal.SIGKILL)
    for each in states:
        whole = added(whole, each)
    plain = reduce(added, job.states())
    xr.testing.assert_allclose(finished(whole, job.facts), finished(plain, job.facts), atol=1e-6)


def workers():
    import psutil

    found = [
        each.pid for each in psutil.process_iter(["cmdline"]) if "ray::_Worker" in " ".join(each.info["cmdline"] or [])
    ]
    assert found, "no worker was running"
    return found[:1]


def test_a_model_in_hand_cannot_be_loaded_by_workers(cluster):
    with pytest.raises(InputError, match="The workers cannot load .*: it was handed to hs.load as an object"):
        hs.measure(tiny("bert"), examples(4), statistics="entropy", engine="ray", progress=False)


def test_ray_is_asked_for_by_its_pip_command(monkeypatch, folder):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(hs.HeadscopeError, match=r"pip install 'headscope\[ray\]'"):
        measured(folder, engine="ray")
