"""The session on the page about patterns runs as it is written, and what the page says is true."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from headscope.patterns.classes import CLASSES
from headscope.patterns.classify.cnn import BUNDLED, about_cnn
from headscope.patterns.labels.labelled import open_labelled
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result

DOCS = Path(__file__).parents[2] / "docs"


def test_the_session_of_the_page_runs(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "patterns.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    held = {}
    exec(compile(code, "patterns.md", "exec"), held)
    np.testing.assert_allclose(held["found"]["patterns_share"].sum("pattern"), 1, atol=1e-6)
    assert (tmp_path / "letters.png").stat().st_size > 1000


def test_the_shipped_networks_are_those_that_were_evaluated():
    evaluated, shipped = read_provenance(open_result(DOCS / "results" / "patterns.nc")), about_cnn(BUNDLED)
    assert (shipped["labels_hash"], shipped["seed"]) == (evaluated["labels_hash"], evaluated["seed"])
    assert evaluated["weights_hash"] == hashlib.sha256(BUNDLED.read_bytes()).hexdigest()
    assert BUNDLED.stat().st_size < 2_000_000


def test_every_shipped_map_has_a_label_of_both_passes():
    held = open_labelled()
    ids = {each.source.id for each in held.maps}
    assert len(ids) == len(held.maps) >= 600
    assert set(held.passes) == {"first", "second"}
    assert all(set(given) == ids for given in held.passes.values())
    for each in held.maps:
        assert 20 <= len(each.source.tokens) <= 128
        if each.source.lens == "raw":
            np.testing.assert_allclose(each.weights.sum(-1), 1, atol=0.1)  # one byte a weight


def test_agreement_and_counts_are_what_the_labels_say():
    from sklearn.metrics import cohen_kappa_score, f1_score

    held, data = open_labelled(), open_result(DOCS / "results" / "patterns.nc")
    first, second = ([given[each.source.id] for each in held.maps] for given in held.passes.values())
    assert float(data["passes_kappa"]) == pytest.approx(cohen_kappa_score(first, second))
    assert float(data["passes_f1"]) == pytest.approx(f1_score(first, second, average="macro"))
    assert float(data["passes_kappa"]) >= 0.70
    said = [str(each) for each in data["said"].sel(classifier="cnn").values]
    order = {each.source.id: label for each, label in zip(held.maps, first, strict=True)}
    labels = [order[str(each)] for each in data["map"].values]
    assert float(data["macro_f1"].sel(classifier="cnn", subset="all")) == pytest.approx(
        f1_score(labels, said, average="macro", labels=list(CLASSES))
    )
