"""A full disk ends a fine-tuning, a study or the saving of a model with one sentence, and all can be resumed."""

import errno
import os
import re

import pytest
from safetensors import SafetensorError

import headscope as hs
from headscope.core.errors import OutputError
from headscope.experiments.study import study
from headscope.results.disk import raise_os_errors
from headscope.training.finetuning.folder import find_defect, list_checkpoints
from tests.experiments.tiny_study import TinyStudy
from tests.full_disk import run_python
from tests.models import tiny
from tests.study_data import place
from tests.training.data import labeled

FAST = {"learning_rate": 1e-3, "max_length": 32, "device": "cpu", "progress": False, "epochs": 3, "batch_size": 4}
ROOM = r"Its disk has [\d.]+ \w+ left"
SAFETENSORS = SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
TOKENIZERS = Exception("No space left on device (os error 28)")
TORCH = RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0")
SYSTEM = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("error", [SAFETENSORS, TOKENIZERS, SYSTEM], ids=lambda error: type(error).__name__)
def test_errors_of_libraries_become_errors_of_the_system(error):
    with pytest.raises(OSError, match="No space left on device") as caught, raise_os_errors():
        raise error
    assert caught.value.errno == errno.ENOSPC


def test_a_failed_write_of_torch_becomes_an_error_of_the_system():
    with pytest.raises(OSError, match="a file could not be written in full"), raise_os_errors():
        raise TORCH


def test_other_errors_stay_what_they_are():
    with pytest.raises(RuntimeError, match="shapes"), raise_os_errors():
        raise RuntimeError("shapes do not fit")


def fill_disk_at(monkeypatch, number, error):
    """Let a number of models be written, and then no more."""
    from transformers import PreTrainedModel

    real, written = PreTrainedModel.save_pretrained, []

    def write(self, folder, **options):
        written.append(folder)
        if len(written) == number:
            raise error
        return real(self, folder, **options)

    monkeypatch.setattr(PreTrainedModel, "save_pretrained", write)


@pytest.mark.parametrize(
    ("number", "what", "left"),
    [
        (1, "the checkpoint of step 3", "There is no earlier checkpoint"),
        (3, "the checkpoint of step 9", "The checkpoint of step 6 is complete"),
        (4, "the tuned model", "The checkpoint of step 9 is complete"),
    ],
)
def test_a_fine_tuning_on_a_full_disk_says_what_is_left_and_is_resumed(number, what, left, tmp_path, monkeypatch):
    whole = hs.finetune(tiny("bert"), labeled(12), out=tmp_path / "whole", **FAST)
    with monkeypatch.context() as patch:
        fill_disk_at(patch, number, SAFETENSORS)
        expected = (
            rf"Cannot write {what} to .*m: the disk is full\. {ROOM}\. {left}\. Free some space, then resume with "
            r"resume=True, in the shell --resume\."
        )
        with pytest.raises(OutputError, match=rf"^{expected}\nMore: docs/"):
            hs.finetune(tiny("bert"), labeled(12), out=tmp_path / "m", **FAST)
    assert all(find_defect(path) is None for path in list_checkpoints(tmp_path / "m" / "checkpoints"))
    assert not (tmp_path / "m" / ".part").exists()
    resumed = hs.finetune(tiny("bert"), labeled(12), out=tmp_path / "m", resume=True, **FAST)
    assert resumed.weights_hash == whole.weights_hash


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth"])
def test_a_disk_that_is_full_within_a_checkpoint_is_the_same_sentence(name, tmp_path, monkeypatch):
    import torch

    real = torch.save

    def save(content, path, *arguments, **options):
        if str(path).endswith(name):
            raise TORCH
        return real(content, path, *arguments, **options)

    monkeypatch.setattr(torch, "save", save)
    with pytest.raises(OutputError, match=rf"step 3 to .*: a file could not be written in full\. {ROOM}\. There is no"):
        hs.finetune(tiny("bert"), labeled(12), out=tmp_path / "m", **FAST)


def test_a_study_on_a_full_disk_says_how_it_is_resumed(tmp_path, monkeypatch):
    chosen = TinyStudy(dev=str(place() / "dev.jsonl"), train=str(place() / "train.jsonl"), epochs=1, max_length=40)
    options = {"out": tmp_path / "out", "device": "cpu", "progress": False}
    again = r"then run the same study again to resume it: finished steps are stored in .*out\.\nMore: docs/"
    with (
        monkeypatch.context() as patch,
        pytest.raises(OutputError, match=f"the tuned model .* Free some space, {again}"),
    ):
        fill_disk_at(patch, 2, SAFETENSORS)
        study(chosen, place() / "base", **options)
    with monkeypatch.context() as patch:
        patch.setattr("headscope.results.store.write_netcdf", lambda *_: (_ for _ in ()).throw(SYSTEM))
        expected = (
            rf"tiny_study\.nc: the disk is full\. {ROOM}\. Free some .* Finished steps are stored in .*: run the same"
        )
        with pytest.raises(OutputError, match=expected):
            study(chosen, place() / "base", **options)
    assert study(chosen, place() / "base", **options).data.sizes["task"] == 1


FULL = """
import torch
from headscope.core.errors import OutputError
from headscope.results.disk import raise_os_errors
from headscope.results.store import save
from tests.models import tiny
model = tiny("bert")
for size in map(int, sys.argv[2:]):
    fill_disk(size)
    try:
        save(model, sys.argv[1])
    except OutputError as error:
        free_disk()
        print(error)
fill_disk(300)
try:
    with raise_os_errors():
        torch.save(model.network.state_dict(), sys.argv[1] + ".pt")
except OSError as error:
    free_disk()
    print(error.strerror)
"""


def test_a_model_is_saved_whole_or_not_at_all(tmp_path):
    done = run_python(FULL, tmp_path / "m", 300, 3000)  # within the config, within the weights
    assert done.returncode == 0, done.stderr
    expected = r"(Cannot write .*m: file too large\. Give another path\.\n){2}a file could not be written in full\n"
    assert re.fullmatch(expected, done.stdout)
    assert not (tmp_path / "m").exists()
