"""`--edit` in the verbs that run a model."""

import json

import pytest

from headscope.core.provenance import read_provenance
from headscope.results.store import open_result
from tests.cli.test_cli import headscope  # noqa: F401  (a fixture)
from tests.heads import headed_network
from tests.models import text, tokenizer

EDIT = "uniform_heads:heads=L0H1+L1-L1H2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A classifier, and texts with labels."""
    path = tmp_path_factory.mktemp("classifier")
    headed_network("bert", "classification").save_pretrained(path)
    tokenizer().save_pretrained(path)
    rows = [{"text": text(6, seed), "label": seed % 2} for seed in range(4)]
    (path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("show", "the cat sat on a mat ."),
        ("importances", "the cat sat on a mat ."),
        ("measure", "rows.jsonl", "--statistics", "entropy"),
        ("score", "rows.jsonl"),
    ],
    ids=lambda words: words[0],
)
def test_a_verb_runs_the_edited_model(headscope, folder, tmp_path, words, monkeypatch):  # noqa: F811
    monkeypatch.chdir(folder)
    results = []
    for name, options in (("plain", ()), ("edited", ("--edit", EDIT))):
        done = headscope(*words, "--model", folder, *options, "-o", tmp_path / f"{name}.nc")
        assert done.returncode == 0, done.stderr
        results.append(open_result(tmp_path / f"{name}.nc"))
    plain, changed = results
    assert not plain.drop_attrs().equals(changed.drop_attrs())
    assert EDIT in json.dumps(read_provenance(changed))
    assert EDIT not in json.dumps(read_provenance(plain))


def test_a_head_that_is_not_there_is_said(headscope, folder):  # noqa: F811
    done = headscope("show", "the cat .", "--model", folder, "--edit", "zero_heads:heads=L0H9")
    assert done.returncode == 2
    assert "There is no head 9 here, only heads 0 to 3." in done.stderr


def test_the_edits_are_listed(headscope):  # noqa: F811
    done = headscope("list", "edits")
    assert all(name in done.stdout for name in ("zero_heads", "mean_heads", "heads=all"))
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
