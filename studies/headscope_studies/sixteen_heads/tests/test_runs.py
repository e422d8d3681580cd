"""The scripts that run the study: what is kept of earlier results, and the order of jobs on a GPU."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.core.provenance import stamp
from headscope.experiments.runs import group_runs, widen_intervals
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


def result(task, seeds, value):
    """A result of one or more seeds of a task, with its provenance."""
    data = xr.Dataset({"score": (("task", "seed"), [[value] * len(seeds)])}, {"task": [task], "seed": list(seeds)})
    return stamp(data, command="earlier", stored=["MRPC"])


def list_groups(runs, folder):
    return [
        (
            group.name,
            [str(run["task"].item()) for run in group.runs],
            [(str(run["task"].item()), int(run["seed"].item())) for run in group.stored],
            {name: group.facts.get(name) for name in ("command", "stored", "not_run") if name in group.facts},
        )
        for group in group_runs("study_", "tiny", runs, folder, {"command": "now"})
    ]


def test_stored_tasks_are_kept_beside_new_ones_with_the_same_seeds(tmp_path):
    stored = xr.concat([result("MRPC", (0, 1), 1.0), result("RTE", (0, 1), 2.0)], "task")
    hs.save(stored, tmp_path / "study_tiny.nc")
    runs = [result("RTE", (seed,), 3.0) for seed in (0, 1)]
    facts = {"command": "now", "stored": ["MRPC"]}
    assert list_groups(runs, tmp_path) == [("tiny", ["RTE", "RTE"], [("MRPC", 0), ("MRPC", 1)], facts)]
    assert list_groups(runs, None) == [("tiny", ["RTE", "RTE"], [], {"command": "now", "stored": []})]


def test_a_task_run_again_with_fewer_seeds_leaves_the_file_of_the_others(tmp_path):
    stored = xr.concat([result("MRPC", (0, 1), 1.0), result("RTE", (0, 1), 2.0)], "task")
    hs.save(stored, tmp_path / "study_tiny.nc")
    assert list_groups([result("RTE", (0,), 3.0)], tmp_path) == [
        ("tiny-1-seeds", ["RTE"], [], {"command": "now", "stored": [], "not_run": [1]}),
        ("tiny", [], [("MRPC", 0), ("MRPC", 1)], {"command": "earlier", "stored": ["MRPC"]}),
    ]


def test_a_stored_file_whose_tasks_were_all_run_again_is_named(tmp_path, capsys):
    hs.save(result("RTE", (0, 1), 2.0), tmp_path / "study_tiny.nc")
    ((name, tasks, stored, _),) = list_groups([result("RTE", (0,), 3.0)], tmp_path)
    assert (name, tasks, stored) == ("tiny-1-seeds", ["RTE"], [])
    assert "All tasks of tiny with seeds 0, 1 were run again: delete that file." in capsys.readouterr().err


def test_tasks_with_other_seeds_of_the_same_number_are_not_written_over_one_another(tmp_path):
    hs.save(result("QNLI", (1,), 2.0), tmp_path / "study_tiny-1-seeds.nc")
    with pytest.raises(SystemExit, match="Tasks of tiny have as many seeds, but others: 0; 1. Their files"):
        list_groups([result("RTE", (0,), 3.0)], tmp_path)


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
    on_a_gpu.run_jobs(jobs, out, found_in, processes=2, seconds=600)  # it ends with its jobs
    assert (out / "results.tar.gz").is_file()
    assert '"failed": [\n  "b"\n ]' in (out / "jobs.json").read_text()
    assert not (found_in / "c.npz").exists()  # it waits for one that failed
