"""The benchmarks run."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.browser import browser

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # truncated texts, and what peers warn of: benchmarks run all the same


@pytest.fixture
def run_quickly(monkeypatch, capsys):
    """Run a benchmark on tiny shapes, and return what it prints, in lines of at most 80 characters."""

    def run(name, *options):
        monkeypatch.setattr(sys, "argv", [name, "--quick", *map(str, options)])
        runpy.run_path(str(BENCHMARKS / f"{name}.py"), run_name="__main__")
        printed = capsys.readouterr().out
        assert_narrow(printed)
        return printed

    threads = torch.get_num_threads()
    yield run
    torch.set_num_threads(threads)


def assert_narrow(printed):
    assert all(len(line) <= 80 for line in printed.splitlines())


def test_the_benchmark_of_effective_attention_runs_on_tiny_shapes(run_quickly):
    printed = run_quickly("effective")
    assert "over the forward pass with attentions" in printed
    assert "full SVD, by head" in printed


def test_the_benchmark_of_identifiability_runs_on_a_tiny_shape(run_quickly):
    printed = run_quickly("identifiability")
    assert "HiGHS, warm" in printed
    assert "(scaled)" in printed


@pytest.mark.soak
def test_the_benchmark_of_long_texts_runs_on_a_tiny_text(run_quickly):
    printed = run_quickly("long")
    assert "over forward" in printed
    assert "loop" in printed


def test_the_benchmark_of_patterns_runs_on_a_few_maps(run_quickly):
    printed = run_quickly("patterns")
    assert "nearest neighbour" in printed


def test_the_benchmark_of_judging_lenses_runs_on_a_few_texts(run_quickly):
    printed = run_quickly("faithfulness")
    assert "144 edges of 3 texts" in printed
    assert "plain forwards (bar 40" in printed


def test_the_benchmark_of_rollout_runs_on_a_tiny_shape(run_quickly):
    printed = run_quickly("rollout")
    assert "view over the forward pass" in printed


def test_the_benchmark_of_attention_flow_runs_on_a_tiny_graph(tmp_path):
    command = [sys.executable, "-m", "benchmarks.flow", "--quick", "--out", tmp_path / "flow.json"]
    # OR-Tools cannot be loaded after highspy, which another benchmark has loaded
    printed = subprocess.run(command, cwd=BENCHMARKS.parent, capture_output=True, text=True, check=True).stdout
    assert_narrow(printed)
    assert "Attention flow, causal: peers over headscope" in printed
    assert "(scaled)" in printed
    rows = json.loads((tmp_path / "flow.json").read_text(encoding="utf-8"))["rows"]
    assert all(row["apart"] < 1e-9 for row in rows)


@pytest.mark.soak
def test_the_benchmark_of_attention_flow_runs_on_the_attention_of_a_model(tmp_path):
    command = [sys.executable, "-m", "benchmarks.flow", "--real", "--quick", "--out", tmp_path / "flow.json"]
    subprocess.run(command, cwd=BENCHMARKS.parent, capture_output=True, text=True, check=True)
    rows = json.loads((tmp_path / "flow.json").read_text(encoding="utf-8"))["rows"]
    assert [row["kind"] for row in rows] == ["all-MiniLM-L6-v2" + few for few in ("", ", 4 heads", ", 1 head")]
    assert all(row["apart"] < 1e-9 and (row["layers"], row["tokens"]) == (6, 16) for row in rows)


def test_the_benchmark_of_distances_between_heads_runs_on_a_tiny_shape(run_quickly, tmp_path):
    printed = run_quickly("head_distance", "--out", tmp_path / "distances.json")
    assert "peers over headscope" in printed
    rows = json.loads((tmp_path / "distances.json").read_text(encoding="utf-8"))["rows"]
    assert len(rows) == 2
    assert all(row["apart"] < 1e-5 for row in rows)


def test_the_benchmark_of_pruning_runs_on_a_tiny_shape(run_quickly, tmp_path):
    printed = run_quickly("pruning", "--out", tmp_path / "pruning.json")
    assert "whole over pruned, least / median" in printed
    rows = json.loads((tmp_path / "pruning.json").read_text(encoding="utf-8"))["rows"]
    assert all(row["error"] < 1e-5 and row["file"] < row["whole_file"] for row in rows)


def test_the_benchmark_of_ablation_runs_on_a_few_examples(run_quickly, tmp_path):
    printed = run_quickly("ablation", "--out", tmp_path / "ablation.json")
    assert "naive (scaled)" in printed
    (row,) = json.loads((tmp_path / "ablation.json").read_text(encoding="utf-8"))["rows"]
    assert row["heads"] == 72
    assert row["flops"] < 48 * row["plain_flops"]
    assert row["predictions_that_differ"] == 0


def test_the_benchmark_of_cues_runs_on_a_few_texts(run_quickly, tmp_path):
    printed = run_quickly("cues", "--out", tmp_path / "cues.json")
    assert "CountVectorizer" in printed
    assert json.loads((tmp_path / "cues.json").read_text(encoding="utf-8"))["apart"] == 0


@browser
def test_the_benchmark_of_the_viewer_runs_on_a_short_text(run_quickly, tmp_path):
    printed = run_quickly("viewer", "--out", tmp_path / "viewer.json")
    assert "all heads s" in printed
    (row,) = json.loads((tmp_path / "viewer.json").read_text(encoding="utf-8"))["rows"]
    assert row["requests"] == 0
    assert row["nodes"] < 2000


def test_the_benchmark_of_the_atlas_runs_on_a_few_texts(run_quickly, tmp_path):
    printed = run_quickly("atlas", "--out", tmp_path / "atlas.json")
    assert "growth with the corpus" in printed
    rows = json.loads((tmp_path / "atlas.json").read_text(encoding="utf-8"))["rows"]
    assert [row["examples"] for row in rows] == [2, 4]
