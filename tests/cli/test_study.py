"""Studies in the shell."""

import shutil

from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.experiments.rendering.report import describe_unlearned
from tests.study_data import found, place


def run(*arguments):
    return CliRunner().invoke(app, ["study", *map(str, arguments)])


def test_a_study_ends_by_naming_its_report(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "headscope.reporting.report.write_document", lambda _, out, **__: out / "report.html"
    )  # drawing takes long
    found("effective_attention")  # done already: the shell takes its steps
    shutil.copytree(place() / "effective_attention-0", tmp_path / "out")
    options = ["--dev", place() / "dev.jsonl", "--train", place() / "train.jsonl", "--epochs", 1]
    asked = ["effective-attention:max_length=40", "--model", place() / "base", *options, "--device", "cpu"]
    done = run(*asked, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "Vertical patterns fall." in done.output
    said = describe_unlearned(found("effective_attention")["numbers"])  # a model that learned little
    assert said.startswith("The tuned model is not shown to have learned dev (")
    assert said in " ".join(done.output.split())
    assert done.stdout.splitlines()[-1] == f"Wrote {tmp_path / 'out' / 'report' / 'report.html'}"
    assert (tmp_path / "out" / "effective_attention.nc").is_file()


def test_the_results_of_another_study_are_replaced_only_with_force(tmp_path, monkeypatch):
    monkeypatch.setattr("headscope.reporting.report.write_document", lambda _, out, **__: out / "report.html")
    found("effective_attention")
    shutil.copytree(place() / "effective_attention-0", tmp_path / "out")
    options = ["--model", place() / "base", "--epochs", 1, "--device", "cpu", "-o", tmp_path / "out"]
    asked = ["effective-attention:max_length=40", "--dev", place() / "dev.jsonl", *options]
    assert run(*asked, "--train", place() / "train.jsonl").exit_code == 0
    again = run(*asked, "--train", place() / "train.jsonl")
    assert again.exit_code == 0, again.output  # the same study is done already
    before = (tmp_path / "out" / "effective_attention.nc").read_bytes()
    other = run(*asked)  # its data would be divided
    assert other.exit_code == 2
    assert "cannot be resumed: its train is 'train.jsonl', but this run's is None. Study as before, " in other.output
    assert "or replace what differs with --force." in other.output
    assert (tmp_path / "out" / "effective_attention.nc").read_bytes() == before


def test_a_folder_that_the_report_would_not_take_is_refused_before_any_work(tmp_path):
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "thesis.txt").write_text("mine")
    done = run("effective-attention", "--dev", place() / "dev.jsonl", "-o", tmp_path)
    assert done.exit_code == 2
    assert "holds 'thesis.txt', which no report wrote" in done.output
    assert {each.name for each in tmp_path.iterdir()} == {"report"}


def test_a_study_that_is_stopped_says_how_it_goes_on(tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt("go on with --resume")  # as a step would say

    monkeypatch.setattr("headscope.experiments.tuned.finetune", stopped)
    asked = ["effective-attention:max_length=40", "--model", place() / "base", "--device", "cpu", "-o", tmp_path]
    done = run(*asked, "--dev", place() / "dev.jsonl", "--train", place() / "train.jsonl")
    assert done.exit_code == 130
    assert f"Finished steps are stored in {tmp_path}: run the same study again to resume it." in done.output
    assert "--resume" not in done.output


def test_what_a_study_has_not_is_refused():
    done = run("effective-atention")
    assert done.exit_code == 2
    assert "No study is called 'effective_atention'. Did you mean 'effective_attention'?" in done.output
    done = run("effective-attention", "--task", "rte")
    assert done.exit_code == 2
    assert "but not where it is. Give --data FOLDER, the folder of GLUE." in " ".join(done.output.split())
