"""Steps of a study are stored as plain files, reused, and never mixed up."""

import numpy as np
import pytest
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.experiments.steps import Steps, print_progress
from headscope.experiments.tasks import split_by_text

DATA = xr.Dataset(
    {"value": (("task", "x"), [[1.0, np.nan]], {"units": "m"}), "kind": ("task", ["a b"]), "n": 3},
    coords={"task": ["é"], "x": [1, 2]},
    attrs={"headscope": "{}"},
)


def test_a_step_is_done_once(tmp_path):
    steps, done = Steps(tmp_path, "RTE"), []

    def make():
        done.append(1)
        return DATA

    xr.testing.assert_identical(steps.keep("one", make), steps.keep("one", make))
    assert done == [1]
    (tmp_path / "a.state").touch()
    steps.keep("one", make, discard="*.state")
    assert [path.name for path in tmp_path.iterdir()] == ["one.npz"]


def test_steps_of_another_study_are_not_taken(tmp_path):
    Steps(tmp_path, "RTE").begin({"limit": 10, "model": "a"})
    Steps(tmp_path, "RTE").begin({"model": "a", "limit": 10})
    with pytest.raises(
        InputError, match="cannot be resumed: its limit is 10, but this run's is 20. Study as before, give"
    ):
        Steps(tmp_path, "RTE").begin({"limit": 20, "model": "a"})
    with pytest.raises(InputError, match="cannot be resumed: the inputs changed since it was started. Study as before"):
        Steps(tmp_path, "RTE").begin({"limit": 10, "model": "a", "inputs": "53aa51172d142c89"})


def test_settings_from_before_checksums_are_read(tmp_path):
    (tmp_path / "study.json").write_text('{"limit": 10}')
    Steps(tmp_path, "RTE").begin({"limit": 10})


def test_damaged_settings_raise_and_can_be_replaced(tmp_path):
    steps, path = Steps(tmp_path / "RTE", "RTE"), tmp_path / "RTE" / "study.json"
    steps.begin({"limit": 10})
    content = path.read_bytes()
    for damaged in (
        b"",
        content[:20],
        b"[1]",
        content.replace(b"10", b"11"),
        content.replace(b"headscope", b"otherwise"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"RTE cannot be resumed: its study\.json is damaged\. Give another"):
            steps.begin({"limit": 10})
    steps.begin({"limit": 10}, overwrite=True)
    steps.begin({"limit": 10})


def test_progress_names_the_step(tmp_path, capsys):
    Steps(tmp_path, "RTE", 7, print_progress).say(2, "measuring")
    Steps(tmp_path, "RTE", 7).say(3, "nothing")
    assert capsys.readouterr().err == "RTE, step 2 of 7: measuring\n"
    seen = []
    Steps(tmp_path, "RTE", 7, seen.append).say(2, "measuring")
    assert (seen[0].part, seen[0].step, seen[0].total, seen[0].text) == ("RTE", 2, 7, "measuring")


def test_pairs_that_share_a_text_stay_together():
    pairs = [Example(str(at), f"question {at // 3}", f"sentence {at // 2}") for at in range(60)]
    learned, held = split_by_text(pairs, 0.3)
    assert len(learned) + len(held) == 60
    assert 10 <= len(held) <= 24
    for side in ("text", "pair"):
        assert not {getattr(each, side) for each in learned} & {getattr(each, side) for each in held}
    assert split_by_text(pairs, 0.3) == (learned, held)
