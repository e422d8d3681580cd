"""The Python code of the page on patterns runs, and the numbers of the page match the bundled files."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from headscope.core.provenance import read_provenance
from headscope.patterns import CLASSES
from headscope.patterns.classify.cnn import BUNDLED, read_metadata
from headscope.results.store import open_result
from headscope_patterns.labels.labelled_maps import read_labelled_maps

DOCS = Path(__file__).parents[3] / "docs"
RESULTS = Path(__file__).parents[1] / "results"


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "patterns.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    variables = {}
    exec(compile(code, "patterns.md", "exec"), variables)
    np.testing.assert_allclose(variables["result"]["patterns_share"].sum("pattern"), 1, atol=1e-6)
    assert (tmp_path / "letters.png").stat().st_size > 1000


def test_the_bundled_networks_are_those_that_were_evaluated():
    evaluated, bundled = read_provenance(open_result(RESULTS / "patterns.nc")), read_metadata(BUNDLED)
    assert (bundled["labels_hash"], bundled["seed"]) == (evaluated["labels_hash"], evaluated["seed"])
    assert evaluated["weights_hash"] == hashlib.sha256(BUNDLED.read_bytes()).hexdigest()
    assert BUNDLED.stat().st_size < 2_000_000


def test_every_bundled_map_has_a_label_in_both_passes():
    labelled = read_labelled_maps()
    ids = {item.source.id for item in labelled.maps}
    assert len(ids) == len(labelled.maps) >= 600
    assert set(labelled.passes) == {"first", "second"}
    assert all(set(labels) == ids for labels in labelled.passes.values())
    for item in labelled.maps:
        assert (6 if item.source.part == "test" else 20) <= len(item.source.tokens) <= 128
        if item.source.lens == "raw":
            np.testing.assert_allclose(item.weights.sum(-1), 1, atol=0.1)  # one byte per weight


def test_agreement_and_f1_of_the_page_follow_from_the_labels():
    from sklearn.metrics import cohen_kappa_score, f1_score

    labelled, data = read_labelled_maps(), open_result(RESULTS / "patterns.nc")
    first, second = ([labels[item.source.id] for item in labelled.maps] for labels in labelled.passes.values())
    assert float(data["passes_kappa"]) == pytest.approx(cohen_kappa_score(first, second))
    assert float(data["passes_f1"]) == pytest.approx(f1_score(first, second, average="macro"))
    assert float(data["passes_kappa"]) >= 0.70
    predicted = [str(label) for label in data["said"].sel(classifier="cnn").values]
    labels = [labelled.passes["first"][str(map_id)] for map_id in data["map"].values]
    assert float(data["macro_f1"].sel(classifier="cnn", subset="all")) == pytest.approx(
        f1_score(labels, predicted, average="macro", labels=list(CLASSES))
    )
