"""The numerical tests pass under the rounding of other processors and numbers of threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NUMERICAL = (
    "tests/effective",
    "tests/maps",
    "tests/uncertainty",
    "tests/laws/test_lenses.py",
    "tests/laws/test_edits.py",
)
PLAIN_EDITS = ("zero_heads", "gate_heads", "uniform_heads", "mean_heads", "resample_heads")
"""Edits that only copy, scale and average: they decide nothing by a comparison, so their laws run once, elsewhere."""

ROUNDINGS = {
    "without vector instructions": {"ATEN_CPU_CAPABILITY": "default"},
    "products that do not depend on the processor": {"MKL_CBWR": "COMPATIBLE"},
    "both, with two threads": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_CBWR": "COMPATIBLE",
        "HEADSCOPE_TEST_THREADS": "2",
    },
}


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_numerical_tests_pass_under_other_rounding(rounding):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *NUMERICAL]
    command += ["-k", " and ".join(f"not {name}" for name in PLAIN_EDITS)]
    environment = {**os.environ, **ROUNDINGS[rounding], "HEADSCOPE_TEST_PLAIN": "1"}  # shapes do not depend on rounding
    environment.pop("PYTEST_XDIST_WORKER", None)  # the tests inside are no worker of this run
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-3000:]
    assert " passed" in run.stdout
