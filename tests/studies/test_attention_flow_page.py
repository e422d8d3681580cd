"""The page of the docs on attention flow is generated from result files only."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

from headscope.results.npz import write_npz
from headscope.results.stamp import read_provenance, stamp
from headscope.results.store import open_result
from tests.studies.data import found

DOCS = Path(__file__).parents[2] / "docs"


def load_page():
    spec = importlib.util.spec_from_file_location("attention_flow_page", DOCS / "attention_flow_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """Two seeds of a tiny study, joined as the docs' own results are."""
    folder = tmp_path_factory.mktemp("joined")
    parts = found("attention_flow")
    for task, name in (("templates", "templates"), ("sst2", "SST-2")):
        for part in ("numbers", "shown", "maps"):
            data = parts[part]
            if "task" in data.dims:
                named = [data.assign_coords(task=[f"{name} seed {seed}"]) for seed in (0, 1)]
                data = stamp(xr.concat(named, "task", combine_attrs="override"), **read_provenance(data))
            write_npz(data, folder / "found" / f"tiny.{task}.{part}.npz")
    script = [sys.executable, DOCS / "runs" / "attention_flow.py", "join", folder / "found", "--out", folder]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_runs_are_joined_into_stamped_files(joined):
    assert {path.name for path in joined.glob("*.nc")} == {
        "attention_flow_tiny.nc", "attention_flow_tiny_shown.nc", "attention_flow_tiny_maps.nc",
    }  # fmt: skip
    for path in joined.glob("*.nc"):
        assert {"command", "model", "weights_hash", "data", "n", "version"} <= set(read_provenance(open_result(path)))
    whole, one = open_result(joined / "attention_flow_tiny.nc"), found("attention_flow")["numbers"]
    assert len(whole["task"]) == 4
    shown = open_result(joined / "attention_flow_tiny_shown.nc")
    assert [str(task) for task in shown["task"].values] == [
        "templates seed 0",
        "templates seed 1",
    ]  # no sentence of GLUE
    xr.testing.assert_allclose(whole["correlation"].isel(task=3, drop=True), one["correlation"].isel(task=0, drop=True),
                               rtol=1e-5)  # fmt: skip


def test_the_page_answers_in_words_and_numbers(joined):
    maker = load_page()
    known = maker.results(joined)
    text = maker.page(known).decode()
    for said in (
        "## tiny",
        "| Flow correlates better with blank-out than raw attention does, in the last layer. |",
        "(the paper's Table 3)",
        "| rollout | 0.11 ± 0.19 | 0.12 ± 0.21 | 0.13 ± 0.21 | 0.13 ± 0.20 |",
        "| SST-2 seed 1 | flow |",
        "The studied model has no such head",
        "it ranks densely",
    ):
        assert said in text
    assert "nan" not in text
    assert maker.page(maker.results(joined)).decode() == text
    drawn = maker.drawn(known)
    assert "attention_flow_tiny_correlation_by_layer.svg" in drawn
    assert all(f"pictures/{name}" in text for name in drawn)


def test_without_results_there_is_no_page(tmp_path):
    assert load_page().results(tmp_path) == {}
