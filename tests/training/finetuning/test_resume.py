"""An interrupted fine-tuning is resumed and ends with the same weights."""

import json
import shutil

import pytest

import headscope as hs
from headscope.core.errors import DataWarning, InputError, OutputError
from headscope.engine.load import load
from headscope.training.finetuning import trainer
from headscope.training.finetuning.folder import list_steps
from headscope.training.finetuning.trainer import Callbacks
from tests.models import network, tiny, tokenizer
from tests.training.data import labeled, plain

FAST = {"learning_rate": 1e-3, "max_length": 32, "device": "cpu", "progress": False, "epochs": 3, "batch_size": 4}


@pytest.fixture
def stopped_after(monkeypatch):
    """Interrupt the next run after a number of steps; a checkpoint is written after every step."""

    def stop(steps, *, saving=True):
        real = Callbacks.end_step

        def end_step(self, arguments, state, control, **more):
            if state.global_step == steps:
                monkeypatch.setattr(Callbacks, "end_step", real)
                raise KeyboardInterrupt
            return real(self, arguments, state, control, **more)

        monkeypatch.setattr(Callbacks, "end_step", end_step)
        monkeypatch.setattr(trainer, "MIN_INTERVAL", 0.0 if saving else 1e9)
        monkeypatch.setattr(trainer, "WRITE_FACTOR", 0)

    return stop


@pytest.mark.parametrize(
    ("task", "steps"), [("classification", 2), ("classification", 5), ("mlm", 11)]
)  # of 4 an epoch: within the first, at the end of the first, within the third
def test_a_resumed_run_gives_the_same_weights(task, steps, stopped_after, tmp_path):
    data = labeled(14) if task == "classification" else plain(14)
    options = {"dev": labeled(6, start=50), "task": task, **FAST}
    whole = hs.finetune(tiny("bert"), data, out=tmp_path / "whole", **options)
    stopped_after(steps)
    with pytest.raises(KeyboardInterrupt, match=f"The first {steps - 1} of 12 steps are saved in .* resume=True"):
        hs.finetune(tiny("bert"), data, out=tmp_path / "parts", **options)
    resumed = hs.finetune(tiny("bert"), data, out=tmp_path / "parts", resume=True, **options)
    assert resumed.weights_hash == whole.weights_hash
    first, second = (json.loads((tmp_path / name / "finetune.json").read_text()) for name in ("whole", "parts"))
    assert first["facts"] == second["facts"]
    assert first["dev"] == second["dev"]
    assert not (tmp_path / "parts" / "checkpoints").exists()


def test_an_unfinished_folder_is_no_model_and_is_not_overwritten(stopped_after, tmp_path):
    stopped_after(2, saving=False)
    with pytest.raises(KeyboardInterrupt, match="Stopped before the first checkpoint"):
        hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", **FAST)
    with pytest.raises(InputError, match="is not a model: it holds no config.json"):
        load(tmp_path / "m")
    with pytest.raises(InputError, match="holds an unfinished fine-tuning. Resume it .* or give another"):
        hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", **FAST)
    hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", resume=True, **FAST)
    assert load(tmp_path / "m").network.config.num_labels == 2


def test_an_incomplete_checkpoint_is_ignored(stopped_after, tmp_path):
    stopped_after(4)
    with pytest.raises(KeyboardInterrupt):
        hs.finetune(tiny("bert"), labeled(14), out=tmp_path / "m", **FAST)
    good = tmp_path / "m" / "checkpoints" / "checkpoint-3"
    shutil.copytree(good, good.with_name("checkpoint-10"))
    state = good.with_name("checkpoint-10") / "trainer_state.json"
    state.write_text(state.read_text()[:100])
    with pytest.warns(
        DataWarning, match=r"checkpoint-10 \(trainer_state.json is damaged\). Training goes on after step 3"
    ):
        hs.finetune(tiny("bert"), labeled(14), out=tmp_path / "m", resume=True, **FAST)
    assert json.loads((tmp_path / "m" / "finetune.json").read_text())["loss"][-1][0] == 12


