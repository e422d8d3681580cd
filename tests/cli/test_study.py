"""Studies in the shell."""

import shutil

from typer.testing import CliRunner

from headscope.cli.main import app
from tests.studies.data import found, place


def run(*arguments):
    return CliRunner().invoke(app, ["study", *map(str, arguments)])


def test_a_study_ends_by_naming_its_report(tmp_path, monkeypatch):
    monkeypatch.setattr("headscope.reporting.report.write", lambda _, out: out / "report.html")  # drawing takes long
    found("effective_attention")  # done already: the shell takes its steps
    shutil.copytree(place() / "effective_attention-0", tmp_path / "out")
    options = ["--dev", place() / "dev.jsonl", "--train", place() / "train.jsonl", "--epochs", 1]
    asked = ["effective-attention:max_length=40", "--model", place() / "base", *options, "--device", "cpu"]
    done = run(*asked, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "Vertical patterns fall." in done.output
    assert done.stdout.splitlines()[-1] == f"Wrote {tmp_path / 'out' / 'report' / 'report.html'}"
    assert (tmp_path / "out" / "effective_attention.nc").is_file()


def test_what_a_study_has_not_is_refused():
    done = run("effective-atention")
    assert done.exit_code == 2
    assert "No study is called 'effective_atention'. Did you mean 'effective_attention'?" in done.output
    done = run("effective-attention", "--task", "rte")
    assert done.exit_code == 2
    assert "but not where it lies" in done.output
