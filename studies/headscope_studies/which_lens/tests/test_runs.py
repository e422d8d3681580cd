"""The script behind the stored results of the study of lenses."""

import argparse

from headscope_studies.which_lens.runs import which_lens


def test_models_are_tuned_on_the_training_data_with_the_settings_that_are_written_down(tmp_path, monkeypatch):
    tuned = {}
    monkeypatch.setattr(which_lens.hs, "load", lambda *_, **__: "base")
    monkeypatch.setattr(which_lens.hs, "finetune", lambda base, train, **options: tuned.update(options, train=train))
    which_lens.tune(argparse.Namespace(task="GAP", place=None, model=None, seed=2, work=tmp_path))
    assert len(tuned["train"]) > which_lens.SETTINGS["GAP"]["limit"]
    assert (tuned["max_length"], tuned["seed"], tuned["limit"]) == (128, 2, 640)
    assert tuned["out"].name == "GAP_seed_2"