def test_other_settings_or_data_are_not_resumed(stopped_after, tmp_path):
    stopped_after(3)
    with pytest.raises(KeyboardInterrupt):
        hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", **FAST)
    with pytest.raises(InputError, match="cannot be resumed: its seed is 0, but this run's is 1. Tune as before"):
        hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", resume=True, seed=1, **FAST)
    with pytest.raises(InputError, match="cannot be resumed: the training data changed since it was started"):
        hs.finetune(tiny("bert"), labeled(8, start=2), out=tmp_path / "m", resume=True, **FAST)
    with pytest.raises(InputError, match="cannot be resumed: its model is 'BertModel', but this run's is 'Roberta"):
        hs.finetune(tiny("roberta"), labeled(8), out=tmp_path / "m", resume=True, **FAST)
    relu = network("bert", hidden_act="relu")
    relu.load_state_dict(tiny("bert").network.state_dict())
    with pytest.raises(
        InputError, match=r"cannot be resumed: its config\.hidden_act is 'gelu', but this run's is 'relu'"
    ):
        hs.finetune(load(relu, tokenizer=tokenizer()), labeled(8), out=tmp_path / "m", resume=True, **FAST)


def test_resuming_a_finished_run_does_not_train(tmp_path, monkeypatch):
    first = hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", **FAST)
    monkeypatch.setattr("headscope.training.finetuning.finetune.make_trainer", None)  # no training happens
    again = hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", resume=True, **FAST)
    assert again.weights_hash == first.weights_hash
    with pytest.raises(InputError, match="holds a finished fine-tuning"):
        hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", **FAST)


def test_a_finished_model_is_replaced_only_with_overwrite(tmp_path):
    first = hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", keep_checkpoints=True, **FAST)
    with pytest.raises(
        InputError, match=r"start over \(overwrite=True, in the shell --force\), or give another folder"
    ):
        hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", seed=1, **FAST)
    with pytest.raises(InputError, match="seed=-1 cannot seed"):  # nothing is deleted before all is checked
        hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", overwrite=True, **{**FAST, "seed": -1})
    assert load(tmp_path / "m").weights_hash == first.weights_hash
    second = hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", overwrite=True, seed=1, **FAST)
    assert load(tmp_path / "m").weights_hash == second.weights_hash != first.weights_hash
    assert not list((tmp_path / "m").glob("epoch-*"))


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files. Give another folder."):
        hs.finetune(tiny("bert"), labeled(8), out=tmp_path, overwrite=True, **FAST)
    with pytest.raises(InputError, match="cannot be resumed: it holds files, but no finetune.json"):
        hs.finetune(tiny("bert"), labeled(8), out=tmp_path, resume=True, **FAST)
    with pytest.raises(OutputError, match="notes.txt: it is a file. Give the path of a folder"):
        hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "notes.txt", **FAST)
    with pytest.raises(OutputError, match="Cannot write"):
        hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "notes.txt" / "m", **FAST)


def test_the_model_of_every_epoch_can_be_kept(tmp_path):
    model = hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", keep_checkpoints=True, **FAST)
    hashes = [load(tmp_path / "m" / f"epoch-{epoch}", device="cpu").weights_hash for epoch in (1, 2, 3)]
    assert len(set(hashes)) == 3
    assert hashes[-1] == model.weights_hash
    assert not list(tmp_path.rglob("optimizer.pt"))


def test_models_at_equal_distances_can_be_kept(tmp_path):
    model = hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "m", checkpoints=2, **FAST)
    steps = list_steps(tmp_path / "m")
    total = json.loads((tmp_path / "m" / "finetune.json").read_text())["loss"][-1][0]
    assert list(steps) == [round(total / 2), total]
    hashes = [load(path, device="cpu").weights_hash for path in steps.values()]
    assert hashes[0] != hashes[1] == model.weights_hash
    without = hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "n", **FAST)
    assert without.weights_hash == model.weights_hash
    with pytest.raises(InputError, match="checkpoints=99 models cannot be kept: there are"):
        hs.finetune(tiny("bert"), labeled(8), out=tmp_path / "o", checkpoints=99, **FAST)


def test_a_folder_that_another_run_writes_is_refused(tmp_path):
    owner = {"host": "elsewhere", "pid": 7, "command": "headscope finetune", "started": "2026-11-18 05:00:00"}
    (tmp_path / ".tuned.lock").write_text(json.dumps(owner))
    with pytest.raises(OutputError, match=r"tuned: it is being written by process 7 on elsewhere \(headscope finetune"):
        hs.finetune(tiny("bert"), labeled(4), out=tmp_path / "tuned", **FAST)
    assert not (tmp_path / "tuned").exists()
