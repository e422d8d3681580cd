"""The benchmarks run."""

import json
import subprocess
import sys
from pathlib import Path


def test_the_benchmark_of_effective_attention_runs_on_tiny_shapes():
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "benchmarks.effective", "--quick"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "over the forward pass with attentions" in done.stdout
    assert "full SVD, by head" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_the_benchmark_of_identifiability_runs_on_a_tiny_shape():
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "benchmarks.identifiability", "--quick"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "HiGHS, warm" in done.stdout
    assert "(scaled)" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_the_benchmark_of_patterns_runs_on_a_few_maps():
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "benchmarks.patterns", "--quick"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "nearest neighbour" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_the_benchmark_of_rollout_runs_on_a_tiny_shape():
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "benchmarks.rollout", "--quick"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "view over the forward pass" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_the_benchmark_of_attention_flow_runs_on_a_tiny_graph(tmp_path):
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "benchmarks.flow", "--quick", "--out", tmp_path / "flow.json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "Attention flow, causal: peers over headscope" in done.stdout
    assert "(scaled)" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    rows = json.loads((tmp_path / "flow.json").read_text(encoding="utf-8"))["rows"]
    assert all(row["apart"] < 1e-9 for row in rows)


def test_the_benchmark_of_distances_between_heads_runs_on_a_tiny_shape(tmp_path):
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "benchmarks.head_distance", "--quick", "--out", tmp_path / "distances.json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "peers over headscope" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    rows = json.loads((tmp_path / "distances.json").read_text(encoding="utf-8"))["rows"]
    assert len(rows) == 2
    assert all(row["apart"] < 1e-5 for row in rows)


def test_the_benchmark_of_pruning_runs_on_a_tiny_shape(tmp_path):
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "benchmarks.pruning", "--quick", "--out", tmp_path / "pruning.json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "whole over pruned, least / median" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    rows = json.loads((tmp_path / "pruning.json").read_text(encoding="utf-8"))["rows"]
    assert all(row["error"] < 1e-5 and row["file"] < row["whole_file"] for row in rows)


def test_the_benchmark_of_ablation_runs_on_a_few_examples(tmp_path):
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "benchmarks.ablation", "--quick", "--out", tmp_path / "ablation.json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "naive (scaled)" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    (row,) = json.loads((tmp_path / "ablation.json").read_text(encoding="utf-8"))["rows"]
    assert row["heads"] == 72
    assert row["flops"] < 48 * row["plain_flops"]
    assert row["predictions_that_differ"] == 0


def test_the_benchmark_of_cues_runs_on_a_few_texts(tmp_path):
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "benchmarks.cues", "--quick", "--out", tmp_path / "cues.json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "CountVectorizer" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert json.loads((tmp_path / "cues.json").read_text(encoding="utf-8"))["apart"] == 0
