"""The page of the docs is generated from result files only."""

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from headscope.results.npz import write_npz
from headscope.results.stamp import stamp
from tests.studies.data import found

DOCS = Path(__file__).parents[2] / "docs"


def read_script(path):
    """A script of the docs as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """Runs of a tiny study of two tasks with two seeds, joined as the docs' own results are."""
    folder = tmp_path_factory.mktemp("joined")
    parts = found("effective_attention")
    for task in ("RTE", "SST-2"):
        for seed in (0, 1):
            numbers = parts["numbers"].assign_coords(task=[task]).expand_dims(seed=[seed], axis=1)
            write_npz(numbers, folder / "found" / f"tiny.{task.lower()}.{seed}.numbers.npz")
        write_npz(stamp(parts["maps"], task_shown=task), folder / "found" / f"tiny.{task.lower()}.0.maps.npz")
    timed = [parts["times"].assign_coords(task=[task]) for task in ("RTE", "SST-2")]
    for label in ("tiny", "bert-base-shape_cpu"):
        timed_as = xr.concat(timed, "task", combine_attrs="override")
        write_npz(timed_as, folder / "found" / f"{label}.times.npz")
    script = [sys.executable, DOCS / "runs" / "effective_attention.py", "join", folder / "found", "--out", folder]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def maker():
    return read_script(DOCS / "effective_attention_page.py")


def test_runs_are_joined_into_stamped_files(joined):
    from headscope.results.stamp import read_provenance
    from headscope.results.store import open_result

    assert {path.name for path in joined.glob("*.nc")} == {
        "effective_attention_tiny.nc", "effective_attention_tiny_times.nc", "effective_attention_tiny_maps.nc",
        "effective_attention_bert-base-shape_cpu_times.nc",
    }  # fmt: skip
    for path in joined.glob("*.nc"):
        facts = read_provenance(open_result(path))
        assert {"command", "model", "weights_hash", "data", "n", "version"} <= set(facts)
        assert facts["n"] == (12 if path.stem.endswith("_times") else 24)
    whole = open_result(joined / "effective_attention_tiny.nc")
    one = found("effective_attention")["numbers"]
    assert whole["share"].dims[:2] == ("task", "seed")
    for seed in (0, 1):
        again = whole["share"].isel(task=1, drop=True).sel(seed=seed, drop=True)
        xr.testing.assert_allclose(again, one["share"].isel(task=0, drop=True), rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda run: run.assign(data_hash=("task", ["other"])), "The seeds of RTE study different inputs"),
        (lambda run: stamp(run, weights_hash="other"), "differ in weights_hash"),
        (lambda run: run.assign_coords(task=["MRPC"]), "Tasks have different seeds"),
    ],
)
def test_runs_that_do_not_belong_together_are_not_joined(tmp_path, change, said):
    numbers = found("effective_attention")["numbers"].assign_coords(task=["RTE"])
    for seed, run in enumerate((numbers, change(numbers))):
        run = run.expand_dims(seed=[seed], axis=1)
        write_npz(run, tmp_path / "found" / f"tiny.{run['task'].item().lower()}.{seed}.numbers.npz")
    script = read_script(DOCS / "runs" / "effective_attention.py")
    with pytest.raises(SystemExit, match=said):
        script.join(argparse.Namespace(folder=tmp_path / "found", out=tmp_path, seeds=None))
    assert not list(tmp_path.glob("*.nc"))


def test_the_page_answers_in_words_and_numbers(joined, maker):
    known = maker.results(joined)
    text = maker.page(known, joined).decode()
    for said in (
        "## tiny",
        "[SEP], from all other tokens,",
        "| RTE, [SEP] |",
        "| SST-2, paper |",
        "headscope study effective-attention:epochs=1,batch_size=8,learning_rate=2e-05 --data GLUE --tasks rte",
        "have at most 8 tokens",
        "one thread of a CPU (seconds of CPU time), random weights, the same texts",
    ):
        assert said in text
    assert "**Reduced**" not in text  # all of dev was studied
    assert "nan" not in text
    assert list(maker.drawn(known)) == ["effective_attention_tiny_by_length.svg"]


def test_without_results_there_is_no_page(maker, tmp_path):
    assert maker.results(tmp_path) == {}


def test_numbers_are_printed_with_their_intervals(maker):
    frame = pd.DataFrame({"x": [0.5, np.nan], "x_low": [0.4, np.nan], "x_high": [0.6, np.nan], "name": ["a", "b"]})
    text = maker.format_intervals(frame, ".1f", ("x",))
    assert text.to_dict("list") == {"x": ["0.5 [0.4, 0.6]", ""], "name": ["a", "b"]}
