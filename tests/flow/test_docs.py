"""What docs/rollout_and_flow.md says about flow and rollout follows from result files."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from headscope.core.lens import view
from headscope.core.provenance import read_provenance
from headscope.engine.capture import capture
from headscope.engine.load import load
from headscope.results.store import open_result
from headscope.statistics.row_distance import RowDistance
from tests.batches import one_lens
from tests.oracles.statistics import oracle

DOCS = Path(__file__).parents[2] / "docs"
FLOW_RESULTS = Path(__file__).parents[2] / "studies" / "headscope_studies" / "attention_flow" / "results"
TEXTS = ("a fine film", "cold , clumsy and far too long")


def read_script(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def page():
    return read_script(DOCS / "pages" / "flow_page.py")


def speed_row(kind, tokens, networkx, igraph, layers=12, every=1.0):
    peers = {"networkx Edmonds–Karp": networkx, "igraph": igraph}
    found = {name: seconds for name, seconds in peers.items() if seconds is not None}
    sizes = {"kind": kind, "layers": layers, "tokens": tokens}
    return {**sizes, "headscope": 1.0, "headscope_all": every, "igraph_all": 5.0, "peers": found, "apart": 1e-15}


def test_every_bar_of_speed_is_judged(page, tmp_path, monkeypatch):
    rows = [
        speed_row("causal", 16, 10.0, 4.0),  # too few tokens for a bar against networkx
        speed_row("causal", 32, 4242.0, 4.0),
        speed_row("sink", 32, 5000.0, 2.0),
        speed_row("sink", 128, None, 9.0, every=8.0),  # networkx was not run
    ]
    facts = {"command": "benchmark", "device": "a CPU", "versions": {"igraph": "1"}, "pairs": 20, "rows": rows}
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "flow_performance.json").write_text(json.dumps(facts), encoding="utf-8")
    monkeypatch.setattr(page, "DOCS", tmp_path)
    said = page.describe_speed()
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in said.splitlines() if line.startswith("| ")]
    column = table[0].index("bar (networkx)")
    assert [row[column] for row in table[1:]] == ["–", "5,000× missed", "5,000× met", "–"]
    assert [row[column + 1] for row in table[1:]] == ["3× met", "3× met", "3× missed", "3× met"]
    assert said.splitlines()[0] == (
        "4 bars are met and 3 missed: causal 12 × 32, bar (networkx): 4,242× of 5,000×; sink 12 × 32, bar (igraph): "
        "2× of 3×; sink 12 × 128, all layers: 8 s (≤ 7 s)."
    )


def test_rows_of_rollout_are_measured_beside_the_saturation_of_flow(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "runs")
    script, paths = read_script(DOCS / "runs" / "flow_saturation.py"), []

    def call(*options):
        monkeypatch.setattr(sys, "argv", ["flow_saturation.py", *map(str, options)])
        script.main()

    (tmp_path / "SST-2").mkdir()
    rows = ["sentence\tlabel", *(f"{text}\t1" for text in TEXTS)]
    (tmp_path / "SST-2" / "dev.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    for lens in ("flow", "rollout"):
        paths.append(tmp_path / f"SST-2-small.{lens}.state")
        call("run", "SST-2", "--data", tmp_path, "--lens", lens, "--out", paths[-1])
    call("join", *paths, "--out", tmp_path / "joined.nc")
    found = open_result(tmp_path / "joined.nc")
    assert read_provenance(found)["lens"] == ["flow", "rollout"]
    assert found["saturation"].notnull().all()
    batch = one_lens(view(capture(load(), list(TEXTS)), "rollout"))
    expected = oracle(RowDistance(), batch)["row_distance"].mean(0)[:, 0]
    assert found["row_distance"].values[0, 0] == pytest.approx(expected, abs=1e-5)


def test_the_page_recommends_no_deep_map_and_names_its_models(page):
    data, said = page.read_saturation(), page.describe_saturation()
    last = data["row_distance"].sel(model="e5-small", task="SST-2", layer=12).item()
    assert f"{last:.3f} at the top (e5-small, SST-2, L11)" in said
    assert "read both in shallow layers" in " ".join(said.split())
    numbers = open_result(FLOW_RESULTS / "attention_flow_all-MiniLM-L6-v2.nc")["at_bound"]
    tuned = [numbers.sel(task="SST-2", seed=seed, subset="all", lens="flow")[-1].item() for seed in range(3)]
    assert f"*tuned* on SST-2 it is {min(tuned):.0%} to {max(tuned):.0%}" in said
    assert "These are the models as pretrained." in said
    assert not re.search("rollout.{0,20}does not saturate", (DOCS / "rollout_and_flow.md").read_text(encoding="utf-8"))
