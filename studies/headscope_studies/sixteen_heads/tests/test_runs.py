"""The scripts that run the study: what is kept of earlier results, and the order of jobs on a GPU."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.core.provenance import stamp
from headscope.experiments.runs import split_stored, widen_intervals
from headscope.uncertainty.paired import least_margin
from headscope_studies.sixteen_heads.runs import on_a_gpu
from headscope_studies.sixteen_heads.runs.sixteen_heads import bound_stored, compare_again
from tests.study_data import found


def changes(metric):
    variables = {f"change{end}": ("head", [0.0, value]) for end, value in (("", -0.2), ("_low", -0.5), ("_high", -0.1))}
    return xr.Dataset({**variables, "metric": metric, "n": 100})


def test_no_stored_interval_of_accuracy_has_no_width():
    widened = widen_intervals(changes("accuracy"), ["change"])
    margin = least_margin(100)
    np.testing.assert_allclose(widened["change_low"], [-margin, -0.5])
    np.testing.assert_allclose(widened["change_high"], [margin, -0.1])
    assert widen_intervals(changes("accuracy"), ["change"], share=0.5)["change_high"][0] > margin
    xr.testing.assert_identical(widen_intervals(changes("pearson"), ["change"]), changes("pearson"))


def test_stored_tasks_are_kept_unless_they_were_run_again(tmp_path):
    stored = xr.Dataset(
        {"score": (("task", "seed"), [[1.0, 2.0], [3.0, 4.0]])}, {"task": ["RTE", "MRPC"], "seed": [0, 1]}
    )
    path = hs.save(stamp(stored, command="earlier"), tmp_path / "stored.nc")
    parts = split_stored(path, ["RTE"])
    assert [(str(part["task"].item()), part["seed"].item(), part["score"].item()) for part in parts] == [
        ("MRPC", 0, 3.0),
        ("MRPC", 1, 4.0),
    ]
    assert split_stored(tmp_path / "none.nc", []) == []


def test_stored_results_are_judged_as_new_ones():
    numbers = found("sixteen_heads")["numbers"].expand_dims(seed=[0], axis=1)
    old = numbers.drop_dims("half")
    bound = compare_again(bound_stored(old))
    width = bound["change_high"] - bound["change_low"]
    assert float(width.min()) >= 2 * least_margin(int(numbers["n"].max())) - 1e-12
    assert (bound["kept_low"].sel(pruned=0) == 1).all()  # which is compared with itself
    assert bound["half_change"].sizes["half"] == numbers.sizes["drawn"]


@pytest.mark.parametrize("limit", [None, 5])
def test_every_job_on_a_gpu_waits_for_earlier_ones_only(limit):
    chosen = Namespace(
        work=Path("w"),
        place=Path("p"),
        parallel=Path("t"),
        model=[Path("a"), Path("b")],
        limit=limit,
        train_limit=limit,
    )
    jobs = list(on_a_gpu.list_jobs(chosen, Path("f")))
    names = [job.name for job in jobs]
    assert len(set(names)) == len(names) == 3 * (1 + 4) + 2 * 3 * 5 * 2 + 2 * 3 * (4 + 5)
    for at, job in enumerate(jobs):
        assert set(job.after) <= set(names[:at])
        assert job.script.is_file()
        assert (str(limit) in job.arguments) is (limit is not None)


def test_jobs_are_run_and_what_they_found_is_packed(tmp_path):
    found_in, out = tmp_path / "work" / "found", tmp_path / "out"
    for folder in (found_in, out):
        folder.mkdir(parents=True)
    script = tmp_path / "job.py"
    script.write_text("import sys, pathlib\npathlib.Path(sys.argv[1]).write_bytes(b'x')\nassert sys.argv[1] != 'no'\n")
    first, bad = (on_a_gpu.Job(name, script, (path,)) for name, path in (("a", str(found_in / "a.npz")), ("b", "/")))
    jobs = [first, bad, on_a_gpu.Job("c", script, (str(found_in / "c.npz"),), ("b",))]
    on_a_gpu.run_jobs(jobs, out, found_in, processes=2, seconds=60)
    assert (out / "results.tar.gz").is_file()
    assert '"failed": [\n  "b"\n ]' in (out / "jobs.json").read_text()
    assert not (found_in / "c.npz").exists()  # it waits for one that failed
