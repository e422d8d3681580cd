"""A model that is tuned again is compared with the stored numbers."""

import argparse

import headscope as hs
from headscope.experiments.tuned import check_runs
from headscope_studies.effective_attention.runs import effective_attention
from tests.study_data import found, place, tiny


def retune(folder, monkeypatch, capsys, stored):
    """Run the command on the tiny study, whose stored result is this; return what it prints."""

    def plan(chosen, seed, name, own):
        study = tiny("effective_attention")
        (task,), _ = study.read_tasks()
        run = study.plan_task(task, hs.load(place() / "base", device="cpu"), folder / name, 1, seed=seed, device="cpu")
        check_runs([run], own)
        return study, run, "tiny"

    monkeypatch.setattr(effective_attention, "plan_run", plan)
    hs.save(stored.expand_dims(seed=[0], axis=1), folder / "effective_attention_tiny.nc", overwrite=True)
    effective_attention.retune(argparse.Namespace(seed=0, results=folder))
    return capsys.readouterr().out


def test_the_same_recipe_gives_the_same_weights_and_numbers(tmp_path, monkeypatch, capsys):
    out = retune(tmp_path, monkeypatch, capsys, found("effective_attention")["numbers"])
    for name in ("tuned_hash", "data_hash", "train", "tuning"):
        assert f"{name:24} the same" in out
    for line in out.splitlines()[4:]:
        assert float(line.partition(" apart")[0].split()[-1]) == 0
    assert "distance, paper" in out


def test_a_comparison_is_resumed(tmp_path, monkeypatch, capsys):
    stored = found("effective_attention")["numbers"]
    assert retune(tmp_path, monkeypatch, capsys, stored) == retune(tmp_path, monkeypatch, capsys, stored)


def test_what_differs_is_said(tmp_path, monkeypatch, capsys):
    stored = found("effective_attention")["numbers"].copy(deep=True)
    stored["tuned_hash"][:] = "other"
    for end in ("", "_low", "_high"):
        stored[f"score{end}"] = stored[f"score{end}"] + 0.25
    out = retune(tmp_path, monkeypatch, capsys, stored)
    assert "tuned_hash               other stored, " in out
    assert "-0.2500 apart" in next(line for line in out.splitlines() if line.startswith("score"))
