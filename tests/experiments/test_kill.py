"""A study that is killed at any write is resumed, and ends with the same numbers."""

from pathlib import Path

import pytest
import xarray as xr

from headscope.core.document import Document
from headscope.core.errors import InputError
from headscope.core.study import Study
from headscope.experiments.steps import Steps
from headscope.experiments.study import study
from tests.experiments.tiny_study import TinyStudy
from tests.study_data import place

OPTIONS = {"device": "cpu", "progress": False}


class Killed(BaseException):
    """What stands for a kill: no code of headscope handles it."""


@pytest.fixture
def kill(monkeypatch):
    """Kill the run at a write, before or after the file gets its name; return the number of writes so far."""
    real, writes = Path.replace, []

    def kill_at(number: int | None, when: str = "after"):
        writes.clear()

        def replace(self, target):
            writes.append(Path(target).name)
            if len(writes) == number and when == "before":
                raise Killed
            moved = real(self, target)
            if len(writes) == number:
                raise Killed
            return moved

        monkeypatch.setattr(Path, "replace", replace)
        return writes

    return kill_at


class TwoResults(Study):
    """A study of two result files."""

    def run(self, model, out, **options):
        steps = Steps(out / "tasks" / "one", "one")
        steps.begin({"model": model})
        first = steps.keep("first", lambda: xr.Dataset({"x": 1.0}))
        second = steps.keep("second", lambda: xr.Dataset({"y": first["x"] + 1}))
        return {"numbers": first, "more": second}

    def document(self, results):
        return Document("Two", f"{float(results['more']['y'])}", [])


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 7))
def test_a_study_killed_at_any_write_is_resumed(kill, tmp_path, number, when):
    writes = kill(number, when)
    with pytest.raises(Killed):
        study(TwoResults, "a", out=tmp_path / "out", **OPTIONS)
    kill(None)
    resumed = study(TwoResults, "a", out=tmp_path / "out", **OPTIONS)
    assert resumed.document.lead == "2.0"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "tasks",
        "study.json",
        "two_results.nc",
        "two_results_more.nc",
    }
    kill(None)
    study(TwoResults, "a", out=tmp_path / "other", **OPTIONS)
    assert len(writes) == 6  # every write was killed once


def test_the_facts_are_written_before_any_result(kill, tmp_path):
    writes = kill(None)
    study(TwoResults, "a", out=tmp_path, **OPTIONS)
    assert writes == ["study.json", "first.npz", "second.npz", "study.json", "two_results.nc", "two_results_more.nc"]


def test_results_of_other_settings_are_still_refused_after_a_kill(kill, tmp_path):
    kill(5)
    with pytest.raises(Killed):
        study(TwoResults, "a", out=tmp_path, **OPTIONS)
    kill(None)
    with pytest.raises(InputError, match="cannot be resumed: its model is 'a', but this run's is 'b'"):
        study(TwoResults, "b", out=tmp_path, **OPTIONS)


def test_a_result_without_facts_is_not_replaced(tmp_path):
    (tmp_path / "two_results.nc").write_text("mine")
    with pytest.raises(InputError, match=r"two_results\.nc exists already\. Give another path, or replace it"):
        study(TwoResults, "a", out=tmp_path, **OPTIONS)


def test_damaged_facts_are_refused_or_replaced(tmp_path):
    steps = Steps(tmp_path / "one", "one")
    steps.begin({"limit": 10})
    steps.keep("first", lambda: xr.Dataset({"x": 1.0}))
    (tmp_path / "one" / "study.json").write_text('{"limit": 1')
    with pytest.raises(
        InputError, match=r"one cannot be resumed: its study\.json is damaged\. Give another folder, or"
    ):
        steps.begin({"limit": 10})
    steps.begin({"limit": 10}, overwrite=True)
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["study.json"]


def test_steps_of_other_facts_are_deleted_all_at_once(tmp_path, monkeypatch):
    def stop(folder):
        raise Killed

    steps = Steps(tmp_path / "one", "one")
    steps.begin({"limit": 10})
    steps.keep("first", lambda: xr.Dataset({"x": 1.0}))
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr("shutil.rmtree", stop)
        steps.begin({"limit": 20}, overwrite=True)
    assert not steps.folder.exists()  # no step of the other limit can be mistaken for one of this
    steps.begin({"limit": 20})


@pytest.mark.soak
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_study_with_a_fine_tuned_model_killed_at_any_write_ends_with_the_same_numbers(kill, tmp_path, when):
    options = {"dev": str(place() / "dev.jsonl"), "train": str(place() / "train.jsonl"), "epochs": 1, "max_length": 40}
    writes = kill(None)
    whole = study(TinyStudy(**options), place() / "base", out=tmp_path / "whole", **OPTIONS)
    for number in range(1, len(list(writes)) + 1):
        out = tmp_path / f"{number}"
        kill(number, when)
        with pytest.raises(Killed):
            study(TinyStudy(**options), place() / "base", out=out, **OPTIONS)
        kill(None)
        resumed = study(TinyStudy(**options), place() / "base", out=out, **OPTIONS)
        xr.testing.assert_identical(resumed.data, whole.data)
