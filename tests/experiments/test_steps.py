"""What a study keeps on its way: plain files, reused, and never mixed up."""

import numpy as np
import pytest
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.experiments.split import by_text
from headscope.experiments.steps import Hashed, Steps
from headscope.results.npz import read_npz, write_npz

DATA = xr.Dataset(
    {"value": (("task", "x"), [[1.0, np.nan]], {"units": "m"}), "kind": ("task", ["a b"]), "n": 3},
    coords={"task": ["é"], "x": [1, 2]},
    attrs={"headscope": "{}"},
)


def test_a_dataset_comes_back_from_plain_arrays(tmp_path):
    xr.testing.assert_identical(read_npz(write_npz(DATA, tmp_path / "a" / "b.npz")), DATA)


def test_a_damaged_step_is_said(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match="it is no step of a study that headscope wrote, or it is damaged. Delete it"):
        read_npz(tmp_path / "a.npz")


def test_a_step_is_done_once(tmp_path):
    steps, done = Steps(tmp_path, "RTE"), []

    def make():
        done.append(1)
        return DATA

    xr.testing.assert_identical(steps.kept("one", make), steps.kept("one", make))
    assert done == [1]
    assert steps.done("one")


def test_steps_of_another_study_are_not_taken(tmp_path):
    Steps(tmp_path, "RTE").begin({"limit": 10, "model": "a"})
    Steps(tmp_path, "RTE").begin({"model": "a", "limit": 10})
    with pytest.raises(InputError, match="holds a study with limit=10, but this run has limit=20. Study as before, or"):
        Steps(tmp_path, "RTE").begin({"limit": 20, "model": "a"})
    with pytest.raises(InputError, match="holds a study with other inputs. Study as before"):
        Steps(tmp_path, "RTE").begin({"limit": 10, "model": "a", "inputs": Hashed("53aa")})


def test_progress_names_the_step(tmp_path, capsys):
    Steps(tmp_path, "RTE", 7).say(2, "looking")
    Steps(tmp_path, "RTE", 7, progress=False).say(3, "nothing")
    assert capsys.readouterr().err == "RTE, step 2 of 7: looking\n"


def test_pairs_that_share_a_text_stay_together():
    pairs = [Example(str(at), f"question {at // 3}", f"sentence {at // 2}") for at in range(60)]
    learned, held = by_text(pairs, 0.3)
    assert len(learned) + len(held) == 60
    assert 10 <= len(held) <= 24
    for side in ("text", "pair"):
        assert not {getattr(each, side) for each in learned} & {getattr(each, side) for each in held}
    assert by_text(pairs, 0.3) == (learned, held)
