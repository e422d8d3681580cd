"""The folder of a task is inside that of its study, whatever the user's file is called."""

import shutil

import pandas
import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.core.catalog import Catalog
from headscope.core.errors import InputError
from headscope.experiments.study import study
from headscope.experiments.tasks import read_files
from tests.experiments.tiny_study import TinyStudy
from tests.models import tiny
from tests.study_data import place


def test_a_file_named_like_the_report_is_studied_to_the_end(tmp_path, monkeypatch):
    shutil.copy(place() / "dev.jsonl", tmp_path / "report.jsonl")
    find = Catalog.find
    monkeypatch.setattr(Catalog, "find", lambda self, name: TinyStudy if self.kind == "study" else find(self, name))
    options = {
        "--dev": tmp_path / "report.jsonl",
        "--train": place() / "train.jsonl",
        "--epochs": 1,
        "--max-length": 40,
    }
    words = [str(word) for option in options.items() for word in option]
    out = tmp_path / "out"
    done = CliRunner().invoke(
        app, ["study", "tiny", *words, "--model", str(place() / "base"), "--device", "cpu", "-o", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert (out / "report" / "report.html").is_file()
    assert (out / "tasks" / "report" / "study.json").is_file()
    assert {path.name for path in out.iterdir()} == {"tasks", "tiny_study.nc", "report", "study.json"}


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("..jsonl", "data"),
        ("...jsonl", "data"),
        ("....jsonl", "data"),
        ("a..jsonl", "a"),
        ("tasks.jsonl", "tasks"),
        ("study.json.jsonl", "study.json"),
        ("my data: été.jsonl", "my data: été"),
        ("effective_attention.nc.jsonl", "effective_attention.nc"),
    ],
)
def test_no_name_leaves_the_folder_or_meets_a_file_of_the_study(tmp_path, name, task):
    shutil.copy(place() / "dev.jsonl", tmp_path / name)
    out = tmp_path / "out"
    for dev in (str(tmp_path / name), f"jsonl@{tmp_path / name}"):
        data = read_files(dev, tuned=True)
        assert data.name == task
        folder = TinyStudy(dev=dev).plan_task(data, tiny("bert"), out, 1).steps.folder
        assert folder.resolve().parent == (out / "tasks").resolve()
        assert folder.name.strip(".")


def test_data_in_memory_are_studied_too(tmp_path):
    frames = {name: pandas.read_json(place() / f"{name}.jsonl", lines=True) for name in ("dev", "train")}
    chosen = TinyStudy(**frames, epochs=1, max_length=40)
    done = study(chosen, place() / "base", out=tmp_path, device="cpu", progress=False)
    assert list(done.data["task"].values) == ["data"]
    assert '"dev": "DataFrame"' in done.data.attrs["headscope"]


@pytest.mark.parametrize("max_length", [0, 1, -5])
def test_a_study_refuses_lengths_that_leave_no_text(tmp_path, max_length):
    with pytest.raises(InputError, match=f"max_length={max_length} is too small. Give at least 3"):
        study(TinyStudy(dev=str(place() / "dev.jsonl"), max_length=max_length), place() / "base", out=tmp_path)
    assert not list(tmp_path.iterdir())
