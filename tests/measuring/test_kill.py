"""A run that is killed at random points and resumed gives the numbers of an uninterrupted one."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
import xarray as xr

import headscope as hs
from headscope.core.errors import DataWarning
from headscope.measuring.checkpoint import read_checkpoint
from tests.measuring.data import LENSES, STATISTICS, examples, saved_model

KILLS = int(os.environ.get("HEADSCOPE_KILLS", "1"))  # `make soak` asks for twenty


def measured(model, **options):
    return hs.measure(
        model, examples(60), lens=LENSES, statistics=STATISTICS, batch_size=1, progress=False, rows=True, **options
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def uninterrupted(folder):
    return measured(hs.load(folder))


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_killed_run_resumes_to_the_same_numbers(tmp_path, folder, uninterrupted, kill):
    out = tmp_path / "heads.nc"
    state = tmp_path / "heads.nc.state"
    process = subprocess.Popen([sys.executable, "-m", "tests.measuring.killed", folder, out])
    while not state.exists():
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.02)
    time.sleep(random.Random(kill).uniform(0.2, 2.5))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 0 <= read_checkpoint(state).done < 60
    with pytest.warns(
        DataWarning, match=r"heads\.nc was locked by process \d+ on .* no longer runs\. Its lock is taken"
    ):
        resumed = measured(hs.load(folder), out=out, resume=True)
    xr.testing.assert_equal(resumed, uninterrupted)  # the same plan, threads and device: the same bits
    assert not {"heads.nc.state", ".heads.nc.lock"} & {path.name for path in tmp_path.iterdir()}
